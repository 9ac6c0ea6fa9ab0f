"""What a stack declares, as checks need it: the only place that reads settings and arguments."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, NamedTuple

from kai_fleet.existing import closed_pool
from kai_fleet.finding import Level
from kai_fleet.fleet.arguments import Arguments
from kai_fleet.fleet.cluster import Cluster, Team
from kai_fleet.fleet.declared import Declared, queues_at
from kai_fleet.guards import bounds, policies, queue_guard, rights
from kai_fleet.guards.network_policies import network_policies
from kai_fleet.guards.quotas import quotas
from kai_fleet.monitoring import ALLOW_PROMETHEUS
from kai_fleet.queue_specs import leaves
from kai_fleet.settings import Settings
from kai_fleet.values import value_at
from kai_fleet.vcluster_oidc import group_roles

_QUOTAS: Final = {
    "gpus": "the team may take every GPU of its nodes",
    "pods": "nothing bounds what its pods take of the host",
    "objects": "nothing bounds its volumes, Services and what it has in etcd",
    "system-priority": "its pods may preempt those of the system",
}
_REACH: Final = "its pods reach those of other teams"
_HARMS: Final = {
    "queue": "its pods, and those of the queues below it, stay Pending",
    "SchedulingShard": "nothing schedules its queues",
    "Topology": "placement by it is impossible",
}


class Required(NamedTuple):
    """An object that has to be there, for one check. `harm`: what happens without it."""

    check: str
    kind: str
    name: str
    harm: str
    namespace: str | None = None
    level: Level = Level.MANDATORY


@dataclass(frozen=True)
class DesiredCluster(Cluster):
    """One API server, with the objects that have to be there."""

    required: tuple[Required, ...] = ()


@dataclass(frozen=True)
class DesiredTeam(Team):
    """A team on its host, and the inside of its vCluster.

    Args:
        granted: It has a stack of its own; this one has its namespace and its bounds alone.
        labels: Labels of its namespace that isolate it.
        annotations: Those of its namespace that the policies read; None where another stack has
            them.
        network: Whether network policies isolate it.
        closed: Cause and fix where it tolerates the taints of none of its nodes.
    """

    granted: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] | None = None
    network: bool = False
    api_ports: Sequence[int] = ()
    required: tuple[Required, ...] = ()
    inside: DesiredCluster = field(default_factory=DesiredCluster)
    closed: Callable[[Sequence[Iterable[Any]]], tuple[str, str] | None] = lambda nodes: None

    @property
    def version_key(self) -> str:
        """Where the version of its vCluster is written."""
        return self.written_at("vcluster", "version")

    @property
    def workload(self) -> str:
        """What kubectl calls its control plane."""
        return self.store.workload


def host_of(settings: Settings) -> DesiredCluster:
    """The host. Of a team stack's only the team's own queues are declared."""
    declared = Declared(settings)
    if settings.platform_facts is not None:
        (team,) = settings.teams
        key, args = f"{settings.team_path(team)}.queues", Arguments(settings).team(team)
        own = queues_at(args["host_queues"], key) if "host_queues" in args else ()
        resource = settings.gpu.resource
        return _cluster(Cluster(queues=own, queues_key=key, gpu_resource=resource))
    required: list[Required] = []
    names = (*settings.teams, *settings.team_stacks)
    if any(settings.own_of(name).isolation.on for name in names):
        beside_kai = settings.kai is not None
        kinds = [policies.policy_name(kind) for kind in policies.kinds(beside_kai=beside_kai)]
        bindings = policies.shared_bindings(beside_kai=beside_kai).values()
        harm = "nothing judges what is created in the teams' namespaces"
        required += [Required("isolation", policies.POLICY, name, harm) for name in kinds]
        required += _guards("isolation", bindings, lambda name: harm)
    monitoring = settings.monitoring
    if monitoring is not None and monitoring.operator:
        harm, where = "Prometheus reads no team's KAI", monitoring.namespace
        required.append(Required("monitoring", "PodMonitor", "kai-fleet", harm, where))
    return _cluster(declared.host(tuple(map(declared.team, settings.teams))), required)


def teams_of(settings: Settings) -> dict[str, DesiredTeam]:
    """Every team of the stack, those with a stack of their own as far as they are its."""
    declared = Declared(settings)
    return {
        **{name: _team(declared.team(name), settings) for name in settings.teams},
        **{name: _team(declared.grant(name), settings) for name in settings.team_stacks},
    }


def _cluster(own: Cluster, required: Iterable[Required] = ()) -> DesiredCluster:
    names = {"queue": own.queue_specs, "SchedulingShard": own.shards, "Topology": own.topologies}
    checks = {"queue": "queues", "SchedulingShard": "shards", "Topology": "shards"}
    required = [
        *required,
        *(
            Required(checks[kind], kind, name, _HARMS[kind])
            for kind, of_kind in names.items()
            for name in of_kind
        ),
    ]
    return DesiredCluster(**_fields(own), required=tuple(required))


def _fields(own: Cluster | Team) -> dict[str, Any]:
    return {each.name: getattr(own, each.name) for each in fields(own)}


def _team(team: Team, settings: Settings) -> DesiredTeam:
    arguments, name = Arguments(settings), team.name
    granted, platform = name in settings.team_stacks, settings.platform_facts is None
    network = settings.own_of(name).isolation.network
    place, isolated = arguments.namespace(name), team.isolated
    labels = {policies.ENFORCED: "baseline", policies.ISOLATION_LABEL: str(team.level)}
    of_queues = queue_guard.host_bounds(name, place) if queue_guard.is_on_host(place) else {}
    of_pods = {"policies": place.get("guards", ""), **bounds.pod_bounds(name, place)}
    annotations: Any = policies.as_annotations({**of_queues, **of_pods})
    inside = [] if granted else [*_inside(team, arguments)]
    path = team.path
    if not platform:
        path = f"kai-fleet:teamStacks.{name} of the platform"
    own = _fields(team) | {"inside": _cluster(team.inside, inside)}
    enforced = value_at(team.values, "sync.toHost.pods.enforceTolerations")
    more: dict[str, Any] = {}
    if not (granted or enforced):
        more["closed"] = lambda nodes: closed_pool(place["tolerations"], nodes, path)
    return DesiredTeam(
        **own,
        granted=granted,
        labels=labels if isolated else {},
        annotations=annotations if platform and isolated else None,
        network=isolated and network.enabled,
        api_ports=network.api_ports if isolated and network.enabled else (),
        required=tuple(_on_host(team, place, platform=platform)),
        **more,
    )


def _inside(team: Team, arguments: Arguments) -> Iterator[Required]:
    """What guards its queues inside its vCluster, and what its groups may do there."""
    args, level = arguments.team(team.name), Level.ADVISORY
    if "guard" in args:
        of_team, bindings = queue_guard.inside(
            team.name, leaves(args["queues"]["queues"]), args["guard"]
        )
        yield from _guards("guard", (*of_team.values(), *bindings.values()), _harm, level)
    for role in group_roles(args["vcluster"].get("oidc", {}), args["vcluster"]["groups"]):
        name, namespace = role["metadata"]["name"], role["metadata"].get("namespace")
        harm = "groups may do less than declared"
        yield Required("groups", role["kind"], name, harm, namespace, level)


def _on_host(team: Team, args: Mapping[str, Any], *, platform: bool) -> Iterator[Required]:
    """What bounds a team with these TeamNamespaceArgs on the host."""
    for name in quotas(args):
        yield Required("isolation", "ResourceQuota", name, _QUOTAS[name], team.namespace)
    if not team.isolated:
        return
    for name in network_policies(team.name, args):
        yield Required("isolation", "NetworkPolicy", name, _REACH, team.namespace)
    if platform:  # a team stack does not know what its platform's declares
        inside = args["scheduler"] == "inside"
        if inside and "monitoring" in args and args["isolation"]["network"]["enabled"]:
            harm = "Prometheus does not reach the team's KAI"
            yield Required("isolation", "NetworkPolicy", ALLOW_PROMETHEUS, harm, team.namespace)
        bindings = bounds.node_bindings(team.name, team.namespace, args).values()
        on_nodes = "its pods may be on nodes of other teams"
        yield from _guards("isolation", bindings, lambda name: on_nodes)
    role = f"{rights.VCLUSTER}-{team.name}"
    yield Required("isolation", "ClusterRole", role, "the vCluster cannot read what the host has")


def _guards(
    check: str,
    declared: Iterable[Mapping[str, Any]],
    harm: Callable[[str], str],
    level: Level = Level.MANDATORY,
) -> list[Required]:
    names = [(str(guard["kind"]), str(guard["metadata"]["name"])) for guard in declared]
    return [Required(check, kind, name, harm(name), level=level) for kind, name in names]


def _harm(name: str) -> str:
    if "outside" in name:
        return "pods that ask for GPUs without KAI run beside the queues"
    return "pods that name no queue, or a wrong one, are admitted and stay Pending"
