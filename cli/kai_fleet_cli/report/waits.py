"""Why pods of a stack wait, by team and reason."""

import math
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet_cli.doctor.checks import JUDGE_SECONDS
from kai_fleet_cli.doctor.checks.pods import why
from kai_fleet_cli.doctor.faults import Fault, on_one_line_without_backticks, with_names
from kai_fleet_cli.doctor.snapshot import COUNTED, Cluster, Snapshot, UnreadError
from kai_fleet_cli.report.records import Wait
from kai_fleet_policies.finding import Level, commands_of, sentence
from kai_fleet_policies.model.cluster import HOST
from kai_usage.pods import Pod
from kai_usage.times import moment


class _WaitingPod(NamedTuple):
    """A pod without a node, its team, and why it waits.

    `reason` is None if it is on its way, or if the time to look for reasons was over.
    """

    team: str
    use: Pod
    reason: Fault | None


def waits_in(snapshot: Snapshot) -> Iterator[Wait]:
    """Yield the pods without a node by team and reason, those of the host first.

    No pod counts in two clusters. The team of a pod of the host outside the teams' namespaces is
    `host`. Clusters of which one of COUNTED was not read are left out. Raises one of MALFORMED.
    """
    groups: dict[tuple[str, str], list[_WaitingPod]] = defaultdict(list)
    for cluster in snapshot.clusters:
        if cluster.unread(*COUNTED):
            continue
        for pod in _waiting_pods(cluster, snapshot):
            cause = ""
            if pod.reason is not None:
                cause = pod.reason.key or pod.reason.cause
            groups[pod.team, cause].append(pod)
    for (team, _), group in groups.items():
        yield _wait(team, group[0].reason, [pod.use for pod in group])


def _waiting_pods(cluster: Cluster, snapshot: Snapshot) -> Iterator[_WaitingPod]:
    """Yield the waiting pods of a cluster, without those that are being deleted.

    In a vCluster reasons are looked for during 20 s: pods after that have none. On the host the
    namespace tells the team. Raises UnreadError for one of COUNTED, and one of MALFORMED.
    """
    on_host = cluster is snapshot.host
    teams = {state.team.namespace: name for name, state in snapshot.teams.items()}
    deadline = math.inf
    if not on_host:
        deadline = time.monotonic() + JUDGE_SECONDS
    for pod in snapshot.pods(cluster):
        use = cluster.pod_uses.get(pod.namespaced_name)
        if use is None or not use.waits or use.is_being_deleted:
            continue
        team = teams.get(use.namespace, HOST) if on_host else cluster.name
        reason = None
        if time.monotonic() < deadline:
            reason = _why(pod, cluster, snapshot)
        yield _WaitingPod(team, use, reason)


def _wait(team: str, reason: Fault | None, uses: Sequence[Pod]) -> Wait:
    """Return the wait of pods, at least one, with the same reason; None: none was found.

    In cause and fix only commands are between backticks. The cause is on one line.
    """
    names = [use.namespaced_name for use in uses]
    fix = with_names(reason.fix, names) if reason else ()
    oldest = min((use.created for use in uses if use.created), default="")
    return Wait(
        team=team,
        queues=sorted({use.queue for use in uses if use.queue}),
        pods=len(uses),
        gpus=sum(use.gpu_amount for use in uses),
        since=moment(oldest),
        cause=on_one_line_without_backticks(reason.cause) if reason else "",
        fix=sentence(fix),
        commands=commands_of(fix),
    )


def _why(pod: KubeObject, cluster: Cluster, snapshot: Snapshot) -> Fault | None:
    """Return why a pod waits, None if it is on its way, or a warning that this was not read.

    Raises one of MALFORMED.
    """
    try:
        return why(pod, cluster, snapshot)
    except UnreadError as error:
        cause = f"why is not known: {error}"
        return Fault(Level.ADVISORY, cluster.name, "pod", pod.namespaced_name, cause)
