"""A stack's configuration: every key is typed and checked before anything is declared.

`load` never raises for a user's mistake. It reports all mistakes with their key paths, and returns
the settings without the wrong keys.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, TypeVar

from pulumi.runtime import config as pulumi_config
from pydantic import Field, PrivateAttr, model_validator

from kai_fleet.releases import DISABLED, GPU_PROVIDERS, KAI, advised, sources, taken_for
from kai_fleet.releases.chart_values import merged, nested
from kai_fleet.releases.sharing import SharingMode
from kai_fleet.releases.sources import KnownSources
from kai_fleet.values import get
from kai_fleet.wording import MASK
from kai_fleet_policies.finding import Finding
from kai_fleet_policies.key_paths import key_path
from kai_fleet_stack.settings.files.manifests import Manifests
from kai_fleet_stack.settings.mistakes import (
    misspelt,
    model_and_mistakes,
    overlaps,
    own_keys,
    wrong_key,
)
from kai_fleet_stack.settings.sections.access import Access, Cluster, Mirror, Registries
from kai_fleet_stack.settings.sections.isolation import Guard
from kai_fleet_stack.settings.sections.kubernetes import ObjectName, in_domains
from kai_fleet_stack.settings.sections.models import (
    NO_ENTRIES,
    NO_KEYS,
    Grants,
    Mistakes,
    Strict,
    below,
    short_for,
)
from kai_fleet_stack.settings.sections.platform import (
    EXAMPLE_VERSION,
    NVIDIA,
    Gpu,
    HostKai,
    Monitoring,
    Name,
    Sources,
    TeamName,
)
from kai_fleet_stack.settings.sections.queues import QueueTree, shard_mistakes, walk
from kai_fleet_stack.settings.sections.teams import (
    REMOVED,
    Defaults,
    Grant,
    Scheduler,
    TeamSettings,
)
from kai_fleet_stack.settings.sections.vcluster import Vcluster
from kai_usage import mig

if TYPE_CHECKING:
    from kai_fleet_stack.settings.team_stack import Facts

Section = TypeVar("Section", Gpu, HostKai, Scheduler, Vcluster)
# The KAI that schedules the pods of a team, by the team's mode.
_KAI_BY_MODE: Final = {"virtual": "inside", "host": "host", "default": "none"}

__all__ = ["Loaded", "Settings", "load", "model_and_mistakes", "read_config"]


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
    """One stack: a host cluster, what all teams share on it, and the teams."""

    cluster: Annotated[Cluster, Grants.NOTHING]
    """The host cluster: its name, and how to reach or make it."""
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
        """A copy with the stack's defaults in each team, and the mirror's locations in each chart.

        The mirror's account is added to `registries`, unless they have one for it.
        """
        provider = GPU_PROVIDERS[self.gpu.provider]
        teams = {name: self._team(team) for name, team in self.teams.items()}
        grants = {name: self._grant(grant) for name, grant in self.team_stacks.items()}
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

        Unchanged without a mirror, or for a section that installs no chart (`chart` is "").

        Args:
            images: registries of the chart's images, by the chart value that sets them.
        """
        if self.mirror is None or not chart:
            return section
        registry = self.mirror.registry
        image_values = []
        for key, image in images.items():
            image_values.append(nested(key, sources.mirrored(registry, image)))
        update = {
            "chart": section.chart or f"oci://{registry}/charts/{chart}",
            "values": merged(*image_values, section.values),
        }
        return section.model_copy(update=update)

    def _kai(self, kai: Section) -> Section:
        """A KAI with the mirror's chart and images; unchanged for an unknown version."""
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
        return team.model_copy(update=update).filled_in_from_pools()

    def _grant(self, grant: Grant) -> Grant:
        return grant.model_copy(update=self.fields_for_team(grant))

    def _vcluster(self, team: Vcluster) -> Vcluster:
        """A team's vCluster with the stack's defaults; values and groups of both are merged.

        On kind its API has a node port of this machine by default; with a mirror the vCluster has
        its chart and its images.
        """
        stack = self.vcluster
        access = (stack.access or Access()).with_fields_of(team.access)
        kind = self.cluster.kind
        if kind is not None:
            access = kind.access(access)
        update = {
            "values": merged(stack.values, team.values),
            "groups": {**stack.groups, **team.groups},
            "access": access,
        }
        vcluster = stack.with_fields_of(team).model_copy(update=update)
        images = {"controlPlane.advanced.defaultImageRegistry": "ghcr.io"}
        return self._mirrored(vcluster, "vcluster", images)

    def remember_file(self, raw: Mapping[str, Any], platform: "Facts | None" = None) -> Self:
        """These settings, changed in place: with the file's content for key paths.

        Args:
            platform: in a team's own stack, what its platform exports.
        """
        self._file = raw
        self._platform = platform
        return self

    @property
    def known_sources(self) -> KnownSources:
        """The locations from which charts and images may come."""
        mirror = (self.mirror.registry,) if self.mirror else ()
        return KnownSources(
            tuple(self.sources.charts),
            tuple(self.sources.images),
            mirror,
        )

    @property
    def platform_facts(self) -> "Facts | None":
        """In a team's own stack what its platform exports; None in a platform's stack."""
        return self._platform

    @property
    def platform_stack(self) -> str:
        """In a team's own stack the name of its platform's stack; "" in a platform's stack."""
        return self._platform.stack if self._platform else ""

    def team_path(self, team: str) -> str:
        """The key path of a team in the stack file, or of the grant for its own stack."""
        if self.platform_facts is not None:
            return key_path(("team",))
        section = "teams" if team in self.teams else "teamStacks"
        return key_path((section, team))

    def key_path_of(self, team: str, *keys: str) -> str:
        """The key path at which the file sets a team's value: the team's or the stack's.

        Tries the key and then the sections above it, but not the topmost one: the first that the
        file has decides, at each step the team's before the stack's. If the file has none of them,
        and in a team's own stack, it is the team's. Each of `keys` may have dots.
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
        """A team of this stack, or the grant for its own stack. Raises KeyError for neither."""
        return self.teams.get(team) or self.team_stacks[team]

    @property
    def all_teams(self) -> tuple[str, ...]:
        """Teams of this stack, and teams that it grants a stack of their own."""
        return (*self.teams, *self.team_stacks)

    def scheduler_and_queue_of(self, name: str) -> tuple[str, str | None]:
        """Argument `scheduler` of a team's namespace, and the host's queue that the team uses.

        A team's own stack chooses its mode: without a host KAI it is taken for `inside`, with a
        granted queue for `host`, else for `none`. The queue is None if none is written or granted;
        it may be set without mode host. Raises KeyError for no team and no grant.
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
        """
        team = self.team_or_grant(name)
        of_vcluster = team.vcluster.node_pool if isinstance(team, TeamSettings) else {}
        return dict(of_vcluster or self.vcluster.node_pool or team.node_pool)

    def foreign_pools(self, name: str) -> list[dict[str, str]]:
        """Labels of the nodes that other teams and control planes use, each pool once, sorted.

        Empty for a team with nodes of its own.
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

        The queue that the team is granted is left out.
        """
        _, granted = self.scheduler_and_queue_of(name)
        names = {placed.name for placed in walk(self.queues)}
        names.update(self.all_teams)
        names.discard(granted or "")
        return sorted(other for other in names if other.startswith(f"{name}-"))

    def volume_classes(self, name: str) -> list[str]:
        """Classes that a team's claims may name: those granted to it, and that of vClusters."""
        return [*self.team_or_grant(name).isolation.volume_classes, *self.vcluster.claim_classes]

    def sharing_of(self, kai: HostKai | Scheduler) -> SharingMode:
        """The mode in which a KAI shares GPUs: Disabled unless the host's GPUs are nvidia.com/gpu.

        KAI reserves every shared GPU under that name.
        """
        return kai.gpu_sharing if self.gpu.resource == NVIDIA else DISABLED


@dataclass(frozen=True)
class Loaded:
    """The settings without the wrong keys (None if nothing usable is left), and all mistakes."""

    settings: Settings | None
    mistakes: tuple[Finding, ...] = ()


def with_mistakes_between_keys(settings: Settings | None, in_file: Sequence[Finding]) -> Loaded:
    """The settings with all mistakes: those `in_file`, and those between keys.

    A mistake between keys is left out where a key above or below it is wrong already, and, if a key
    of the stack's or of the team's scheduler is wrong, in all of the team's scheduler.
    """
    if settings is None:
        return Loaded(None, tuple(in_file))
    wrong_paths = [mistake.path for mistake in in_file]
    for name in settings.teams:
        scheduler = f"{settings.team_path(name)}.scheduler"
        roots = ("kai-fleet:scheduler", scheduler)
        if any(path.startswith(roots) for path in wrong_paths):
            wrong_paths.append(scheduler)
    mistakes = list(in_file)
    for path, message in dict.fromkeys(_between_keys(settings)):
        if not overlaps(path, wrong_paths):
            mistakes.append(wrong_key(path, message))
    return Loaded(settings, tuple(mistakes))


def load(raw: Mapping[str, Any]) -> Loaded:
    """Settings from the `kai-fleet:` keys of a platform's stack file, and all mistakes in them."""
    settings, mistakes = model_and_mistakes(Settings, raw)
    if settings is not None:
        settings.remember_file(raw)
    return with_mistakes_between_keys(settings, mistakes)


def _between_keys(settings: Settings) -> Mistakes:
    """All mistakes that show only between keys."""
    yield from below("kai-fleet:cluster", settings.cluster.mistakes())
    for name in settings.teams:
        yield from _team_mistakes(settings, name)
    yield from _databases(settings)
    if settings.platform_facts is None:
        yield from _platform_mistakes(settings)
        for name in settings.teams:
            yield from _domains(settings, name)
    yield from _names_of_teams(settings)
    yield from _gpu_resources(settings)


def _names_of_teams(settings: Settings) -> Mistakes:
    """Removed teams that are still declared, and workloads for teams that are not."""
    for name in settings.removed:
        if name in settings.teams:  # a later edit that drops it by mistake would delete it
            fix = f"take it out of here, or out of {settings.team_path(name)}"
            yield "kai-fleet:removed", f"names {name}, which is a team still; {fix}"
    for name in settings.workloads:
        if name not in settings.teams:
            teams = ", ".join(settings.teams) or "none yet"
            message = f"is for no team of this stack; the teams: {teams}"
            yield f"kai-fleet:workloads.{name}", message


def _gpu_resources(settings: Settings) -> Mistakes:
    """GPUs of teams under another resource than the host's; MIG slices only with NVIDIA's GPUs."""
    resource = settings.gpu.resource
    for name in settings.all_teams:
        gpus = settings.team_or_grant(name).gpus
        if isinstance(gpus, int):
            continue
        for other in gpus:
            is_slice = resource == NVIDIA and other.startswith(mig.PREFIX)
            if other == resource or is_slice:
                continue
            cause = f"has {other}, and the host's GPUs are {resource} (kai-fleet:gpu.resource)"
            yield f"{settings.team_path(name)}.gpus", f"{cause}; write {resource}"


def _domains(settings: Settings, name: str) -> Mistakes:
    """Keys in a team's labels and annotations whose domain the platform does not list.

    A key that the stack has with the same value is the stack's.
    """
    team = settings.teams[name]
    yield from _foreign_domains(settings, name, "labels", settings.labels, team.labels)
    yield from _foreign_domains(
        settings, name, "annotations", settings.annotations, team.annotations
    )


def _foreign_domains(
    settings: Settings, name: str, key: str, stack: Mapping[str, str], team: Mapping[str, str]
) -> Mistakes:
    """`_domains` of the team's `key`: `labels` or `annotations`, beside those of the stack."""
    for noted, value in team.items():
        if stack.get(noted) == value or in_domains(noted, settings.key_domains):
            continue
        domains = ", ".join(settings.key_domains) or "none"
        cause = f"has {noted}, whose domain is not in kai-fleet:keyDomains: {domains}"
        fix = "drop it, or have the platform write its domain there, such as example.com"
        yield f"{settings.team_path(name)}.{key}", f"{cause}; {fix}"


def _team_mistakes(settings: Settings, name: str) -> Mistakes:
    """Mistakes between keys of a team, at the team's path or at the stack's default."""
    team = settings.teams[name]
    path = settings.team_path(name)
    parent = _granted_queue(settings, name)
    for key, message in team.mistakes(parent):
        if key.startswith("scheduler."):
            yield settings.key_path_of(name, key), message
        else:
            yield f"{path}.{key}", message
    shards = shard_mistakes(team.queues, team.scheduler.shards, parent)
    yield from below(f"{path}.queues", shards)
    for key, message in team.vcluster.mistakes():
        keys = key.split(".")
        yield settings.key_path_of(name, "vcluster", *keys), message


def _granted_queue(settings: Settings, name: str) -> str | None:
    """The host's queue that the platform grants to a team stack in mode host; else None."""
    facts = settings.platform_facts
    if facts is None or settings.teams[name].scheduler.mode != "host":
        return None
    return facts.grant_of(name).parent_queue


def _databases(settings: Settings) -> Mistakes:
    """Databases of more than one vCluster: each would overwrite the objects of the others.

    Of teams with one database all but the first are reported.
    """
    if settings.vcluster.store.data_source is not None:
        cause = "is one database for all teams, and each writes over the others' objects"
        fix = "write one at kai-fleet:teams.NAME.vcluster.store.dataSource of each"
        yield "kai-fleet:vcluster.store.dataSource", f"{cause}; {fix}"
    users: dict[str, str] = {}
    for name, url in _database_urls(settings):
        user = users.setdefault(url, name)
        if user != name:
            cause = f"is the database of team {user}, and each writes over the other's objects"
            path = f"{settings.team_path(name)}.vcluster.store.dataSource"
            yield path, f"{cause}; write one of its own"


def _database_urls(settings: Settings) -> Iterator[tuple[str, str]]:
    """Teams with the decrypted URLs of their databases; a plan has only MASK, which is left out."""
    for name, team in settings.teams.items():
        secret = team.vcluster.store.data_source
        if secret is not None and secret.get_secret_value() != MASK:
            yield name, secret.get_secret_value()


def _platform_mistakes(settings: Settings) -> Mistakes:
    """Mistakes between keys that only a platform's stack has."""
    kind = settings.cluster.kind
    if kind is not None:
        accesses = dict[str, Access]()
        for name, team in settings.teams.items():
            accesses[name] = team.vcluster.access or Access()
        for name, message in kind.unreachable(accesses):
            yield f"kai-fleet:teams.{name}.vcluster.access.port", message
    kai = settings.kai
    host_mode = [name for name, team in settings.teams.items() if team.scheduler.mode == "host"]
    if kai is None and (host_mode or settings.queues):
        cause = "is missing: kai-fleet:queues and teams in mode host need a KAI on the host"
        yield "kai-fleet:kai", f"{cause}; write {{version: {advised(KAI) or EXAMPLE_VERSION}}}"
    shards = kai.shards if kai else {}
    yield from below("kai-fleet:queues", shard_mistakes(settings.queues, shards))
    # Only the queues of the host's KAI bound the GPUs of a team in mode host.
    isolated = [name for name in host_mode if settings.teams[name].isolation.is_on]
    outside = settings.guard.outside_queues
    if isolated and outside != "deny":
        cause = (
            f"is {outside}, and only its queue bounds what {isolated[0]} has in mode host,"
            " fractions and all"
        )
        fix = "write deny, or isolation: {level: off} for teams in mode host"
        yield "kai-fleet:guard.outsideQueues", f"{cause}; {fix}"


def read_config() -> tuple[dict[str, Any], frozenset[str], list[Finding]]:
    """Read the Pulumi configuration of the running program.

    Returns:
        The values of the `kai-fleet:` keys, those of these keys that have encrypted values in them,
        and mistakes for keys that look like misspelt ones.
    """
    raw = pulumi_config.CONFIG.get() or pulumi_config.get_config_env()
    secret_keys = set(pulumi_config.get_config_secret_keys_env())
    secret_keys.update(filter(pulumi_config.is_config_secret, raw))
    decrypted = own_keys(dict.fromkeys(secret_keys))
    return values_of_config(raw), frozenset(decrypted), misspelt(raw)


def values_of_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The `kai-fleet:` keys of a configuration as the engine gives it to programs and packs."""
    return {key: _parsed(value) for key, value in own_keys(config).items()}


def _parsed(value: Any) -> Any:
    """The value in a JSON text; a text that is no JSON, and any other value, unchanged."""
    try:
        return json.loads(value)
    except (TypeError, ValueError, RecursionError):
        return value
