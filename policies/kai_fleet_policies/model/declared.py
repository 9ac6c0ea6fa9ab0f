"""The clusters that the settings of a stack declare, as rules read them: paths are keys."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from kai_fleet.arguments import Arguments
from kai_fleet.deployed import Deployed, named
from kai_fleet.inputs import without_none
from kai_fleet.names import VIRTUAL_CLUSTER
from kai_fleet.queue_specs import every_spec, labels_of
from kai_fleet.releases import DEFAULT_VCLUSTER
from kai_fleet.releases.sharing import mode_in
from kai_fleet.settings import Settings, key_path
from kai_fleet.settings.sections.access import Access
from kai_fleet.settings.sections.platform import HostKai
from kai_fleet.settings.sections.teams import Scheduler
from kai_fleet.settings.team_stack import Facts
from kai_fleet.vcluster_stores import store_of
from kai_fleet.vcluster_values import argument_values
from kai_fleet_policies.model.cluster import HOST, Chart, Cluster, Kai, Running, Team
from kai_fleet_policies.model.pods import PodTemplate, workloads
from kai_fleet_policies.model.queues import UNLIMITED, DeclaredQueue, QueueShare, Resource, shares

_BOUNDS: Final = ("cpu", "memory", "ephemeral_storage")
# What rules read as it is written.
_OF_VCLUSTER: Final = ("chart", "values", "licensed", "untested")
_OF_KAI: Final = ("version", "values", "untested", "chart", "topologies")


def clusters_of(settings: Settings, state: Deployed | None = None) -> list[Cluster]:
    """The host first, then the vClusters with a KAI of their own, then those with pods that the
    host's places.

    Args:
        state: what the stack has, where that is known.
    """
    declared = Declared(settings, state)
    teams = {name: declared.team(name) for name in settings.teams}
    host = declared.host(tuple(teams.values()))
    own, placed_by_host = [], []
    for name, team in teams.items():
        inside = replace(team.inside, workloads=tuple(_pods(settings, name)))
        if inside.kai:
            own.append(inside)
        elif inside.workloads:
            by = host if team.mode == "host" else None
            placed_by_host.append(replace(inside, scheduled_by=by, team_queue=team.queue))
    return [host, *own, *placed_by_host]


class Declared:
    """The clusters and teams of a stack, one by one."""

    def __init__(self, settings: Settings, state: Deployed | None = None) -> None:
        self.settings, self.state = settings, state or Deployed()
        self.arguments = Arguments(settings)

    def host(self, teams: tuple[Team, ...]) -> Cluster:
        """The host cluster; of a team stack as far as the team may know it."""
        settings, kai = self.settings, self.settings.kai
        host = Cluster(
            HOST,
            path=key_path(("cluster",)),
            teams=teams,
            sources=settings.sources.known,
            gpu_resource=settings.gpu.resource,
            kai=(self._kai(kai, key_path(("kai",))),) if kai is not None else (),
        )
        if settings.platform_facts is not None:
            (team,) = teams
            queues = self._granted_queues(settings.platform_facts, team)
            return replace(host, queues=queues, platform=settings.platform_stack)
        return replace(
            host,
            declared=True,
            queues=queues_at(self.arguments.host_queues(), key_path(("queues",))),
            grants=tuple(self.grant(name) for name in settings.team_stacks),
            charts=tuple(_charts(settings)),
        )

    def _granted_queues(self, facts: Facts, team: Team) -> tuple[DeclaredQueue, ...]:
        """The queue that a team stack is granted, with its GPUs, and those above it; and the queues
        that it makes below.
        """
        grant, free, path = facts.teams.get(team.name), QueueShare(UNLIMITED), f"{team.path}.queues"
        if grant is None or grant.parent_queue is None:
            return ()
        queues = list[DeclaredQueue]()
        for name in (*grant.above, grant.parent_queue):
            gpu = free if name in grant.above else QueueShare(grant.counted, grant.counted)
            own: dict[Resource, QueueShare] = {"cpu": free, "memory": free, "gpu": gpu}
            above = queues[-1].name if queues else None
            queues.append(DeclaredQueue(name, above, own, path=path, shard=grant.shard))
        args = self.arguments.team(team.name).get("host_queues", {"queues": {}})
        return (*queues, *queues_at(args, path))

    def grant(self, name: str) -> Team:
        """The place of a team with a stack of its own, which chooses the mode."""
        settings = self.settings
        return replace(
            self._on_host(name),
            path=key_path(("teamStacks", name)),  # of a team of this stack with its name, too
            mode="virtual" if settings.kai is None else "host",
            parent_queue=settings.team_stacks[name].parent_queue,
            inside=Cluster(gpu_resource=settings.gpu.resource),
        )

    def team(self, name: str) -> Team:
        """A team that this stack runs."""
        settings, own = self.settings, self.settings.teams[name]
        vcluster, facts = own.vcluster, settings.platform_facts
        values = argument_values(self.arguments.vcluster(name) | {"values": vcluster.values})
        release = named(VIRTUAL_CLUSTER, f"{name}-release")
        version, store = self.state.versions.get(release), self.state.stores.get(release)
        return replace(
            self._on_host(name),
            **{key: getattr(vcluster, key) for key in _OF_VCLUSTER},
            mode=own.scheduler.mode,
            queue=own.queue,
            pools=own.pools,
            parent_queue=facts.granted_queue(name)[0] if facts else None,
            version=vcluster.version or DEFAULT_VCLUSTER,
            chart_values=values,
            access=vcluster.access or Access(),
            store=store_of(values),
            guard=own.scheduler.mode == "virtual" and settings.guard.mode != "off",
            # The chart's version has no v.
            runs=Running(f"v{version}" if version else None, store) if version or store else None,
            inside=self._inside(name),
        )

    def _on_host(self, name: str) -> Team:
        """A team's namespace and its bounds, whichever stack runs it."""
        settings, own = self.settings, self.settings.own_of(name)
        bounds = without_none({key: getattr(own.isolation.bounds, key) for key in _BOUNDS})
        return Team(
            name,
            path=settings.team_path(name),
            where=partial(settings.written_at, name),
            declared=True,
            namespace=f"team-{name}",
            node_pool=dict(own.node_pool),
            control_pool=self.arguments.control_pool(name),
            gpus=own.counted,
            slices=own.slices,
            level=own.isolation.level,
            bounds={key.replace("_", "-"): str(most) for key, most in bounds.items()}
            if own.isolation.on
            else {},
        )

    def _inside(self, name: str) -> Cluster:
        settings, path = self.settings, self.settings.team_path(name)
        team = settings.teams[name]
        inside = Cluster(
            name,
            path=path,
            gpus=team.counted,
            pools=team.gpus_by_pool,
            declared=True,
            gpu_resource=settings.gpu.resource,
            key=f"{path}.scheduler",
            queues_key=f"{path}.queues",
        )
        if team.scheduler.mode != "virtual":
            return inside
        return replace(
            inside,
            guarded=settings.guard.mode == "deny",
            kai=(self._kai(team.scheduler, inside.key),),
            queues=queues_at(self.arguments.queues(name), inside.queues_key),
        )

    def _kai(self, own: HostKai | Scheduler, path: str) -> Kai:
        return Kai(
            **{key: getattr(own, key) for key in _OF_KAI},
            sharing=mode_in(own.version or "", own.values) or self.settings.sharing_of(own),
            path=path,
            shards=tuple(own.shards),
            fairshare=own.fairshare is not None,
            registries=self.settings.registries if isinstance(own, HostKai) else {},
        )


def queues_at(args: Mapping[str, Any], path: str) -> tuple[DeclaredQueue, ...]:
    """The queues of QueueTreeArgs that are written at a path, parents before their children."""
    queues, given = args["queues"], (args.get(key) for key in ("gpus", "pools", "parent"))
    labels, places = labels_of(queues), _places(queues, path)
    return tuple(
        DeclaredQueue(
            name,
            spec.get("parentQueue"),
            shares(spec["resources"]),
            preempt_min_runtime=spec.get("preemptMinRuntime"),
            reclaim_min_runtime=spec.get("reclaimMinRuntime"),
            path=place,
            shard=shard,
            spec=spec,
            labels=labels.get(name, {}),
        )
        for (name, spec), (place, shard) in zip(every_spec(queues, *given), places, strict=True)
    )


def _places(
    queues: Mapping[str, Any], path: str, shard: str | None = None
) -> Iterator[tuple[str, str | None]]:
    """The key of each queue, and the shard that serves it."""
    for name, queue in queues.items():
        here, served = f"{path}.{name}", shard or queue.get("shard")
        yield here, served
        yield from _places(queue.get("children") or {}, f"{here}.children", served)


def _charts(settings: Settings) -> Iterator[Chart]:
    """The charts and images of the host besides KAI and vCluster."""
    gpu, kind = settings.gpu, settings.cluster.kind
    yield Chart("the GPU stack", key_path(("gpu",)), gpu.chart, gpu.values)
    if kind is not None and kind.image is not None:
        subject, path = f"cluster {settings.cluster.name}", key_path(("cluster", "kind"))
        yield Chart(subject, path, values={"image": kind.image}, values_key="")


def _pods(settings: Settings, team: str) -> Iterator[PodTemplate]:
    for number, documents in enumerate(settings.workloads.get(team, {}).values()):
        path = f"{key_path(('workloads', team))}[{number}]"
        for manifest in documents:
            yield from workloads(manifest["kind"], manifest, manifest["metadata"]["name"], path)
