"""From the settings of a stack to its fleet: defaults, inherited values and keys filled in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final

from kai_fleet.fleet import bounds, team_stack
from kai_fleet.fleet.charts import charts_of_platform, charts_of_team
from kai_fleet.fleet.control_plane import control_plane_values
from kai_fleet.fleet.installed import InstalledChart
from kai_fleet.fleet.model import (
    HOST,
    DeclaredCluster,
    DeclaredKai,
    DeclaredTeam,
    DeclaredWorkload,
    Fleet,
)
from kai_fleet.fleet.trees import declared_queues
from kai_fleet.releases.chart_values import merged
from kai_fleet.releases.vcluster_store import store_of
from kai_fleet.settings import Settings, key_path
from kai_fleet.settings.platform_facts import PlatformFacts
from kai_fleet.settings.sections.access import Access
from kai_fleet.settings.sections.platform import HostKai
from kai_fleet.settings.sections.queues import walk
from kai_fleet.settings.sections.registries import OF_STACK, by_secret
from kai_fleet.settings.sections.teams import Scheduler, Vcluster
from kai_fleet.state.deployed_state import DeployedState
from kubectl_fleet.releases import DEFAULT_VCLUSTER
from kubectl_fleet.releases.sharing import mode_in

_NVIDIA_CLASS: Final = "nvidia"


def fleet_of(
    settings: Settings, deployed: DeployedState | None = None, *, hidden: bool = False
) -> Fleet:
    """The fleet of a platform's stack, or of a team's own stack on its platform.

    `deployed` is what the stack runs now, where that is known; `hidden`: some value is a secret.
    """
    return _Resolver(settings, deployed or DeployedState(), hidden).fleet()


def platform_facts(settings: Settings) -> PlatformFacts:
    """What a platform's stack tells its team stacks."""
    host = _Resolver(settings, DeployedState(), False).host((), ())
    return team_stack.facts(settings, host.queues)


@dataclass(frozen=True)
class _Resolver:
    settings: Settings
    deployed: DeployedState
    hidden: bool

    def fleet(self) -> Fleet:
        settings, platform = self.settings, self.settings.platform_facts
        teams = {name: self._team(name) for name in settings.teams}
        grants = {name: self._granted(name) for name in settings.team_stacks}
        if platform is not None:
            host = replace(
                team_stack.host(settings, platform, tuple(teams.values())),
                installed=tuple(self._charts()),
            )
        else:
            host = self.host(tuple(teams.values()), tuple(grants.values()))
        return Fleet(
            cluster=settings.cluster,
            gpu=settings.gpu,
            isolation=settings.isolation,
            host=host,
            teams=teams,
            grants=grants,
            workloads=self._workloads(host, teams),
            facts=team_stack.facts(settings, host.queues) if platform is None else None,
            platform=host.platform,
            own_team=next(iter(teams)) if platform is not None else "",
            labels=settings.labels,
            annotations=settings.annotations,
            foreign_queues={name: self._foreign_queues(name) for name in grants},
            registries=by_secret(settings.registries),
        )

    def host(
        self, teams: tuple[DeclaredTeam, ...], grants: tuple[DeclaredTeam, ...]
    ) -> DeclaredCluster:
        settings, own = self.settings, self.settings.kai
        kai = None
        if own is not None:
            kai = self._kai(own, own.version, key_path(("kai",)))
            kai = replace(
                kai,
                tolerations=own.tolerations,
                affinity=own.affinity,
                labels=settings.labels,
                registries=by_secret(settings.registries),
            )
        return DeclaredCluster(
            HOST,
            path=key_path(("cluster",)),
            kai=(kai,) if kai else (),
            queues=declared_queues(
                settings.queues, key_path(("queues",)), limits=self._queue_limits()
            ),
            virtual_clusters=teams,
            grants=grants,
            features=kai.features if kai else (),
            sources=settings.sources.known,
            installed=(*charts_of_platform(settings, hidden=self.hidden), *self._charts()),
            declared=True,
            gpu_resource=settings.gpu.resource,
            monitoring=settings.monitoring,
            prices=settings.prices,
        )

    def _charts(self) -> list[InstalledChart]:
        own_stack = self.settings.platform_facts is not None
        return [
            chart
            for name, vcluster in self._vclusters.items()
            for chart in charts_of_team(
                self.settings, name, vcluster, own_stack=own_stack, hidden=self.hidden
            )
        ]

    def _team(self, name: str) -> DeclaredTeam:
        settings, team = self.settings, self.settings.teams[name]
        vcluster, path = self._vclusters[name], settings.team_path(name)
        place, control_plane = settings.place_of(name), control_plane_values(vcluster)
        platform, mode = settings.platform_facts, team.scheduler.mode
        inside = self._inside(name)
        now = self.deployed.version(f"{name}-release")
        foreign = self._foreign_queues(name)
        parent, shard = team_stack.granted_queue(name, platform) if platform else (None, None)
        return DeclaredTeam(
            name=name,
            namespace=f"team-{name}",
            path=path,
            where=partial(settings.written_at, name),
            declared=True,
            mode=mode,
            node_pool=dict(team.node_pool),
            control_pool=self._control_pools[name],
            gpus=settings.gpus_of(name),
            slices=settings.slices_of(name),
            pools=team.pools,
            queue=team.queue,
            parent_queue=parent,
            host_queues=declared_queues(team.queues, f"{path}.queues", parent=parent, shard=shard)
            if mode == "host" and team.queues
            else (),
            isolation=place.isolation,
            labels=place.labels,
            annotations=place.annotations,
            tolerations=place.tolerations,
            affinity=place.affinity,
            # A team stack's namespace is the platform's, and what its guards let through.
            rules=None
            if platform
            else bounds.host_rules(settings, name, self._control_pools, foreign),
            host_guard=None if platform else bounds.host_guard(settings, name, team.queue, foreign),
            guard=bounds.inside_guard(settings, name),
            version=vcluster.version or DEFAULT_VCLUSTER,
            version_before=f"v{now}" if now else None,  # the chart's version has no v
            kubernetes_version=vcluster.kubernetes_version,
            chart=vcluster.chart,
            values=vcluster.values,
            access=vcluster.access or Access(),
            licensed=vcluster.licensed,
            untested=vcluster.untested,
            image_pull_secrets=self._pull_secrets(name),
            registries=by_secret(settings.registries, team.registries),
            oidc=vcluster.oidc,
            groups=vcluster.groups,
            control_plane=control_plane,
            store=store_of(merged(control_plane, vcluster.values)),
            store_before=self.deployed.stores.get(f"{name}-release"),
            kai=inside.kai,
            inside=inside,
            own_stack=platform is not None,
        )

    def _pull_secrets(self, name: str) -> list[str]:
        """Those that are there, and those that are made: in a team stack also by its platform."""
        settings, platform = self.settings, self.settings.platform_facts
        made = [*by_secret(settings.registries, settings.teams[name].registries)]
        if platform is not None and platform.registries:
            made.insert(0, OF_STACK)
        return [*dict.fromkeys([*self._vclusters[name].image_pull_secrets, *made])]

    def _inside(self, name: str) -> DeclaredCluster:
        """The inside of a team's vCluster."""
        settings, team = self.settings, self.settings.teams[name]
        own, path, gpus = team.scheduler, settings.team_path(name), settings.gpus_of(name)
        version = own.version if own.mode == "virtual" else None
        kai = self._kai(own, version, f"{path}.scheduler") if version else None
        if kai is not None:
            place = settings.place_of(name)
            kai = replace(
                kai,
                tolerations=place.tolerations,
                affinity=place.affinity,
                labels=place.labels,
                registries=by_secret(settings.registries, team.registries),
            )
        return DeclaredCluster(
            name,
            path=path,
            kai=(kai,) if kai else (),
            queues=declared_queues(
                team.queues, f"{path}.queues", gpu_limit=gpus, pools=team.gpus_by_pool
            )
            if kai
            else (),
            gpus=gpus,
            pools=team.gpus_by_pool,
            features=tuple(
                replace(it, path=f"{path}.pools") if team.pools and it.kind == "shards" else it
                for it in (kai.features if kai else ())
            ),
            declared=True,
            gpu_resource=settings.gpu.resource,
            key=f"{path}.scheduler",
            queues_key=f"{path}.queues",
        )

    def _granted(self, name: str) -> DeclaredTeam:
        """A team with a stack of its own, which chooses the mode."""
        settings, grant = self.settings, self.settings.team_stacks[name]
        foreign, place = self._foreign_queues(name), settings.place_of(name)
        runs = self.deployed.version(f"{name}-release") is not None
        return DeclaredTeam(
            name=name,
            namespace=f"team-{name}",
            path=key_path(("teamStacks", name)),
            where=partial(settings.written_at, name),
            declared=True,
            granted=True,
            mode="virtual" if settings.kai is None else "host",
            node_pool=dict(grant.node_pool),
            control_pool=self._control_pools[name],
            gpus=settings.gpus_of(name),
            slices=settings.slices_of(name),
            parent_queue=grant.parent_queue,
            isolation=place.isolation,
            labels=place.labels,
            annotations=place.annotations,
            tolerations=place.tolerations,
            registries=by_secret(settings.registries),
            rules=bounds.host_rules(settings, name, self._control_pools, foreign),
            host_guard=bounds.host_guard(settings, name, grant.parent_queue, foreign),
            inside=DeclaredCluster(gpu_resource=settings.gpu.resource),
            runs_here=runs and name not in settings.teams,
        )

    def _kai(self, own: HostKai | Scheduler, version: str | None, path: str) -> DeclaredKai:
        return DeclaredKai(
            version,
            sharing=mode_in(version or "", own.values) or self.settings.sharing_of(own),
            path=path,
            values=own.values,
            untested=own.untested,
            chart=own.chart,
            scheduling=own,
        )

    def _workloads(
        self, host: DeclaredCluster, teams: Mapping[str, DeclaredTeam]
    ) -> dict[str, DeclaredWorkload]:
        """Those whose team is there: the report on the settings says what is wrong with others."""
        settings = self.settings
        shards = {queue.name: queue.shard for queue in host.queues}
        resolved = {}
        for name, own in settings.workloads.items():
            team = teams.get(own.team)
            if team is None:
                continue
            queue = own.queue_of(settings.teams[own.team])
            # In a team stack every queue of its team is below the granted one.
            at = (team.parent_queue or queue) if team.mode == "host" else queue
            of = shards if team.mode == "host" else {q.name: q.shard for q in team.inside.queues}
            nvidia = own.gpu is not None and settings.gpu.provider != "none"
            resolved[name] = DeclaredWorkload(
                name,
                own.team,
                own,
                queue,
                shard=of.get(at or ""),
                # `nvidia` where the GPU stack makes that class, and a GPU is asked for.
                runtime_class=own.runtime_class or (_NVIDIA_CLASS if nvidia else None),
                gpu_resource=(own.gpu and own.gpu.slice) or settings.gpu.resource,
                path=key_path(("workloads", name)),
            )
        return resolved

    @cached_property
    def _vclusters(self) -> dict[str, Vcluster]:
        """Each team's vCluster with the stack's defaults."""
        return {name: self.settings.vcluster_of(name) for name in self.settings.teams}

    @cached_property
    def _control_pools(self) -> dict[str, dict[str, str]]:
        """The labels of the nodes of each control plane: the platform's own, or the team's."""
        settings = self.settings
        pools = {
            name: dict(settings.vcluster.node_pool or grant.node_pool)
            for name, grant in settings.team_stacks.items()
        }
        for name, team in settings.teams.items():
            own = team.vcluster.node_pool or settings.vcluster.node_pool
            pools[name] = dict(own or team.node_pool)
        return pools

    def _queue_limits(self) -> dict[str, int]:
        """The most GPUs of the host's queues that are teams': those of the teams together (T13)."""
        limits: dict[str, int] = {}
        for name, queue in (
            *((name, team.queue) for name, team in self.settings.teams.items()),
            *((name, grant.parent_queue) for name, grant in self.settings.team_stacks.items()),
        ):
            if queue is not None:
                limits[queue] = limits.get(queue, 0) + self.settings.gpus_of(name)
        return limits

    @cached_property
    def _names(self) -> Sequence[str]:
        settings = self.settings
        queues = (placed.name for placed in walk(settings.queues))
        return sorted({*queues, *settings.teams, *settings.team_stacks})

    def _foreign_queues(self, team: str) -> list[str]:
        """Queues and teams whose names only begin like those of a team's own queues."""
        return [name for name in self._names if name.startswith(f"{team}-")]
