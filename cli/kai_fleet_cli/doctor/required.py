"""The objects that a stack requires in its clusters, and what happens without each."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from kai_fleet.arguments import Arguments
from kai_fleet.finding import Level
from kai_fleet.guards import bounds, policies, queue_guard, rights
from kai_fleet.guards.limits import network_policies, quotas
from kai_fleet.monitoring import ALLOW_PROMETHEUS
from kai_fleet.queue_specs import leaves
from kai_fleet.settings import Settings
from kai_fleet.settings.sections.platform import NVIDIA
from kai_fleet.values import value_at
from kai_fleet.wording import plural
from kai_fleet_policies.model.cluster import HOST, Cluster, Team

_QUOTAS: Final = {
    "gpus": "the team may take every GPU of its nodes",
    "pods": "nothing bounds what its pods take of the host",
    "objects": "nothing bounds its volumes, Services and what it has in etcd",
    "system-priority": "its pods may preempt those of the system",
}
_REACH: Final = "its pods reach those of other teams"
_JUDGES: Final = "nothing judges what is created in the teams' namespaces"
_ON_NODES: Final = "its pods may be on nodes of other teams"
_QUEUES: Final = "pods that name no queue, or a wrong one, are admitted and stay Pending"
_OUTSIDE: Final = "pods that ask for GPUs without KAI run beside the queues"


class Required(NamedTuple):
    """An object that has to be there, for one check.

    Args:
        harm: What happens without it.
        cluster: `host`, or the team whose vCluster it is in.
        team: The team on the host that it is of.
        row: Cause and fix of `causes.yaml`.
    """

    check: str
    kind: str
    name: str
    harm: str
    cluster: str = HOST
    team: str = ""
    namespace: str | None = None
    level: Level = Level.MANDATORY
    row: str = "absent"

    @property
    def kinds(self) -> str:
        """The plural by which the API serves its kind."""
        return plural(2, self.kind).lower()


def required_objects(
    settings: Settings, host: Cluster, teams: Mapping[str, Team]
) -> Iterator[Required]:
    """Yield what a stack requires of its host, and for these of its teams."""
    arguments, platform = Arguments(settings), settings.platform_facts is None
    if platform:
        yield from _of_platform(settings)
    inside = [team.inside for team in teams.values()]
    for cluster in (host, *inside):
        yield from _of_kai(cluster)
    sharing = [cluster.name for cluster in (host, *inside) if _names_runtime_class(cluster)]
    for name in [HOST, *(name for name in sharing if name != HOST)] if sharing else ():
        row = "runtime-class-absent" if name == HOST else "runtime-class-not-copied"
        yield Required("runtime-class", "RuntimeClass", "nvidia", "", name, row=row)
    for team in teams.values():
        yield from _of_namespace(team, arguments.namespace(team.name), platform=platform)
        if team.inside.declared:
            yield from _of_vcluster(team, arguments)


def _of_platform(settings: Settings) -> Iterator[Required]:
    names = (*settings.teams, *settings.team_stacks)
    if any(settings.own_of(name).isolation.on for name in names):
        of_host, bindings = policies.of_host(beside_kai=settings.kai is not None)
        for kind, name in _names((*of_host.values(), *bindings.values())):
            yield Required("isolation", kind, name, _JUDGES)


def _of_kai(cluster: Cluster) -> Iterator[Required]:
    pending = "its pods, and those of the queues below it, stay Pending"
    for check, kind, harm, names in (
        ("queues", "queue", pending, cluster.queue_specs),
        ("shards", "SchedulingShard", "nothing schedules its queues", cluster.scheduler.shards),
        ("shards", "Topology", "placement by it is impossible", cluster.scheduler.topologies),
    ):
        for name in names:
            yield Required(check, kind, name, harm, cluster.name)


def _names_runtime_class(cluster: Cluster) -> bool:
    """Whether KAI's reservation pods name the class: "" in its values has them name none."""
    kai = cluster.scheduler.release
    key = kai.runtime_class_key if kai else None
    named = key is None or all(value_at(own.values, key) != "" for own in cluster.kai)
    return kai is not None and named and cluster.gpu_sharing and cluster.gpu_resource == NVIDIA


def _of_namespace(team: Team, args: Mapping[str, Any], *, platform: bool) -> Iterator[Required]:
    """The bounds on the host of a team with these TeamNamespaceArgs."""

    def row(kind: str, name: str, harm: str, namespace: str | None = None) -> Required:
        return Required("isolation", kind, name, harm, team=team.name, namespace=namespace)

    for name in quotas(args):
        yield row("ResourceQuota", name, _QUOTAS[name], team.namespace)
    if not team.isolated:
        return
    for name in network_policies(team.name, args):
        yield row("NetworkPolicy", name, _REACH, team.namespace)
    if platform:  # a team stack does not know what its platform's declares
        inside = args["scheduler"] == "inside"
        if inside and "monitoring" in args and args["isolation"]["network"]["enabled"]:
            harm = "Prometheus does not reach the team's KAI"
            yield row("NetworkPolicy", ALLOW_PROMETHEUS, harm, team.namespace)
        for kind, name in _names(bounds.node_bindings(team.name, team.namespace, args).values()):
            yield row(kind, name, _ON_NODES)
    role = f"{rights.VCLUSTER}-{team.name}"
    yield row("ClusterRole", role, "the vCluster cannot read what the host has")


def _of_vcluster(team: Team, arguments: Arguments) -> Iterator[Required]:
    """The guard of its queues inside its vCluster."""
    args = arguments.team(team.name)
    if "guard" in args:
        every = leaves(args["queues"]["queues"])
        of_team, bindings = queue_guard.inside(team.name, every, args["guard"])
        for kind, name in _names((*of_team.values(), *bindings.values())):
            harm = _OUTSIDE if "outside" in name else _QUEUES
            yield Required("guard", kind, name, harm, team.name, level=Level.ADVISORY)


def _names(declared: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [(str(each["kind"]), str(each["metadata"]["name"])) for each in declared]
