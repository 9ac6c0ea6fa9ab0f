"""What a stack declares, as the checks need it: the only place that reads the fleet's model."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kai_fleet.finding import Level
from kai_fleet.fleet import taints
from kai_fleet.fleet.judged import JudgedCluster, JudgedTeam
from kai_fleet.fleet.model import DeclaredCluster, DeclaredTeam, Fleet
from kai_fleet.guards import policies
from kai_fleet.guards.host_rules import node_bindings
from kai_fleet.isolation import network_policies, team_quotas, vcluster_rights
from kai_fleet.monitoring.prometheus import LET_IN
from kai_fleet.releases import DISABLED
from kai_fleet.vcluster.oidc import group_roles

# Bounds that only the guard of queues reads: on the host, where its KAI is.
_OF_QUEUES: Final = frozenset({"allowed", "podGroups", "sharing", "become", "gpuResource"})
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
class DesiredCluster(JudgedCluster):
    """One API server. `teams` are known there, `grants` the parent queues of team stacks."""

    required: tuple[Required, ...] = ()
    shards: Sequence[str] = ()
    topologies: Mapping[str, Sequence[str]] = field(default_factory=dict)
    teams: frozenset[str] = frozenset()
    grants: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def gpu_sharing(self) -> bool:
        """Whether its KAI lets pods share GPUs."""
        return self.sharing != DISABLED


@dataclass(frozen=True)
class DesiredTeam(JudgedTeam):
    """A team on its host, and the inside of its vCluster.

    Args:
        granted: It has a stack of its own; this one has its namespace and its bounds alone.
        kinds: Its quota, by the names of the resources.
        labels: Labels of its namespace that isolate it.
        bounds: Annotations of its namespace that the policies read; None where another stack has
            them.
        network: Whether network policies isolate it.
        closed: Cause and fix where it tolerates the taints of none of its nodes.
    """

    namespace: str = ""
    granted: bool = False
    control_pool: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    bounds: Mapping[str, str] | None = None
    network: bool = False
    api_ports: Sequence[int] = ()
    required: tuple[Required, ...] = ()
    inside: DesiredCluster = field(default_factory=DesiredCluster)
    version: str | None = None
    version_key: str = ""
    workload: str = "statefulset"
    access: str | None = None
    endpoint: str | None = None
    led_by_name: bool = False
    closed: Callable[[Sequence[Iterable[Any]]], tuple[str, str] | None] = lambda nodes: None


def host_of(fleet: Fleet) -> DesiredCluster:
    """The host. Of a team stack's only the team's own queues are declared."""
    if fleet.platform:
        team = fleet.teams[fleet.own_team]
        queues = team.host_queues if team.parent_queue else ()
        own = DeclaredCluster(queues=queues, queues_key=f"{team.path}.queues")
        return _cluster(own, gpu_resource=fleet.host.gpu_resource)
    every = fleet.every_team
    required: list[Required] = []
    if any(team.isolated and team.rules is not None for team in every.values()):
        beside_kai = fleet.host.release is not None
        names = [policies.policy_name(kind) for kind in policies.kinds(beside_kai=beside_kai)]
        bindings = policies.shared_bindings(beside_kai=beside_kai).values()
        harm = "nothing judges what is created in the teams' namespaces"
        required += [Required("isolation", policies.POLICY, name, harm) for name in names]
        required += _guards("isolation", bindings, lambda name: harm)
    monitoring = fleet.host.monitoring
    if monitoring is not None and monitoring.operator:
        harm, where = "Prometheus reads no team's KAI", monitoring.namespace
        required.append(Required("monitoring", "PodMonitor", "kai-fleet", harm, where))
    grants = {team.name: team.parent_queue for team in fleet.grants.values()}
    return _cluster(fleet.host, required, teams=frozenset(every), grants=grants)


def teams_of(fleet: Fleet) -> dict[str, DesiredTeam]:
    """Every team of the stack, those with a stack of their own as far as they are its."""
    monitored = fleet.host.monitoring is not None
    return {name: _team(team, monitored=monitored) for name, team in fleet.every_team.items()}


def _cluster(
    own: DeclaredCluster, required: Iterable[Required] = (), **more: Any
) -> DesiredCluster:
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
    same = ("name", "path", "kai", "queues", "pools", "gpu_resource", "key", "queues_key")
    fields = {key: getattr(own, key) for key in (*same, "declared", "shards", "topologies")}
    return DesiredCluster(**fields | {"required": tuple(required)} | more)


def _team(team: DeclaredTeam, *, monitored: bool) -> DesiredTeam:
    own = team.isolation.network if team.isolated and team.isolation is not None else None
    rules = team.rules if team.isolated else None
    bounds = policies.as_annotations(rules.parameters()) if rules is not None else None
    guards = _guards("guard", team.guards, _harm, Level.ADVISORY)
    roles = (
        Required(
            "groups", it["kind"], it["metadata"]["name"], "groups may do less than declared"
        )._replace(namespace=it["metadata"].get("namespace"), level=Level.ADVISORY)
        for it in group_roles(team)
    )
    same = (
        *("name", "path", "mode", "queue", "node_pool", "gpus", "slices", "pools", "declared"),
        *("namespace", "granted", "control_pool", "kinds", "version"),
    )
    access = team.access
    return DesiredTeam(
        **{key: getattr(team, key) for key in same},
        labels={policies.ENFORCED: "baseline", policies.ISOLATION_LABEL: str(team.level)}
        if team.isolated
        else {},
        bounds=bounds and {k: v for k, v in bounds.items() if not is_of_queues(k)},
        network=own is not None and own.enabled,
        api_ports=own.api_ports if own is not None and own.enabled else (),
        required=tuple(_on_host(team, monitored=monitored)),
        inside=_cluster(team.inside, [*guards, *roles]),
        version_key=team.written_at("vcluster", "version"),
        workload=team.store.workload,
        access=access.type if access is not None else None,
        endpoint=access.endpoint if access is not None else None,
        led_by_name=access is not None and access.led_by_name,
        closed=lambda nodes: taints.closed_pool(team, nodes),
    )


def is_of_queues(annotation: str) -> bool:
    """Whether only the guard of queues reads a bound."""
    return annotation.removeprefix(policies.BOUNDS) in _OF_QUEUES


def _on_host(team: DeclaredTeam, *, monitored: bool) -> Iterator[Required]:
    """What bounds a team on the host."""
    quotas = team_quotas.quotas(team) if team.isolated else ("gpus",)
    for name in quotas:
        yield Required("isolation", "ResourceQuota", name, _QUOTAS[name], team.namespace)
    if not team.isolated or team.isolation is None:
        return
    if team.isolation.network.enabled:
        for name in network_policies.of_team(team):
            yield Required("isolation", "NetworkPolicy", name, _REACH, team.namespace)
        if monitored and team.rules is not None and team.rules.names_nodes:
            harm = "Prometheus does not reach the team's KAI"
            yield Required("isolation", "NetworkPolicy", LET_IN, harm, team.namespace)
    if team.rules is not None:  # a team stack does not know what its platform's declares
        bindings = node_bindings(team.rules, team.namespace).values()
        on_nodes = "its pods may be on nodes of other teams"
        yield from _guards("isolation", bindings, lambda name: on_nodes)
    role = vcluster_rights.called(team.name)
    yield Required("isolation", "ClusterRole", role, "the vCluster cannot read what the host has")


def _guards(
    check: str,
    declared: Iterable[Mapping[str, Any]],
    harm: Callable[[str], str],
    level: Level = Level.MANDATORY,
) -> list[Required]:
    names = [(str(it["kind"]), str(it["metadata"]["name"])) for it in declared]
    return [Required(check, kind, name, harm(name), level=level) for kind, name in names]


def _harm(name: str) -> str:
    if "outside" in name:
        return "pods that ask for GPUs without KAI run beside the queues"
    return "pods that name no queue, or a wrong one, are admitted and stay Pending"
