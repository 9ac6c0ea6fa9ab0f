"""A stack's configuration: every key typed and checked at once, before anything is declared.

`load` never raises for a user's mistake. It reports all of them with their key paths, and gives
the settings without the wrong parts.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

from pydantic import Field, PrivateAttr, model_validator

from kai_fleet.finding import Finding
from kai_fleet.releases import DISABLED, GPU_PROVIDERS, KAI, advised, mig, sources, taken_for
from kai_fleet.releases.chart_values import merged, nested
from kai_fleet.releases.sharing import SharingMode
from kai_fleet.releases.sources import KnownSources
from kai_fleet.settings.files.manifests import Manifests
from kai_fleet.settings.mistakes import key_path, misspelt, own_keys, validated, within, wrong_key
from kai_fleet.settings.sections.access import Access, Cluster, Mirror, Registries
from kai_fleet.settings.sections.isolation import Guard
from kai_fleet.settings.sections.kubernetes import ObjectName, in_domains
from kai_fleet.settings.sections.models import Grants, Strict, Wrong, below, short_for
from kai_fleet.settings.sections.platform import (
    EXAMPLE_VERSION,
    NVIDIA,
    Gpu,
    HostKai,
    Monitoring,
    Name,
    Sources,
    TeamName,
)
from kai_fleet.settings.sections.queues import QueueTree, shard_mistakes
from kai_fleet.settings.sections.teams import REMOVED, Defaults, Grant, Scheduler, TeamSettings
from kai_fleet.settings.sections.vcluster import Vcluster
from kai_fleet.values import get
from kai_fleet.wording import MASK

if TYPE_CHECKING:
    from kai_fleet.settings.team_stack import Facts

S = TypeVar("S", Gpu, HostKai, Scheduler, Vcluster)

__all__ = ["Loaded", "Settings", "key_path", "load", "read_config", "validated"]


class Platform(Strict):
    """What holds for a platform's stack and for its teams' own stacks."""

    gpu: Gpu = Field(default_factory=Gpu)
    """The host's GPU stack."""
    kai: HostKai | None = None
    """Absent when no team is in host mode."""
    vcluster: Vcluster = Field(default_factory=Vcluster)
    """What every team's vCluster has unless it says so."""
    scheduler: Scheduler = Field(default_factory=Scheduler)
    """What every team's scheduler is unless it says so."""
    guard: Guard = Field(default_factory=Guard)
    """Wrong pods at admission: deny them?"""
    key_domains: list[ObjectName] = Field(default_factory=list)
    """Domains of keys that teams may write in labels, annotations and access.annotations."""
    sources: Sources = Field(default_factory=Sources)
    """Where charts and images may come from."""
    mirror: Annotated[Mirror, short_for("registry", str, Mirror | str)] | None = None
    """Where all charts and images come from, for all teams; absent, from their projects."""
    monitoring: Monitoring | None = None
    """Monitors, alerts and dashboards for your Prometheus; absent, there are none."""


class Settings(Defaults, Platform):
    """One stack: a host cluster, what runs on it for everybody, and its teams."""

    cluster: Annotated[Cluster, Grants.NOTHING]
    """The host cluster: its name, and how to reach or make it."""
    queues: QueueTree = Field(default_factory=dict)
    """The host's queue tree."""
    registries: Registries = Field(default_factory=dict)
    """Credentials to pull images, by registry: of the GPU stack, of KAI and of every team."""
    teams: dict[TeamName, TeamSettings] = Field(default_factory=dict)
    """Each team below its name; `host` is none."""
    team_stacks: dict[TeamName, Grant] = Field(default_factory=dict)
    """Teams with a stack of their own, and what each may have."""
    removed: Annotated[list[Name], Grants.NOTHING] = Field(
        default_factory=list, description=REMOVED
    )
    workloads: Annotated[dict[TeamName, Manifests], Grants.NOTHING] = Field(default_factory=dict)
    """YAML files of each team: Kubernetes objects for the inside of its vCluster."""

    # The file, for the paths of findings; the platform, in a team's own stack.
    _file: Mapping[str, Any] = PrivateAttr(default_factory=dict)
    _platform: "Facts | None" = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _filled_in(self) -> Self:
        """Write into each team, and each chart, what the stack says for all of them."""
        teams = {name: self._team(team) for name, team in self.teams.items()}
        grants = {
            name: grant.model_copy(update=self.of_team(grant))
            for name, grant in self.team_stacks.items()
        }
        provider, account = GPU_PROVIDERS[self.gpu.provider], self.mirror and self.mirror.account
        update: dict[str, Any] = {
            "teams": teams,
            "team_stacks": grants,
            "gpu": self._of_mirror(self.gpu, provider.chart, provider.images),
            "kai": self.kai and self._kai(self.kai),
        }
        if self.mirror and account:
            update["registries"] = {self.mirror.registry: account, **self.registries}
        return self.model_copy(update=update)

    def _of_mirror(self, section: S, chart: str, images: Mapping[str, str]) -> S:
        """A section whose chart and images are the mirror's, but for what it says itself; `images`
        are places by key of the chart's values.
        """
        if self.mirror is None or not chart:
            return section
        registry = self.mirror.registry
        moved = (nested(key, sources.mirrored(registry, place)) for key, place in images.items())
        there = section.chart or f"oci://{registry}/charts/{chart}"
        return section.model_copy(update={"chart": there, "values": merged(*moved, section.values)})

    def _kai(self, kai: S) -> S:
        version = kai.version or ""
        release = KAI.get((version and taken_for(KAI, version)) or version)
        images = {"global.registry": release.images} if release else {}
        return self._of_mirror(kai, "kai-scheduler" if release else "", images)

    def _team(self, team: TeamSettings) -> TeamSettings:
        scheduler = self.scheduler.over(team.scheduler)
        more: dict[str, Any] = {"scheduler": scheduler, "vcluster": self._vcluster(team)}
        if scheduler.mode == "virtual":
            more["scheduler"] = self._kai(scheduler)
        return team.model_copy(update=self.of_team(team) | more).with_pools()

    def _vcluster(self, team: TeamSettings) -> Vcluster:
        of_all, own, kind = self.vcluster, team.vcluster, self.cluster.kind
        access = (of_all.access or Access()).over(own.access)
        section = of_all.over(own).model_copy(
            update={
                "values": merged(of_all.values, own.values),
                "groups": {**of_all.groups, **own.groups},
                "access": kind.access(access) if kind else access,
            }
        )
        images = {"controlPlane.advanced.defaultImageRegistry": "ghcr.io"}
        return self._of_mirror(section, "vcluster", images)

    def of_file(self, raw: Mapping[str, Any], platform: "Facts | None" = None) -> Self:
        """The same with the file that it is of; in a team's own stack with its platform."""
        self._file, self._platform = raw, platform
        return self

    @property
    def known_sources(self) -> KnownSources:
        """Where charts and images may come from."""
        mirror = (self.mirror.registry,) if self.mirror else ()
        return KnownSources((*self.sources.charts,), (*self.sources.images,), mirror)

    @property
    def platform_facts(self) -> "Facts | None":
        """What a team's own stack knows of its platform; None in a platform's stack."""
        return self._platform

    @property
    def platform_stack(self) -> str:
        """The stack that has the host cluster of a team's own stack; "" in a platform's stack."""
        return self._platform.stack if self._platform else ""

    def team_path(self, team: str) -> str:
        """The key path of a team in the stack file, or of what a stack of its own is granted."""
        if self.platform_facts is not None:
            return key_path(("team",))
        return key_path(("teams" if team in self.teams else "teamStacks", team))

    def written_at(self, team: str, *keys: str) -> str:
        """The key path of what a team has at `keys`: the stack's where that says it for all teams.

        A key that nobody writes belongs to who writes the section around it, else to the team.
        """
        parts, own = ".".join(keys).split("."), self.team_path(team).partition(":")[2].split(".")
        for depth in range(len(parts), 1, -1) if self.platform_facts is None else ():
            if get(self._file, *own, *parts[:depth]) is not None:
                break
            if get(self._file, *parts[:depth]) is not None:
                return key_path(keys)
        return ".".join((self.team_path(team), *keys))

    def own_of(self, team: str) -> TeamSettings | Grant:
        """A team, or what a stack of its own is granted."""
        return self.teams.get(team) or self.team_stacks[team]

    def sharing_of(self, kai: HostKai | Scheduler) -> SharingMode:
        """How a KAI lets pods share GPUs: it reserves shared ones as nvidia.com/gpu, no others."""
        return kai.gpu_sharing if self.gpu.resource == NVIDIA else DISABLED


@dataclass(frozen=True)
class Loaded:
    """Settings (None where too little was right) and every mistake, whose key they do not have."""

    settings: Settings | None
    mistakes: tuple[Finding, ...] = ()


def checked(settings: Settings | None, found: Sequence[Finding]) -> Loaded:
    """Settings with the mistakes between their keys, but not where something is wrong already."""
    wrong = (wrong_key(*each) for each in (_between_keys(settings) if settings else ()))
    paths = [mistake.path for mistake in found]
    for name in settings.teams if settings else ():  # one that is wrong in part is not whole
        own = f"{settings.team_path(name)}.scheduler" if settings else ""
        paths += [own] if any(p.startswith(("kai-fleet:scheduler", own)) for p in paths) else []
    kept = (mistake for mistake in dict.fromkeys(wrong) if not within(mistake.path, paths))
    return Loaded(settings, (*found, *kept))


def load(raw: Mapping[str, Any]) -> Loaded:
    """Settings from the `kai-fleet:` part of a stack file: `{"cluster": {…}, "teams": {…}}`."""
    settings, found = validated(Settings, raw)
    return checked(settings and settings.of_file(raw), found)


def _between_keys(settings: Settings) -> Wrong:
    """Everything that only shows between keys: (key path, sentence)."""
    yield from below("kai-fleet:cluster", settings.cluster.mistakes())
    for name in settings.teams:
        yield from _of_team(settings, name)
    yield from _databases(settings)
    if settings.platform_facts is None:
        yield from _of_platform(settings)
        for name in settings.teams:
            yield from _domains(settings, name)
    for name in settings.removed:  # it could go by a slip later
        if name in settings.teams:
            fix = f"take it out of here, or out of {settings.team_path(name)}"
            yield "kai-fleet:removed", f"names {name}, which is a team still; {fix}"
    for name in settings.workloads:
        if name not in settings.teams:
            known = ", ".join(settings.teams) or "none yet"
            message = f"is for no team of this stack; the teams: {known}"
            yield f"kai-fleet:workloads.{name}", message
    resource = settings.gpu.resource
    for name in (*settings.teams, *settings.team_stacks):
        gpus, path = settings.own_of(name).gpus, f"{settings.team_path(name)}.gpus"
        for kind in () if isinstance(gpus, int) else gpus:
            if kind != resource and (resource != NVIDIA or not kind.startswith(mig.PREFIX)):
                cause = f"has {kind}, and the host's GPUs are {resource} (kai-fleet:gpu.resource)"
                yield path, f"{cause}; write {resource}"


def _domains(settings: Settings, name: str) -> Wrong:
    """Keys of labels and annotations that a team writes: of domains that the platform lists."""
    for kind in ("labels", "annotations"):
        of_all, own = getattr(settings, kind), getattr(settings.teams[name], kind)
        for key, value in own.items():
            if of_all.get(key) != value and not in_domains(key, settings.key_domains):
                domains = ", ".join(settings.key_domains) or "none"
                cause = f"has {key}, whose domain is not in kai-fleet:keyDomains: {domains}"
                fix = "drop it, or have the platform write its domain there, such as example.com"
                yield f"{settings.team_path(name)}.{kind}", f"{cause}; {fix}"


def _of_team(settings: Settings, name: str) -> Wrong:
    team, path, facts = settings.teams[name], settings.team_path(name), settings.platform_facts
    parent = facts.granted(name).parent_queue if facts and team.scheduler.mode == "host" else None
    for key, message in team.mistakes(parent):
        of_all = key.startswith("scheduler.")
        yield settings.written_at(name, key) if of_all else f"{path}.{key}", message
    yield from below(f"{path}.queues", shard_mistakes(team.queues, team.scheduler.shards, parent))
    for key, message in team.vcluster.mistakes():
        yield settings.written_at(name, "vcluster", *key.split(".")), message


def _databases(settings: Settings) -> Wrong:
    """Each vCluster has a database to itself: two in one write over each other's objects."""
    if settings.vcluster.store.data_source is not None:
        cause = "is one database for all teams, and each writes over the others' objects"
        fix = "write one at kai-fleet:teams.NAME.vcluster.store.dataSource of each"
        yield "kai-fleet:vcluster.store.dataSource", f"{cause}; {fix}"
    first: dict[str, str] = {}
    for name, team in settings.teams.items():
        secret = team.vcluster.store.data_source
        url = secret.get_secret_value() if secret is not None else MASK
        other = first.setdefault(url, name)
        if url != MASK and other != name:  # before it is decrypted nobody knows
            cause = f"is the database of team {other}, and each writes over the other's objects"
            path = f"{settings.team_path(name)}.vcluster.store.dataSource"
            yield path, f"{cause}; write one of its own"


def _of_platform(settings: Settings) -> Wrong:
    """Between the keys that a team's own stack does not have."""
    kai, guard, kind = settings.kai, settings.guard, settings.cluster.kind
    if kind is not None:
        accesses = {name: t.vcluster.access or Access() for name, t in settings.teams.items()}
        for team, message in kind.unreachable(accesses):
            yield f"kai-fleet:teams.{team}.vcluster.access.port", message
    # What the host's KAI is for: teams in host mode, whose GPUs only its queues bound.
    host_mode = [name for name, team in settings.teams.items() if team.scheduler.mode == "host"]
    isolated = [name for name in host_mode if settings.teams[name].isolation.on]
    if kai is None and (host_mode or settings.queues):
        cause = "is missing: kai-fleet:queues and teams in mode host need a KAI on the host"
        yield "kai-fleet:kai", f"{cause}; write {{version: {advised(KAI) or EXAMPLE_VERSION}}}"
    shards = kai.shards if kai else {}
    yield from below("kai-fleet:queues", shard_mistakes(settings.queues, shards))
    if isolated and guard.outside_queues != "deny":
        cause = (
            f"is {guard.outside_queues}, and only its queue bounds what {isolated[0]} has in mode"
        )
        fix = "write deny, or isolation: {level: off} for teams in mode host"
        yield "kai-fleet:guard.outsideQueues", f"{cause} host, fractions and all; {fix}"


def read_config() -> tuple[dict[str, Any], frozenset[str], list[Finding]]:
    """The `kai-fleet:` part of the running program's Pulumi configuration; which of its keys hold
    something encrypted; and keys that were meant to be ours and are not.
    """
    from pulumi.runtime import config

    raw = config.CONFIG.get() or config.get_config_env()
    secret = {*config.get_config_secret_keys_env(), *filter(config.is_config_secret, raw)}
    return parsed(raw), frozenset(own_keys(dict.fromkeys(secret))), misspelt(raw)


def parsed(config: Mapping[str, Any]) -> dict[str, Any]:
    """The `kai-fleet:` part of a configuration as the engine hands it to programs and packs."""
    return {key: _parsed(value) for key, value in own_keys(config).items()}


def _parsed(value: Any) -> Any:
    """A value, which Pulumi hands over as JSON text; a plain `key: text` stays text."""
    try:
        return json.loads(value)
    except (TypeError, ValueError, RecursionError):
        return value
