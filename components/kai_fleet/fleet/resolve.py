"""From the settings of a stack to its fleet: defaults, inherited values and keys filled in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from kai_fleet.deployed import VIRTUAL_CLUSTER, Deployed, named
from kai_fleet.fleet import from_settings, team_stack
from kai_fleet.fleet.chart_stores import store_of
from kai_fleet.fleet.cluster import Chart, Running
from kai_fleet.fleet.from_settings import declared_queues
from kai_fleet.fleet.installed import access_values, control_plane_values
from kai_fleet.fleet.model import (
    HOST,
    DeclaredCluster,
    DeclaredKai,
    DeclaredTeam,
    Fleet,
)
from kai_fleet.releases import DEFAULT_VCLUSTER
from kai_fleet.releases.chart_values import merged
from kai_fleet.releases.sharing import mode_in
from kai_fleet.settings import Settings, key_path
from kai_fleet.settings.sections.access import OF_STACK, OF_TEAM, Access, Registries
from kai_fleet.settings.sections.isolation import Isolation
from kai_fleet.settings.sections.platform import HostKai
from kai_fleet.settings.sections.queues import walk
from kai_fleet.settings.sections.teams import Grant, HostPlace, Scheduler, TeamSettings
from kai_fleet.settings.team_stack import Facts


def fleet_of(settings: Settings, deployed: Deployed | None = None) -> Fleet:
    """The fleet of a platform's stack, or of a team's own stack on its platform.

    `deployed` is what the stack runs now, where that is known.
    """
    return _Resolver(settings, deployed or Deployed()).fleet()


def platform_facts(settings: Settings) -> Facts:
    """What a platform's stack tells its team stacks."""
    return Facts.of(settings)


@dataclass(frozen=True)
class _Resolver:
    settings: Settings
    deployed: Deployed

    def fleet(self) -> Fleet:
        settings, platform = self.settings, self.settings.platform_facts
        teams = {name: self._team(name) for name in settings.teams}
        grants = {name: self._granted(name) for name in settings.team_stacks}
        if platform is not None:
            host = team_stack.host(settings, platform, tuple(teams.values()))
        else:
            host = self.host(tuple(teams.values()), tuple(grants.values()))
        return Fleet(
            cluster=settings.cluster,
            gpu=settings.gpu,
            isolation=settings.isolation,
            host=host,
            teams=teams,
            grants=grants,
            workloads=self.settings.workloads,
            facts=Facts.of(settings) if platform is None else None,
            platform=host.platform,
            own_team=next(iter(teams)) if platform is not None else "",
            labels=settings.labels,
            annotations=settings.annotations,
            foreign_queues={name: self._foreign_queues(name) for name in grants},
            registries=settings.registries,
        )

    def host(
        self, teams: tuple[DeclaredTeam, ...], grants: tuple[DeclaredTeam, ...]
    ) -> DeclaredCluster:
        settings, own, path = self.settings, self.settings.kai, key_path(("kai",))
        kai: tuple[DeclaredKai, ...] = ()
        if own is not None:
            scheduler = self._kai(own, path, own, settings.labels)
            kai = (replace(scheduler, registries=settings.registries),)
        return DeclaredCluster(
            HOST,
            path=key_path(("cluster",)),
            kai=kai,
            queues=declared_queues(
                settings.queues, key_path(("queues",)), limits=from_settings.queue_limits(settings)
            ),
            teams=teams,
            grants=grants,
            sources=settings.sources.known,
            declared=True,
            gpu_resource=settings.gpu.resource,
            monitoring=settings.monitoring,
            charts=_charts(settings),
        )

    def _on_host(self, name: str, path: str, own: TeamSettings | Grant) -> DeclaredTeam:
        """A team's namespace and its bounds, whichever stack runs the team."""
        settings, place = self.settings, self.settings.place_of(name)
        return DeclaredTeam(
            name,
            namespace=f"team-{name}",
            path=path,
            where=partial(settings.written_at, name),
            declared=True,
            node_pool=dict(own.node_pool),
            control_pool=from_settings.control_pool(settings, name),
            gpus=settings.gpus_of(name),
            slices=settings.slices_of(name),
            isolation=place.isolation,
            level=place.isolation.level,
            bounds=_bounds(place.isolation) if place.isolation.on else {},
            labels=place.labels,
            annotations=place.annotations,
            tolerations=place.tolerations,
        )

    def _team(self, name: str) -> DeclaredTeam:
        settings, team = self.settings, self.settings.teams[name]
        vcluster, path = settings.vcluster_of(name), settings.team_path(name)
        platform, mode = settings.platform_facts, team.scheduler.mode
        control_plane, inside = control_plane_values(vcluster), self._inside(name)
        release = named(VIRTUAL_CLUSTER, f"{name}-release")
        now = self.deployed.versions.get(release)  # the chart's version has no v
        store = self.deployed.stores.get(release)
        access = vcluster.access or Access()
        parent, shard = platform.granted_queue(name) if platform else (None, None)
        return replace(
            self._on_host(name, path, team),
            mode=mode,
            pools=team.pools,
            queue=team.queue,
            parent_queue=parent,
            host_queues=declared_queues(team.queues, f"{path}.queues", parent=parent, shard=shard)
            if mode == "host" and team.queues
            else (),
            affinity=settings.place_of(name).affinity,
            guard=settings.guard.mode != "off" and bool(inside.kai),
            version=vcluster.version or DEFAULT_VCLUSTER,
            kubernetes_version=vcluster.kubernetes_version,
            chart=vcluster.chart,
            values=vcluster.values,
            access=access,
            licensed=vcluster.licensed,
            untested=vcluster.untested,
            image_pull_secrets=self._pull_secrets(name, vcluster.image_pull_secrets),
            registries=by_secret(settings.registries, team.registries),
            oidc=vcluster.oidc,
            groups=vcluster.groups,
            control_plane=control_plane,
            store=store_of(merged(control_plane, vcluster.values)),
            chart_values=merged(access_values(access), control_plane, vcluster.values),
            runs=Running(f"v{now}" if now else None, store) if now or store else None,
            inside=inside,
            own_stack=platform is not None,
        )

    def _pull_secrets(self, name: str, there: Sequence[str]) -> list[str]:
        """Those that are there, and those that are made: in a team stack also by its platform."""
        settings, platform = self.settings, self.settings.platform_facts
        made = [*by_secret(settings.registries, settings.teams[name].registries)]
        if platform is not None and platform.registries:
            made.insert(0, OF_STACK)
        return [*dict.fromkeys([*there, *made])]

    def _inside(self, name: str) -> DeclaredCluster:
        """The inside of a team's vCluster."""
        settings, team = self.settings, self.settings.teams[name]
        own, path, gpus = team.scheduler, settings.team_path(name), settings.gpus_of(name)
        empty = DeclaredCluster(
            name,
            path=path,
            gpus=gpus,
            pools=team.gpus_by_pool,
            declared=True,
            gpu_resource=settings.gpu.resource,
            key=f"{path}.scheduler",
            queues_key=f"{path}.queues",
        )
        if own.mode != "virtual" or own.version is None:
            return empty
        place = settings.place_of(name)
        return replace(
            empty,
            # Without credentials: its pods pull with those of their account on the host.
            kai=(self._kai(own, empty.key, place, place.labels),),
            queues=declared_queues(
                team.queues, empty.queues_key, gpu_limit=gpus, pools=team.gpus_by_pool
            ),
        )

    def _granted(self, name: str) -> DeclaredTeam:
        """A team with a stack of its own, which chooses the mode."""
        settings, grant = self.settings, self.settings.team_stacks[name]
        runs = self.deployed.versions.get(named(VIRTUAL_CLUSTER, f"{name}-release")) is not None
        return replace(
            self._on_host(name, key_path(("teamStacks", name)), grant),
            granted=True,
            image_pull_secrets=[*by_secret(settings.registries)],
            mode="virtual" if settings.kai is None else "host",
            parent_queue=grant.parent_queue,
            registries=by_secret(settings.registries),
            inside=DeclaredCluster(gpu_resource=settings.gpu.resource),
            runs_here=runs and name not in settings.teams,
        )

    def _kai(
        self,
        own: HostKai | Scheduler,
        path: str,
        place: HostKai | HostPlace,
        labels: Mapping[str, str],
    ) -> DeclaredKai:
        """A KAI whose parts are at a place, with some labels."""
        return DeclaredKai(
            own.version,
            sharing=mode_in(own.version or "", own.values) or self.settings.sharing_of(own),
            path=path,
            values=own.values,
            untested=own.untested,
            chart=own.chart,
            scheduling=own,
            shards=tuple(own.shards),
            topologies=own.topologies,
            fairshare=bool(own.fairshare),
            tolerations=place.tolerations,
            affinity=place.affinity,
            labels=labels,
        )

    @cached_property
    def _names(self) -> Sequence[str]:
        settings = self.settings
        queues = (placed.name for placed in walk(settings.queues))
        return sorted({*queues, *settings.teams, *settings.team_stacks})

    def _foreign_queues(self, team: str) -> list[str]:
        """Queues and teams whose names only begin like those of a team's own queues."""
        return [name for name in self._names if name.startswith(f"{team}-")]


def _bounds(isolation: Isolation) -> dict[str, str]:
    """The quota of a namespace by the names of the resources."""
    bounds = isolation.bounds
    amounts = {
        "cpu": bounds.cpu,
        "memory": bounds.memory,
        "ephemeral-storage": bounds.ephemeral_storage,
    }
    return {name: str(amount) for name, amount in amounts.items() if amount is not None}


def _charts(settings: Settings) -> tuple[Chart, ...]:
    """The charts and images of the host besides KAI and vCluster."""
    gpu, kind = settings.gpu, settings.cluster.kind
    charts = [Chart("the GPU stack", key_path(("gpu",)), gpu.chart, gpu.values)]
    if kind is not None and kind.image is not None:
        subject, path = f"cluster {settings.cluster.name}", key_path(("cluster", "kind"))
        charts.append(Chart(subject, path, values={"image": kind.image}, values_key=""))
    return tuple(charts)


def by_secret(of_stack: Registries, of_team: Registries | None = None) -> Mapping[str, Registries]:
    """The Secrets to be made, by name. A Secret without credentials is left out."""
    every = {OF_STACK: of_stack, OF_TEAM: of_team or {}}
    return {name: registries for name, registries in every.items() if registries}
