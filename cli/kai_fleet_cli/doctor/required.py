"""The objects that a stack requires in its clusters, and what it means if one is not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kai_fleet.isolation import bounds, policies, queue_guard, rights
from kai_fleet.isolation.limits import network_policies, quotas
from kai_fleet.monitoring.team_monitoring import ALLOW_PROMETHEUS
from kai_fleet.queues.specs import leaves
from kai_fleet.values import value_at
from kai_fleet.wording import plural
from kai_fleet_policies.finding import Level
from kai_fleet_policies.model.cluster import HOST, ClusterModel, DeclaredTeam
from kai_fleet_stack.arguments import Arguments
from kai_fleet_stack.settings import Settings
from kai_fleet_stack.settings.sections.platform import NVIDIA

if TYPE_CHECKING:  # the components load Pulumi's Kubernetes types, which takes half a second
    from kai_fleet.isolation.team_namespace import TeamNamespaceArgs

_RUNTIME_CLASS = "nvidia"  # KAI's reservation pods name it
# What it means that a team has no ResourceQuota of this name.
_WITHOUT_QUOTA = {
    "gpus": "the team may take every GPU of its nodes",
    "pods": "nothing bounds what its pods take of the host",
    "objects": "nothing bounds its volumes, Services and what it has in etcd",
    "system-priority": "its pods may preempt those of the system",
}


class Required(NamedTuple):
    """An object that has to exist.

    Args:
        check: Name of the check that reports its absence.
        kind: Its kind, as messages write it: `queue`, `NetworkPolicy`.
        name: Its name.
        effect: What it means that the object is not there, as a clause for a message.
        cluster: `host`, or the team in whose vCluster the object is.
        team: The team whose bound on the host it is; "" for every other object.
        namespace: Its namespace; None for a cluster-scoped object.
        level: How bad it is that the object is absent, or being deleted.
    """

    check: str
    kind: str
    name: str
    effect: str
    cluster: str = HOST
    team: str = ""
    namespace: str | None = None
    level: Level = Level.MANDATORY

    @property
    def resource(self) -> str:
        """The plural of its kind in lower case, under which the API serves it: `queues`."""
        return plural(2, self.kind).lower()


def required_objects(
    settings: Settings, host: ClusterModel, teams: Mapping[str, DeclaredTeam]
) -> Iterator[Required]:
    """Yield the objects that a stack requires on its host, and on the host and in the vClusters of
    these teams. `host` is what `host_of` gives for these settings.
    """
    clusters = [host, *(team.inside for team in teams.values())]
    yield from _admission_policies(settings)
    for cluster in clusters:
        yield from _kai_objects(cluster)
    yield from _runtime_classes(clusters)
    arguments = Arguments(settings)
    is_platform = settings.platform_facts is None
    for team in teams.values():
        yield from _bounds(team, arguments.namespace(team.name), is_platform=is_platform)
        if team.inside.declared:
            yield from _queue_guard(team.name, arguments.team(team.name))


def _admission_policies(settings: Settings) -> Iterator[Required]:
    """Yield the admission policies of a host with an isolated team, and their bindings.

    Any team of the stack counts. Nothing for a team's own stack.
    """
    if settings.platform_facts is not None:
        return
    names = settings.all_teams
    if not any(settings.team_or_grant(name).isolation.is_on for name in names):
        return
    for objects in policies.host_policies(beside_kai=settings.kai is not None):
        for kind, name in _kinds_and_names(objects.values()):
            effect = "nothing judges what is created in the teams' namespaces"
            yield Required("isolation", kind, name, effect)


def _kai_objects(cluster: ClusterModel) -> Iterator[Required]:
    """Yield the queues, shards and topologies that the stack declares in a cluster.

    They are cluster-scoped. Queues of another stack are left out.
    """
    for name in cluster.queue_specs:
        effect = "its pods, and those of the queues below it, stay Pending"
        yield Required("queues", "queue", name, effect, cluster.name)
    for name in cluster.scheduler.shards:
        effect = "nothing schedules its queues"
        yield Required("shards", "SchedulingShard", name, effect, cluster.name)
    for name in cluster.scheduler.topologies:
        effect = "placement by it is impossible"
        yield Required("shards", "Topology", name, effect, cluster.name)


def _runtime_classes(clusters: Iterable[ClusterModel]) -> Iterator[Required]:
    """Yield NVIDIA's RuntimeClass on the host and in each cluster whose KAI names it.

    Nothing if no KAI names it.
    """
    names = [cluster.name for cluster in clusters if _names_runtime_class(cluster)]
    if not names:
        return
    effect = "reservation pods of shared GPUs name it, and are rejected"
    for name in dict.fromkeys([HOST, *names]):
        yield Required("runtime-class", "RuntimeClass", _RUNTIME_CLASS, effect, name)


def _names_runtime_class(cluster: ClusterModel) -> bool:
    """Whether the reservation pods of a cluster's KAI name NVIDIA's RuntimeClass.

    They do if KAI shares NVIDIA's GPUs, unless its values set the class to "". False for a version
    that the release table does not have.
    """
    release = cluster.scheduler.release
    if release is None or not cluster.scheduler.shares_gpus or cluster.gpu_resource != NVIDIA:
        return False
    key = release.runtime_class_key
    if key is None:
        return True
    return all(value_at(kai.values, key) != "" for kai in cluster.kai)


def _bounds(
    team: DeclaredTeam, args: TeamNamespaceArgs, *, is_platform: bool
) -> Iterator[Required]:
    """Yield what bounds a team on the host.

    Without isolation that is the quota of GPUs alone. `is_platform`: the stack declares the host. A
    team's own stack does not know all bounds: the policy for Prometheus and the bindings of nodes
    are left out.
    """
    for name in quotas(args):
        yield _bound(team, "ResourceQuota", name, _WITHOUT_QUOTA[name])
    if not team.isolated:
        return
    for name in network_policies(team.name, args):
        yield _bound(team, "NetworkPolicy", name, "its pods reach those of other teams")
    role = f"{rights.VCLUSTER}-{team.name}"
    yield _bound(team, "ClusterRole", role, "the vCluster cannot read what the host has")
    if not is_platform:
        return
    has_kai_inside = args["scheduler"] == "inside" and args["isolation"]["network"]["enabled"]
    if has_kai_inside and "monitoring" in args:
        effect = "Prometheus does not reach the team's KAI"
        yield _bound(team, "NetworkPolicy", ALLOW_PROMETHEUS, effect)
    bindings = bounds.node_bindings(team.name, team.namespace, args)
    for kind, name in _kinds_and_names(bindings.values()):
        yield _bound(team, kind, name, "its pods may be on nodes of other teams")


def _bound(team: DeclaredTeam, kind: str, name: str, effect: str) -> Required:
    """Return an object on the host that bounds a team; quotas and policies are in its namespace.

    `effect` is as in Required.
    """
    namespaced = kind in ("ResourceQuota", "NetworkPolicy")
    return Required(
        check="isolation",
        kind=kind,
        name=name,
        effect=effect,
        team=team.name,
        namespace=team.namespace if namespaced else None,
    )


def _queue_guard(team: str, args: Mapping[str, Any]) -> Iterator[Required]:
    """Yield the admission policies in a team's vCluster that guard its queues, if it has them.

    It has them if its TeamArgs, `args`, have the key `guard`. Their absence is a warning.
    """
    if "guard" not in args:
        return
    leaf_queues = leaves(args["queues"]["queues"])
    for objects in queue_guard.inside(team, leaf_queues, args["guard"]):
        for kind, name in _kinds_and_names(objects.values()):
            effect = "pods that name no queue, or a wrong one, are admitted and stay Pending"
            if "outside" in name:
                effect = "pods that ask for GPUs without KAI run beside the queues"
            yield Required("guard", kind, name, effect, team, level=Level.ADVISORY)


def _kinds_and_names(objects: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield kind and name of each object."""
    for item in objects:
        yield str(item["kind"]), str(item["metadata"]["name"])
