"""The GPUs of a stack at one moment, from the doctor's snapshot and findings.

GPUs in use are counted on the host, where no tenant can hide a pod. There a GPU that a vCluster's
KAI shares counts as one, which its reservation pod holds. Queues and waiting pods are counted in
the cluster of their scheduler.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime

from kai_fleet.backup.arguments import VERIFY
from kai_fleet_cli.doctor.checks import examine
from kai_fleet_cli.doctor.read import read_clusters, source_of_stack
from kai_fleet_cli.doctor.snapshot import COUNTED, Cluster, Snapshot, TeamState, UnreadError
from kai_fleet_cli.report.pools import node_pools
from kai_fleet_cli.report.records import Pool, QueueRow, Report, Team, Wait
from kai_fleet_cli.report.waits import waits_in
from kai_fleet_policies.finding import Finding
from kai_fleet_policies.model.cluster import DeclaredTeam
from kai_usage.pods import read_pods
from kai_usage.queues import Queue
from kai_usage.times import moment


def read_report(stack: str) -> Report:
    """Read a stack's clusters and report on them.

    Raises:
        UserError: As `source_of_stack`.
        UnreachableError, one of MALFORMED: As `read_clusters`.
    """
    snapshot = read_clusters(source_of_stack(stack))
    return build_report(stack, snapshot, examine(snapshot, without="pending"))


def build_report(stack: str, snapshot: Snapshot, findings: Sequence[Finding]) -> Report:
    """Return the report on a snapshot.

    Waits are sorted by GPUs, most first, then by pods. Raises one of MALFORMED.

    Args:
        stack: Name of the stack.
        snapshot: What was read of its clusters.
        findings: Those of `examine`, without the check `pending`.
    """
    host = snapshot.host
    waits = sorted(waits_in(snapshot), key=lambda wait: (-wait.gpus, -wait.pods))
    pools: list[Pool] | None = None
    if not host.unread("nodes", "pods"):
        pools = list(node_pools(snapshot))
    return Report(
        stack=stack,
        time=host.now,
        teams=[_team(state, host, waits) for state in snapshot.teams.values()],
        queues=_queues(snapshot),
        pools=pools,
        waits=waits,
        findings=findings,
        missing=list(_missing(snapshot)),
    )


def _missing(snapshot: Snapshot) -> Iterator[str]:
    """Yield clauses about what was not read: vClusters, lists in them, lists of the host.

    Of each cluster only the first list that lacks is named, of the host for a whole host only.
    """
    for name, state in snapshot.teams.items():
        if state.unreached:
            yield f"team {name}: {state.unreached}"
    for cluster in snapshot.insides:
        if unread := cluster.unread(*COUNTED):
            yield f"team {cluster.name}: {unread}"
    unread = snapshot.host.unread("nodes", "pods", *COUNTED)
    if unread and snapshot.sees_whole_host:
        yield f"host: {unread}"


def _queues(snapshot: Snapshot) -> dict[str, list[QueueRow]]:
    """Return the queues by cluster, `the host` or a team's name.

    Without clusters that have none, or of which one of COUNTED was not read.
    """
    queues = dict[str, list[QueueRow]]()
    for cluster in snapshot.clusters:
        if not cluster.unread(*COUNTED) and cluster.usage.queues:
            name = "the host" if cluster is snapshot.host else cluster.name
            queues[name] = [_queue_row(queue) for queue in cluster.usage.queues.values()]
    return queues


def _queue_row(queue: Queue) -> QueueRow:
    """Return a queue's GPUs with those of all queues below it."""
    share = queue.shares["gpu"]
    return QueueRow(
        name=queue.name,
        parent=queue.parent,
        level=queue.level,
        leaf=not queue.children,
        quota=share.quota,
        limit=share.limit,
        in_use=share.in_use,
        waiting=share.waiting,
        display_name=queue.display_name,
    )


def _team(state: TeamState, host: Cluster, waits: Iterable[Wait]) -> Team:
    """Return a team's GPUs. `waits` are those of all teams.

    If none of them is the team's, 0 GPUs wait if COUNTED were read in its vCluster, else the number
    is unknown.
    """
    team = state.team
    gpus_waiting = [wait.gpus for wait in waits if wait.team == team.name]
    is_read = state.inside is not None and not state.inside.unread(*COUNTED)
    return Team(
        name=team.name,
        promised=float(team.gpus or 0),
        in_use=_gpus_held(team, host),
        waiting=sum(gpus_waiting) if gpus_waiting or is_read else None,
        scheduler=_scheduler(state, host),
        verified=_verified(team.name, host),
    )


def _verified(team: str, host: Cluster) -> datetime | None:
    """When the team's last backup was verified; None if none was, or if that was not read."""
    with suppress(UnreadError):
        cron_job = host.find("cronjobs", f"{VERIFY}-{team}")
        if cron_job is not None:
            return moment(cron_job.status.get("lastSuccessfulTime"))
    return None


def _scheduler(state: TeamState, host: Cluster) -> str:
    """Return the scheduler of a team's pods in words, with the version of KAI that runs if it is
    known. Of a team with a stack of its own that is not looked at.
    """
    if state.declared_elsewhere:
        return "KAI of its own stack"
    if state.team.mode == "default":
        return "Kubernetes"
    cluster: Cluster | None = host
    name = "the host's KAI"
    if state.team.mode == "virtual":
        cluster = state.inside
        name = "KAI"
    with suppress(UnreadError):
        if cluster is not None and cluster.version:
            return f"{name} {cluster.version}"
    return name


def _gpus_held(team: DeclaredTeam, host: Cluster) -> float | None:
    """Return the GPUs that a team's pods hold on the host; None if that was not read.

    MIG slices count as KAI counts them. In mode host fractions of shared GPUs count as fractions.
    Else a shared GPU counts as one, which its reservation pod holds.
    """
    try:
        if team.mode == "host":
            return host.gpus_held_in(team.namespace)
        copies = read_pods(host.within("pods", team.namespace))
    except UnreadError:
        return None
    return sum(pod.gpu.whole + pod.gpu.mig for pod in copies if not pod.waits)
