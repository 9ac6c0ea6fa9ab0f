"""The table of checks: what each reads, and the function that yields what is wrong.

A check that finds nothing in a cluster is one finding of level `ok`. One whose kinds this user may
not read there is left out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from kai_fleet.finding import Finding, Level
from kai_fleet.kube.objects import MALFORMED, malformed
from kai_fleet_cli.doctor.causes import Fault, absent, findings, unreadable
from kai_fleet_cli.doctor.checks import (
    gpu,
    isolation,
    kai,
    leftovers,
    nodes,
    pods,
    queues,
    vclusters,
)
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, TeamState

# What checks look at: the cluster that findings are about, and what their function gets.
_SUBJECTS: Final[Mapping[str, Callable[[Snapshot], Iterable[tuple[Cluster, Any]]]]] = {
    "host": lambda read: [(read.host, read.host)],
    "cluster": lambda read: [(cluster, cluster) for cluster in read.clusters],
    "KAI": lambda read: [(cluster, cluster) for cluster in read.clusters if cluster.kai],
    "team": lambda read: [(read.host, team) for team in read.teams.values()],
    "vCluster": lambda read: [(team.inside, team) for team in read.teams.values() if team.inside],
}


@dataclass(frozen=True)
class Check:
    """One check: its name, what it looks at, the kinds it needs, and its function.

    Without a function it yields the objects that the stack requires and that are not there.
    """

    name: str
    subject: str
    kinds: tuple[str, ...] = ()
    run: Callable[[Any, Snapshot], Iterable[Fault]] | None = None


CHECKS: Final = (
    Check("readable", "cluster", (), lambda cluster, _: unreadable(cluster)),
    Check("nodes", "host", ("nodes",), nodes.nodes),
    Check("nodes", "team", ("nodes",), nodes.pool),
    Check("nodes", "vCluster", ("nodes",), nodes.inside),
    Check("gpu-stack", "host", ("daemonsets", "pods"), gpu.daemon_sets),
    Check("runtime-class", "cluster", ("runtimeclasses",), gpu.runtime_class),
    Check("vcluster", "team", (), vclusters.vcluster),
    Check("isolation", "cluster"),
    Check("isolation", "team", ("namespaces",), isolation.team),
    Check("network-plugin", "host", ("daemonsets", "nodes"), isolation.network),
    Check("monitoring", "cluster"),
    Check("guard", "cluster"),
    Check("groups", "cluster"),
    Check("kai-parts", "KAI", ("deployments",), kai.parts),
    Check("webhooks", "cluster", ("services",), kai.webhooks),
    Check("leftovers", "cluster", ("namespaces",), leftovers.cluster),
    Check("leftovers", "host", ("namespaces",), leftovers.host),
    Check("queues", "cluster"),
    Check("queues", "KAI", ("queues",), queues.queues),
    Check("shards", "cluster"),
    Check("shards", "KAI", ("nodes",), queues.shards),
    Check("pending", "cluster", (), pods.waiting),
    Check("workload-known-keys", "cluster", (), pods.wrong_keys),
    Check("refused", "cluster", (), pods.refused),
    Check("pod-groups", "KAI", ("podgroups",), pods.without_group),
    Check("gpu-sharing", "KAI", (), gpu.sharing),
    Check("reservation", "KAI", ("pods",), gpu.reservations),
)


def examine(snapshot: Snapshot, without: str = "") -> list[Finding]:
    """The findings of all checks, or all but one, in their order.

    The API server of a vCluster is its tenant's, and may answer objects that no Kubernetes has.
    Such a vCluster counts as not reached; the others are examined all the same.
    """
    try:
        return list(_examine(snapshot, without))
    except MALFORMED:
        usable = {name: _usable(snapshot, team) for name, team in snapshot.teams.items()}
        if all(team is snapshot.teams[name] for name, team in usable.items()):
            raise
        return list(_examine(replace(snapshot, teams=usable), without))


def _examine(snapshot: Snapshot, without: str) -> Iterator[Finding]:
    for check in (check for check in CHECKS if check.name != without):
        faults: dict[str, list[Fault]] = {}
        for cluster, subject in _SUBJECTS[check.subject](snapshot):
            if cluster.unreadable.keys() & set(check.kinds):
                continue
            required = cluster.desired.required
            if check.run is not None:
                found = check.run(subject, snapshot)
            elif any(row.check == check.name for row in required):
                found = absent(cluster, required, check.name)
            else:
                continue
            faults.setdefault(cluster.name, []).extend(found)
        for cluster_name, of_cluster in faults.items():
            yield from findings(check.name, cluster_name, of_cluster)
            if not of_cluster:
                yield Finding(Level.OK, cluster_name, "check", check.name, "", check=check.name)


def _usable(snapshot: Snapshot, team: TeamState) -> TeamState:
    """The team, without the inside of its vCluster where that cannot be examined."""
    try:
        list(_examine(replace(snapshot, teams={team.desired.name: team}), ""))
    except MALFORMED as error:
        return replace(team, inside=None, unreached=malformed(error)) if team.inside else team
    return team
