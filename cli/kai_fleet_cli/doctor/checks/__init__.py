"""The table of checks: what each reads, and the function that yields what is wrong.

A check that finds nothing in a cluster is one finding of level `ok`. One whose kinds this user may
not read there is left out.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from kai_fleet.finding import Finding, Level
from kai_fleet.kube.objects import MALFORMED, malformed
from kai_fleet_cli.doctor.causes import Fault, fault, findings
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

# What a check looks at, with the cluster that its findings are about.
Subjects: TypeAlias = Callable[[Snapshot], Iterable[tuple[Cluster, Any]]]


def host(snapshot: Snapshot) -> list[tuple[Cluster, Cluster]]:
    """The host."""
    return [(snapshot.host, snapshot.host)]


def clusters(snapshot: Snapshot) -> list[tuple[Cluster, Cluster]]:
    """Every cluster that answered."""
    return [(cluster, cluster) for cluster in snapshot.clusters]


def with_kai(snapshot: Snapshot) -> list[tuple[Cluster, Cluster]]:
    """Those that run a KAI, or should."""
    return [(cluster, cluster) for cluster in snapshot.clusters if cluster.kai is not None]


def teams(snapshot: Snapshot) -> list[tuple[Cluster, TeamState]]:
    """Every team, on the host."""
    return [(snapshot.host, team) for team in snapshot.teams.values()]


def vcluster(snapshot: Snapshot) -> list[tuple[Cluster, TeamState]]:
    """Every team whose vCluster answered, inside."""
    return [(team.inside, team) for team in snapshot.teams.values() if team.inside is not None]


@dataclass(frozen=True)
class Check:
    """One check: its name, what it looks at, the kinds it needs, and its function."""

    name: str
    subjects: Subjects
    kinds: tuple[str, ...]
    run: Callable[[Any, Snapshot], Iterable[Fault]]


def readable(cluster: Cluster, _: Snapshot) -> Iterator[Fault]:
    """Kinds that this user may not read."""
    for reason in list(cluster.unreadable.values())[:1]:
        yield fault("read-access", cluster, ", ".join(sorted(cluster.unreadable)), reason=reason)


CHECKS: Final = (
    Check("readable", clusters, (), readable),
    Check("nodes", host, ("nodes",), nodes.nodes),
    Check("nodes", teams, ("nodes",), nodes.pool),
    Check("nodes", vcluster, ("nodes",), nodes.inside),
    Check("gpu-stack", host, ("daemonsets", "pods"), gpu.daemon_sets),
    Check("runtime-class", clusters, ("runtimeclasses",), gpu.runtime_class),
    Check("vcluster", teams, (), vclusters.vcluster),
    Check("isolation", host, (), isolation.shared),
    Check("isolation", teams, ("namespaces",), isolation.team),
    Check("network-plugin", host, ("daemonsets", "nodes"), isolation.network),
    Check("monitoring", host, (), isolation.monitoring),
    Check("guard", vcluster, (), isolation.guard),
    Check("kai-parts", with_kai, ("deployments",), kai.parts),
    Check("webhooks", clusters, ("services",), kai.webhooks),
    Check("leftovers", clusters, ("namespaces",), leftovers.cluster),
    Check("leftovers", host, ("namespaces",), leftovers.host),
    Check("queues", with_kai, ("queues",), queues.queues),
    Check("shards", with_kai, ("nodes",), queues.shards),
    Check("pending", clusters, (), pods.waiting),
    Check("workload-known-keys", clusters, (), pods.wrong_keys),
    Check("refused", clusters, (), pods.refused),
    Check("pod-groups", with_kai, ("podgroups",), pods.without_group),
    Check("gpu-sharing", with_kai, (), gpu.sharing),
    Check("reservation", with_kai, ("pods",), gpu.reservations),
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
        for cluster, subject in check.subjects(snapshot):
            if not cluster.unreadable.keys() & set(check.kinds):
                faults.setdefault(cluster.name, []).extend(check.run(subject, snapshot))
        for cluster_name, found in faults.items():
            yield from findings(check.name, cluster_name, found)
            if not found:
                yield Finding(Level.OK, cluster_name, "check", check.name, "", check=check.name)


def _usable(snapshot: Snapshot, team: TeamState) -> TeamState:
    """The team, without the inside of its vCluster where that cannot be examined."""
    try:
        list(_examine(replace(snapshot, teams={team.desired.name: team}), ""))
    except MALFORMED as error:
        return replace(team, inside=None, unreached=malformed(error)) if team.inside else team
    return team
