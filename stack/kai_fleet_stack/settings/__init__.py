"""A stack's settings: every key of its file, typed, with defaults filled in.

Those of a team's own stack are made from its file and from what its platform exports: `team_stack`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, PrivateAttr, model_validator

from kai_fleet.releases import DISABLED, GPU_PROVIDERS, KAI, sources, taken_for
from kai_fleet.releases.chart_values import merged, nested
from kai_fleet.releases.sharing import SharingMode
from kai_fleet.releases.sources import BACKUP_IMAGES, KnownSources
from kai_fleet.values import get
from kai_fleet_policies.key_paths import key_path
from kai_fleet_stack.settings.files.manifests import Manifests
from kai_fleet_stack.settings.sections.access import Access, Cluster, Mirror, Registries
from kai_fleet_stack.settings.sections.backup import Backup
from kai_fleet_stack.settings.sections.isolation import Guard
from kai_fleet_stack.settings.sections.kubernetes import ObjectName
from kai_fleet_stack.settings.sections.models import (
    NO_ENTRIES,
    NO_KEYS,
    Grants,
    Strict,
    short_for,
)
from kai_fleet_stack.settings.sections.platform import (
    NVIDIA,
    Gpu,
    HostKai,
    Monitoring,
    Name,
    Sources,
    TeamName,
)
from kai_fleet_stack.settings.sections.queues import QueueTree, walk
from kai_fleet_stack.settings.sections.teams import (
    REMOVED,
    Defaults,
    Grant,
    Granted,
    Scheduler,
    TeamSettings,
)
from kai_fleet_stack.settings.sections.vcluster import Vcluster

if TYPE_CHECKING:
    from kai_fleet_stack.settings.team_stack import Facts

Section = TypeVar("Section", Gpu, HostKai, Scheduler, Vcluster)
# The KAI that schedules the pods of a team, by the team's mode.
_KAI_BY_MODE = {"virtual": "inside", "host": "host", "default": "none"}


class Platform(Strict):
    """The keys of a platform's stack that its teams' own stacks need, too."""

    gpu: Gpu = Field(default_factory=Gpu)
    """The GPU stack of the host."""
    kai: HostKai | None = None
    """The KAI of the host, which teams in mode host need. Default: none."""
    vcluster: Vcluster = Field(default_factory=Vcluster)
    """Defaults of the keys of each team's vcluster."""
    scheduler: Scheduler = Field(default_factory=Scheduler)
    """Defaults of the keys of each team's scheduler, if it has the same mode."""
    guard: Guard = Field(default_factory=Guard)
    """The admission guard for pods of teams with KAI."""
    key_domains: list[ObjectName] = NO_ENTRIES
    """Domains of the keys that teams may write in labels, annotations and access.annotations.
    Default: none.
    """
    sources: Sources = Field(default_factory=Sources)
    """Where charts and images may come from."""
    mirror: Annotated[Mirror, short_for("registry", str, Mirror | str)] | None = None
    """Registry from which all charts and images are pulled, for all teams. Default: the registries
    of their projects.
    """
    monitoring: Monitoring | None = None
    """Monitors, alerts and dashboards for your Prometheus. Default: none."""


class Settings(Defaults, Platform):
    """One stack: a host cluster, what all teams share on it, and the teams.

    `model_validate` makes it. The constructor ignores the copy of `_filled_in`, and gives teams
    without defaults. Then `remember_file` says whose stack it is: without that it is a platform's.
    `vcluster` and `scheduler` have the stack's defaults as written; teams and grants have them
    filled in. A team's own stack has one team, and no `team_stacks`, `queues` and `registries`.
    """

    cluster: Annotated[Cluster, Grants.NOTHING]
    """The host cluster: its name, and how to reach or make it."""
    backup: Backup | None = None
    """Backups of the control planes of all teams of this stack. Default: none."""
    queues: QueueTree = NO_KEYS
    """The queue tree of the host's KAI, or a file with it. Default: none."""
    registries: Registries = NO_KEYS
    """Credentials to pull images, by registry: of the GPU stack, of KAI and of all teams. Default:
    none.
    """
    teams: dict[TeamName, TeamSettings] = NO_KEYS
    """The teams, by name. No team may be called host. Default: none."""
    team_stacks: dict[TeamName, Grant] = NO_KEYS
    """The teams that have stacks of their own, and what this stack grants to each. Default: none.
    """
    removed: Annotated[list[Name], Grants.NOTHING] = Field(
        default_factory=list, description=REMOVED
    )
    workloads: Annotated[dict[TeamName, Manifests], Grants.NOTHING] = NO_KEYS
    """YAML files by team, with Kubernetes objects that are created inside its vCluster. Default:
    none.
    """

    # The content of the file, to know which keys it sets; and, in a team's own stack, what its
    # platform exports.
    _file: Mapping[str, Any] = PrivateAttr(default_factory=dict)
    _platform: "Facts | None" = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _filled_in(self) -> Self:
        """A copy with the stack's defaults in teams and grants, and the mirror in sections.

        Those with the mirror's chart and images are the GPU stack, the host's KAI, and each team's
        vCluster and KAI. The mirror's account is added to `registries`, unless they have one for
        it.
        """
        provider = GPU_PROVIDERS[self.gpu.provider]
        teams = {name: self._team(team) for name, team in self.teams.items()}
        grants = {
            name: grant.model_copy(update=self.fields_for_team(grant))
            for name, grant in self.team_stacks.items()
        }
        update: dict[str, object] = {
            "teams": teams,
            "team_stacks": grants,
            "gpu": self._mirrored(self.gpu, provider.chart, provider.images),
            "kai": self._kai(self.kai) if self.kai else None,
        }
        mirror = self.mirror
        if mirror is not None and mirror.account is not None:
            update["registries"] = {
                mirror.registry: mirror.account,
                **self.registries,
            }
        return self.model_copy(update=update)

    def _mirrored(self, section: Section, chart: str, images: Mapping[str, str]) -> Section:
        """The section with the mirror's chart and images, unless the section sets them itself.

        Unchanged without a mirror. A section with a chart of its own gets the images, too.

        Args:
            chart: the chart's name in the mirror; "" for a section that installs none, which is
                unchanged.
            images: registries of the chart's images, by the dotted chart value that sets them.
        """
        if self.mirror is None or not chart:
            return section
        registry = self.mirror.registry
        image_values = [
            nested(key, sources.mirrored(registry, image)) for key, image in images.items()
        ]
        update = {
            "chart": section.chart or f"oci://{registry}/charts/{chart}",
            "values": merged(*image_values, section.values),
        }
        return section.model_copy(update=update)

    def _kai(self, kai: Section) -> Section:
        """A KAI with the mirror's chart and images.

        A newer version than those of the table has the images of `taken_for`. Unchanged without a
        version, and for one that is unknown otherwise.
        """
        version = kai.version or ""
        release = KAI.get(taken_for(KAI, version) or version) if version else None
        if release is None:
            return kai
        return self._mirrored(kai, "kai-scheduler", {"global.registry": release.images})

    def _team(self, team: TeamSettings) -> TeamSettings:
        """The team with the stack's defaults, and the mirror's charts.

        In mode virtual it also has a shard for each pool, and their sum as `gpus` if that is unset.
        """
        scheduler = self.scheduler.with_fields_of(team.scheduler)
        if scheduler.mode == "virtual":
            scheduler = self._kai(scheduler)
        update = self.fields_for_team(team)
        update["scheduler"] = scheduler
        update["vcluster"] = self._vcluster(team.vcluster)
        update["backup"] = self._backup(team.backup)
        return team.model_copy(update=update).filled_in_from_pools(self.gpu.resource)

    def _backup(self, of_team: Backup | Literal[False] | None) -> Backup | Literal[False] | None:
        """A team's backups with the stack's keys, and the mirror's images; False and None: none."""
        if of_team is False or (of_team is None and self.backup is None):
            return of_team
        backup = (self.backup or Backup()).with_fields_of(of_team)
        if self.mirror is None:
            return backup
        images = {
            name: getattr(backup, name) or sources.mirrored(self.mirror.registry, image)
            for name, image in BACKUP_IMAGES.items()
        }
        return backup.model_copy(update=images)

    def _vcluster(self, of_team: Vcluster) -> Vcluster:
        """A team's vCluster with the stack's defaults; values and groups of both are merged.

        It has an `access` in any case. On kind that is a NodePort of this machine by default, whose
        port is not filled in. With a mirror the vCluster has its chart and its images.
        """
        stack = self.vcluster
        access = (stack.access or Access()).with_fields_of(of_team.access)
        kind = self.cluster.kind
        if kind is not None:
            access = kind.access(access)
        update = {
            "values": merged(stack.values, of_team.values),
            "groups": {**stack.groups, **of_team.groups},
            "access": access,
        }
        vcluster = stack.with_fields_of(of_team).model_copy(update=update)
        images = {"controlPlane.advanced.defaultImageRegistry": "ghcr.io"}
        return self._mirrored(vcluster, "vcluster", images)

    def remember_file(self, raw: Mapping[str, Any], platform: "Facts | None" = None) -> Self:
        """These settings, changed in place: with the file's content for key paths.

        To be called before anything asks for mistakes between keys, key paths or the platform.

        Args:
            raw: the keys of the file, without `kai-fleet:`.
            platform: in a team's own stack, what its platform exports, with its name in `stack`.
                None makes it a platform's stack.
        """
        self._file = raw
        self._platform = platform
        return self

    @property
    def known_sources(self) -> KnownSources:
        """Where charts and images may come from besides the places of the release tables.

        Those that the file lists at `sources`, and the mirror.
        """
        mirror = (self.mirror.registry,) if self.mirror else ()
        return KnownSources(
            tuple(self.sources.charts),
            tuple(self.sources.images),
            mirror,
        )

    @property
    def platform_facts(self) -> "Facts | None":
        """In a team's own stack what its platform exports; None in a platform's stack.

        None also before `remember_file`.
        """
        return self._platform

    @property
    def platform_stack(self) -> str:
        """In a team's own stack the name of its platform's stack; "" in a platform's stack."""
        return self._platform.stack if self._platform else ""

    def granted(self, team: str) -> Granted:
        """In a team's own stack what its platform grants a team; an empty grant if that is nothing.

        Always an empty one in a platform's stack: `team_stacks` has what that grants.
        """
        return self._platform.grant_of(team) if self._platform else Granted()

    def team_path(self, team: str) -> str:
        """The key path of a team in the stack file, or of the grant for its own stack.

        In a team's own stack it is `kai-fleet:team` for any name. In a platform's stack a name that
        is no team is taken for that of a grant.
        """
        if self.platform_facts is not None:
            return "kai-fleet:team"
        section = "teams" if team in self.teams else "teamStacks"
        return key_path((section, team))

    def key_path_of(self, team: str, *keys: str) -> str:
        """The key path at which the file sets a team's value: the team's or the stack's.

        It is the path of all `keys`, each of which may have dots. Tries the key and then the
        sections above it, but not the topmost one: the first that the file has, and not null,
        decides whose path it is, at each step the team's before the stack's. If the file has none
        of them, and in a team's own stack, it is the team's. That a scheduler of another mode or an
        access of another type takes nothing from the stack's does not count here.
        """
        in_team = ".".join((self.team_path(team), *keys))
        if self.platform_facts is not None:
            return in_team
        _, _, team_path = self.team_path(team).partition(":")
        team_keys = team_path.split(".")
        parts = ".".join(keys).split(".")
        for depth in range(len(parts), 1, -1):
            if get(self._file, *team_keys, *parts[:depth]) is not None:
                return in_team
            if get(self._file, *parts[:depth]) is not None:
                return key_path(keys)
        return in_team

    def team_or_grant(self, team: str) -> TeamSettings | Grant:
        """A team of this stack, or the grant for its own stack; the team if the name has both.

        Raises KeyError for neither.
        """
        return self.teams.get(team) or self.team_stacks[team]

    @property
    def all_teams(self) -> tuple[str, ...]:
        """Names of this stack's teams, then of those that it grants a stack of their own.

        A name in both is there twice: a rule refuses it.
        """
        return (*self.teams, *self.team_stacks)

    def scheduler_and_queue_of(self, name: str) -> tuple[str, str | None]:
        """Argument `scheduler` of a team's namespace, and the host's queue that the team uses.

        Modes virtual, host and default give `inside`, `host` and `none`. The mode of a team with a
        grant is not known, as its own stack chooses it: without a host KAI it is taken for
        `inside`, with a granted queue for `host`, else for `none`. The queue is None if none is
        written or granted; it may be set without mode host.

        Raises KeyError for no team and no grant.
        """
        team = self.team_or_grant(name)
        if isinstance(team, TeamSettings):
            return _KAI_BY_MODE[team.scheduler.mode], team.queue
        if self.kai is None:
            return "inside", team.parent_queue
        return "host" if team.parent_queue else "none", team.parent_queue

    def control_pool(self, name: str) -> dict[str, str]:
        """Labels of the nodes for a team's control plane; empty for all nodes.

        They are those of its vCluster, else of kai-fleet:vcluster, else of the team's own nodes.
        With a grant the vCluster's are not known and not read: its own stack has them.

        Raises KeyError for no team and no grant.
        """
        team = self.team_or_grant(name)
        of_vcluster = team.vcluster.node_pool if isinstance(team, TeamSettings) else {}
        return of_vcluster or self.vcluster.node_pool or team.node_pool

    def foreign_pools(self, name: str) -> list[dict[str, str]]:
        """Labels of the nodes that other teams and control planes use, each pool once, sorted.

        Others are the teams and grants of this stack. Empty for a team with nodes of its own.

        Raises KeyError for no team and no grant.
        """
        if self.team_or_grant(name).node_pool:
            return []
        pools = [self.vcluster.node_pool]
        for other in self.all_teams:
            if other != name:
                pools.append(self.control_pool(other))
                pools.append(self.team_or_grant(other).node_pool)
        labels = {tuple(sorted(pool.items())) for pool in pools if pool}
        return [dict(pool) for pool in sorted(labels)]

    def foreign_queues(self, name: str) -> list[str]:
        """Queues and teams that begin with `NAME-`, the prefix of a team stack's own queues.

        They are the host's queues, and the teams and grants of this stack, sorted. The queue that
        the team uses or is granted is left out. Raises KeyError for no team and no grant.
        """
        _, granted = self.scheduler_and_queue_of(name)
        names = {placed.name for placed in walk(self.queues)}
        names.update(self.all_teams)
        names.discard(granted or "")
        return sorted(other for other in names if other.startswith(f"{name}-"))

    def volume_classes(self, name: str) -> list[str]:
        """Classes that a team's claims may name: its `isolation`'s, and that of kai-fleet:vcluster.

        A class that only the team's own vCluster sets is not added. Raises KeyError for no team and
        no grant.
        """
        classes = [*self.team_or_grant(name).isolation.volume_classes]
        if self.vcluster.storage_class:
            classes.append(self.vcluster.storage_class)
        return classes

    def sharing_of(self, kai: HostKai | Scheduler) -> SharingMode:
        """The mode in which a KAI shares GPUs: Disabled unless the host's GPUs are nvidia.com/gpu.

        KAI reserves every shared GPU under that name. A mode that its chart values choose does not
        count here.
        """
        return kai.gpu_sharing if self.gpu.resource == NVIDIA else DISABLED
