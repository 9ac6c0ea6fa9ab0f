"""The objects that a stack requires in its clusters, and what happens without each."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kai_fleet.arguments import Arguments
from kai_fleet.guards import bounds, policies, queue_guard, rights
from kai_fleet.guards.limits import network_policies, quotas
from kai_fleet.monitoring import ALLOW_PROMETHEUS
from kai_fleet.queue_specs import leaves
from kai_fleet.settings import Settings
from kai_fleet.settings.sections.platform import NVIDIA
from kai_fleet.values import value_at
from kai_fleet.wording import plural
from kai_fleet_policies.model.cluster import HOST, Cluster, Team


class Required(NamedTuple):
    """An object that has to be there, for one check.

    Args:
        row: Cause and fix of `causes.yaml`.
        cluster: `host`, or the team whose vCluster it is in.
        team: The team on the host that it is of.
    """

    check: str
    kind: str
    name: str
    row: str
    cluster: str = HOST
    team: str = ""
    namespace: str | None = None

    @property
    def kinds(self) -> str:
        """The plural by which the API serves its kind."""
        return plural(2, self.kind).lower()


def required_objects(
    settings: Settings, host: Cluster, teams: Mapping[str, Team]
) -> Iterator[Required]:
    """Yield what a stack requires of its host, and for these of its teams."""
    arguments, platform = Arguments(settings), settings.platform_facts is None
    names = (*settings.teams, *settings.team_stacks)
    if platform and any(settings.own_of(name).isolation.on for name in names):
        for kind, name in _names(*policies.host_policies(beside_kai=settings.kai is not None)):
            yield Required("isolation", kind, name, "no-judge")
    clusters = (host, *(team.inside for team in teams.values()))
    for cluster in clusters:
        for check, kind, of_kind in (
            ("queues", "queue", cluster.queue_specs),
            ("shards", "SchedulingShard", cluster.scheduler.shards),
            ("shards", "Topology", cluster.scheduler.topologies),
        ):
            for name in of_kind:
                yield Required(check, kind, name, f"no-{kind}", cluster.name)
    sharing = [cluster.name for cluster in clusters if _names_runtime_class(cluster)]
    for name in dict.fromkeys([HOST, *sharing]) if sharing else ():
        row = "runtime-class-absent" if name == HOST else "runtime-class-not-copied"
        yield Required("runtime-class", "RuntimeClass", "nvidia", row, name)
    for team in teams.values():
        yield from _of_namespace(team, arguments.namespace(team.name), platform=platform)
        args = arguments.team(team.name) if team.inside.declared else None
        if args is not None and "guard" in args:  # of its queues, inside its vCluster
            every = leaves(args["queues"]["queues"])
            for kind, name in _names(*queue_guard.inside(team.name, every, args["guard"])):
                row = "no-guard-of-gpus" if "outside" in name else "no-guard"
                yield Required("guard", kind, name, row, team.name)


def _names_runtime_class(cluster: Cluster) -> bool:
    """Whether KAI's reservation pods name the class: "" in its values has them name none."""
    kai = cluster.scheduler.release
    key = kai.runtime_class_key if kai else None
    named = key is None or all(value_at(own.values, key) != "" for own in cluster.kai)
    return kai is not None and named and cluster.gpu_sharing and cluster.gpu_resource == NVIDIA


def _of_namespace(team: Team, args: Mapping[str, Any], *, platform: bool) -> Iterator[Required]:
    """The bounds on the host of a team with these TeamNamespaceArgs."""
    rows = [("ResourceQuota", name, f"no-quota-of-{name}") for name in quotas(args)]
    if team.isolated:
        rows += [("NetworkPolicy", name, "no-policy") for name in network_policies(team.name, args)]
        rows.append(("ClusterRole", f"{rights.VCLUSTER}-{team.name}", "no-role"))
    if team.isolated and platform:  # a team stack does not know what its platform's declares
        inside = args["scheduler"] == "inside"
        if inside and "monitoring" in args and args["isolation"]["network"]["enabled"]:
            rows.append(("NetworkPolicy", ALLOW_PROMETHEUS, "no-prometheus"))
        bindings = _names(bounds.node_bindings(team.name, team.namespace, args))
        rows += [(kind, name, "no-bound-of-nodes") for kind, name in bindings]
    for kind, name, row in rows:
        namespace = team.namespace if kind in ("ResourceQuota", "NetworkPolicy") else None
        yield Required("isolation", kind, name, row, team=team.name, namespace=namespace)


def _names(*groups: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    every = (each for group in groups for each in group.values())
    return [(str(each["kind"]), str(each["metadata"]["name"])) for each in every]
