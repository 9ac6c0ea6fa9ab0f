"""The table of checks: what each looks at, and the function that yields what is wrong.

A check that finds nothing in a cluster is one finding of level `ok`. One whose kinds this user may
not read there is left out.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from kai_fleet.cluster.kube.objects import MALFORMED, malformed
from kai_fleet.finding import Finding
from kai_fleet_cli.doctor.causes import Fault, fault, findings
from kai_fleet_cli.doctor.checks import gpu, kai, pods, teams
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot
from kai_fleet_policies.model.cluster import HOST

SECONDS: Final = 20.0  # to judge the inside of one vCluster; a large one takes less than one
# Subjects of checks: the cluster that findings are about, and the function's argument.
_SUBJECTS: Final[Mapping[str, Callable[[Snapshot], Iterable[tuple[Cluster, Any]]]]] = {
    "host": lambda read: [(read.host, read.host)],
    "cluster": lambda read: [(cluster, cluster) for cluster in read.clusters],
    "KAI": lambda read: [(cluster, cluster) for cluster in read.clusters if cluster.kai],
    "team": lambda read: [(read.host, team) for team in read.teams.values()],
    "vCluster": lambda read: [(team.inside, team) for team in read.teams.values() if team.inside],
}


class Check(NamedTuple):
    """A check: its name, its subject, the kinds that it reads, and its function."""

    name: str
    subject: str
    kinds: tuple[str, ...]
    run: Callable[[Any, Snapshot], Iterable[Fault]]
    ahead: bool = False  # it judges what no update makes, so a preview asks it, too


def unreadable(cluster: Cluster, _: Snapshot) -> Iterator[Fault]:
    """Kinds that this user may not read, or that a busy API server does not give."""
    for reason in list(cluster.unreadable.values())[:1]:
        row = "read-busy" if reason.startswith("429") else "read-access"
        yield fault(row, cluster, ", ".join(sorted(cluster.unreadable)), reason=reason)


# Besides these, what the stack requires: see `required.py`.
CHECKS: Final = (
    Check("readable", "cluster", (), unreadable),
    Check("kubernetes", "cluster", (teams.GUARDS,), teams.kubernetes, ahead=True),
    Check("nodes", "host", ("nodes",), gpu.nodes, ahead=True),
    Check("nodes", "team", ("nodes",), gpu.pool, ahead=True),
    Check("nodes", "vCluster", ("nodes",), gpu.inside),
    Check("gpu-stack", "host", ("daemonsets", "pods"), gpu.daemon_sets),
    Check("gpu-stack", "host", ("nodes", "pods"), gpu.plugins),
    Check("vcluster", "team", (), teams.vcluster),
    Check("isolation", "team", ("namespaces",), teams.isolation),
    Check("network-plugin", "host", ("daemonsets", "nodes", "services"), teams.network, True),
    Check("classes", "team", tuple(teams.CLASSES), teams.classes, ahead=True),
    Check("kai-parts", "KAI", ("deployments",), kai.parts),
    Check("webhooks", "cluster", ("services",), kai.webhooks),
    Check("leftovers", "cluster", ("namespaces",), teams.stuck),
    Check("leftovers", "host", ("namespaces",), teams.removed),
    Check("leftovers", "cluster", (), kai.leftovers),
    Check("queues", "KAI", ("queues",), kai.queues),
    Check("shards", "KAI", ("nodes",), kai.shards),
    Check("pending", "cluster", (), pods.waiting),
    Check("workload-known-keys", "cluster", (), pods.wrong_keys),
    Check("refused", "cluster", (), pods.refused),
    Check("pod-groups", "KAI", ("podgroups",), pods.without_group),
    Check("gpu-sharing", "KAI", (), gpu.sharing),
    Check("reservation", "KAI", ("pods",), gpu.reservations),
)
AHEAD: Final = frozenset(kind for check in CHECKS if check.ahead for kind in check.kinds)


def examine(snapshot: Snapshot, without: str = "") -> list[Finding]:
    """The findings of all checks, or all but one.

    The API server of a vCluster is its tenant's, and may answer objects that no Kubernetes has:
    that is a finding, and the other checks run all the same.
    """
    found: dict[tuple[str, str], list[Fault]] = {}
    left: dict[str, float] = defaultdict(lambda: SECONDS)
    left[HOST] = math.inf
    for check in (row for row in CHECKS if row.name != without and row.ahead >= snapshot.ahead):
        for cluster, subject in _SUBJECTS[check.subject](snapshot):
            if cluster.unreadable.keys() & set(check.kinds) or left[cluster.name] <= 0:
                continue
            begun = time.monotonic()
            ends = begun + left[cluster.name]
            try:
                name, faults = check.name, list(in_time(check.run(subject, snapshot), ends))
            except MALFORMED as error:
                if cluster is snapshot.host:
                    raise
                cause = malformed(error)
                name, faults = "vcluster", [fault("malformed", cluster, cluster.name, cause=cause)]
            found.setdefault((name, cluster.name), []).extend(faults)
            left[cluster.name] -= time.monotonic() - begun
            if left[cluster.name] <= 0:
                late = fault("too-large", cluster, cluster.name, seconds=f"{SECONDS:.0f}")
                found.setdefault(("vcluster", cluster.name), []).append(late)
    for name, cluster_name, faults in _required(snapshot):
        found.setdefault((name, cluster_name), []).extend(faults)
    return [each for place, faults in found.items() for each in findings(*place, faults)]


def in_time(faults: Iterable[Fault], ends: float) -> Iterator[Fault]:
    """The faults that are found until then, by the monotonic clock."""
    for each in faults:
        yield each
        if time.monotonic() > ends:
            return


def _required(snapshot: Snapshot) -> Iterator[tuple[str, str, list[Fault]]]:
    """The check, the cluster and the faults of each object that the stack requires."""
    clusters = {cluster.name: cluster for cluster in snapshot.clusters}
    for row in snapshot.required:
        cluster, state = clusters.get(row.cluster), snapshot.teams.get(row.team)
        comes = snapshot.ahead and (row.check != "runtime-class" or gpu.stack_comes(snapshot))
        if comes or cluster is None or row.kinds in cluster.unreadable:
            continue
        if row.check in ("isolation", "guard") and row.kinds not in cluster.objects:
            continue  # the check `kubernetes` reports it
        if state and cluster.named("namespaces", state.team.namespace) is None:
            continue  # the check `vcluster` reports the namespace
        name = f"{row.namespace}/{row.name}" if row.namespace else row.name
        exists = cluster.named(row.kinds, row.name, row.namespace) is not None
        faults = [] if exists else [fault(row.row, cluster, name, kind=row.kind)]
        yield row.check, row.cluster, faults
