"""A stack's configuration: every key typed and checked at once, before anything is declared.

`load` never raises for a user's mistake. It reports all of them with their key paths, and gives
the settings without the wrong parts.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, PrivateAttr, model_validator

from kai_fleet.finding import Finding
from kai_fleet.releases import DISABLED
from kai_fleet.releases.chart_values import merged
from kai_fleet.releases.sharing import SharingMode
from kai_fleet.settings.cross_checks import between_keys
from kai_fleet.settings.files import stack_keys
from kai_fleet.settings.files.named import Manifests
from kai_fleet.settings.mistakes import NAMESPACE, key_path, validated, within
from kai_fleet.settings.sections.access import Access, Cluster, Registries, access_in_kind
from kai_fleet.settings.sections.isolation import Guard, Isolation
from kai_fleet.settings.sections.kubernetes import Affinity, LabelValue, NotedKey, Toleration
from kai_fleet.settings.sections.models import Strict
from kai_fleet.settings.sections.platform import (
    NVIDIA,
    Gpu,
    HostKai,
    Monitoring,
    Sources,
    TeamName,
)
from kai_fleet.settings.sections.queues import QueueTree
from kai_fleet.settings.sections.teams import Grant, HostPlace, Removed, Scheduler, TeamSettings
from kai_fleet.settings.sections.vcluster import Vcluster
from kai_fleet.values import get

if TYPE_CHECKING:
    from kai_fleet.settings.team_stack import Facts

__all__ = ["Loaded", "Settings", "key_path", "load", "read_config", "validated"]


class Settings(Strict):
    """One stack: a host cluster, what runs on it for everybody, and its teams."""

    cluster: Cluster
    """The host cluster: its name, and how to reach or make it."""
    gpu: Gpu = Field(default_factory=Gpu)
    """The host's GPU stack."""
    kai: HostKai | None = None
    """Absent when no team is in host mode."""
    queues: QueueTree = Field(default_factory=dict)
    """The host's queue tree."""
    vcluster: Vcluster = Field(default_factory=Vcluster)
    """What every team's vCluster has unless it says so."""
    guard: Guard = Field(default_factory=Guard)
    """Wrong pods at admission: deny them?"""
    isolation: Isolation = Field(default_factory=Isolation)
    """What keeps teams from each other, on the host."""
    labels: dict[NotedKey, LabelValue] = Field(default_factory=dict)
    """Labels of all that the stack makes, the platform's and the teams': a cost centre."""
    annotations: dict[NotedKey, str] = Field(default_factory=dict)
    """Annotations of all that the stack makes, but of pods."""
    tolerations: list[Toleration] = Field(default_factory=list)
    """Taints of nodes that every team's pods tolerate, its control plane's too."""
    affinity: Affinity | None = None
    """Where every team's control plane, DNS and KAI are."""
    sources: Sources = Field(default_factory=Sources)
    """Where charts and images may come from."""
    registries: Registries = Field(default_factory=dict)
    """Credentials to pull images, by registry: of the GPU stack, of KAI and of every team."""
    monitoring: Monitoring | None = None
    """Monitors, alerts and dashboards for your Prometheus; absent, there are none."""
    teams: dict[TeamName, TeamSettings] = Field(default_factory=dict)
    """Each team below its name; `host` is none."""
    team_stacks: dict[TeamName, Grant] = Field(default_factory=dict)
    """Teams with a stack of their own, and what each may have."""
    removed: Removed = Field(default_factory=list)
    workloads: dict[TeamName, Manifests] = Field(default_factory=dict)
    """YAML files of each team: Kubernetes objects for the inside of its vCluster."""

    # The file, for the paths of findings; the platform, in a team's own stack.
    _file: Mapping[str, Any] = PrivateAttr(default_factory=dict)
    _platform: "tuple[str, Facts] | None" = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _filled_in(self) -> Self:
        """Write into each team what the stack says for all teams."""
        teams = {
            name: team.model_copy(update=self._place(team) | {"vcluster": self._vcluster(team)})
            for name, team in self.teams.items()
        }
        grants = {
            name: grant.model_copy(update=self._place(grant))
            for name, grant in self.team_stacks.items()
        }
        return self.model_copy(update={"teams": teams, "team_stacks": grants})

    def _place(self, own: HostPlace) -> dict[str, Any]:
        written = "tolerations" in own.model_fields_set
        return {
            "isolation": self.isolation.over(own.isolation),
            "labels": {**self.labels, **own.labels},
            "annotations": {**self.annotations, **own.annotations},
            "tolerations": own.tolerations if written else self.tolerations,
            "affinity": own.affinity or self.affinity,
        }

    def _vcluster(self, team: TeamSettings) -> Vcluster:
        of_all, own = self.vcluster, team.vcluster
        access = (of_all.access or Access()).over(own.access)
        return of_all.over(own).model_copy(
            update={
                "values": merged(of_all.values, own.values),
                "groups": {**of_all.groups, **own.groups},
                "access": access if self.cluster.kind is None else access_in_kind(access),
            }
        )

    def of_file(self, raw: Mapping[str, Any], platform: "tuple[str, Facts] | None" = None) -> Self:
        """The same with the file that it is of; `platform` is the stack's name and its facts."""
        self._file, self._platform = raw, platform
        return self

    @property
    def platform_facts(self) -> "Facts | None":
        """What a team's own stack knows of its platform; None in a platform's stack."""
        return self._platform[1] if self._platform else None

    @property
    def platform_stack(self) -> str:
        """The stack that has the host cluster of a team's own stack; "" in a platform's stack."""
        return self._platform[0] if self._platform else ""

    def _place_of(self, team: str) -> tuple[str, ...]:
        if self._platform is not None:
            return ("team",)
        return ("teams" if team in self.teams else "teamStacks", team)

    def team_path(self, team: str) -> str:
        """The key path of a team in the stack file, or of what a stack of its own is granted."""
        return key_path(self._place_of(team))

    def written_at(self, team: str, *keys: str) -> str:
        """The key path of what a team has at `keys`: the stack's where that says it for all teams.

        A key that nobody writes belongs to who writes the section around it, else to the team.
        """
        parts = ".".join(keys).split(".")
        for depth in range(len(parts), 1, -1) if self._platform is None else ():
            if get(self._file, *self._place_of(team), *parts[:depth]) is not None:
                break
            if get(self._file, *parts[:depth]) is not None:
                return key_path(keys)
        return ".".join((self.team_path(team), *keys))

    def own_of(self, team: str) -> TeamSettings | Grant:
        """A team, or what a stack of its own is granted."""
        return self.teams.get(team) or self.team_stacks[team]

    def sharing_of(self, kai: HostKai | Scheduler) -> SharingMode:
        """How a KAI lets pods share GPUs.

        It reserves a shared one by the name nvidia.com/gpu, so other vendors' are given whole.
        """
        return kai.gpu_sharing.mode if self.gpu.resource == NVIDIA else DISABLED

    def shares_gpus(self, kai: HostKai | Scheduler) -> bool:
        """Whether a KAI lets pods share GPUs."""
        return self.sharing_of(kai) != DISABLED


@dataclass(frozen=True)
class Loaded:
    """Settings (None where too little was right) and every mistake.

    `dropped` are the key paths whose values were left out of the settings because of a mistake.
    """

    settings: Settings | None
    mistakes: tuple[Finding, ...] = ()
    dropped: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        settings: Settings | None,
        found: Iterable[Finding],
        dropped: Sequence[str],
        more: Iterable[Finding] = (),
    ) -> Self:
        """With what only shows between keys, but not for what was left out."""
        between = dict.fromkeys((*more, *(between_keys(settings, dropped) if settings else ())))
        kept = (mistake for mistake in between if not within(mistake.path, dropped))
        return cls(settings, (*found, *kept), tuple(dropped))


def load(raw: Mapping[str, Any]) -> Loaded:
    """Settings from the `kai-fleet:` part of a stack file: `{"cluster": {…}, "teams": {…}}`."""
    settings, found, dropped = validated(Settings, raw)
    return Loaded.of(settings and settings.of_file(raw), found, dropped)


def read_config() -> tuple[dict[str, Any], frozenset[str], list[Finding]]:
    """The `kai-fleet:` part of the running program's Pulumi configuration; which of its keys hold
    something encrypted; and keys that were meant to be ours and are not.

    Pulumi hands structured values over as JSON text; a plain `key: text` stays text.
    """
    from pulumi.runtime import config

    raw = config.CONFIG.get() or config.get_config_env()
    wrong = stack_keys.misspelt(raw, map(Settings.key_of, Settings.model_fields))
    secret = config.get_config_secret_keys_env()
    hidden = frozenset(
        key
        for key in stack_keys.own(raw)
        if (whole := f"{NAMESPACE}:{key}") in secret or config.is_config_secret(whole)
    )
    return parsed(raw), hidden, wrong


def parsed(config: Mapping[str, Any]) -> dict[str, Any]:
    """The `kai-fleet:` part of a configuration as the engine hands it to programs and packs."""
    return {key: _parsed(value) for key, value in stack_keys.own(config).items()}


def _parsed(value: Any) -> Any:
    try:
        return json.loads(value)
    except (TypeError, ValueError, RecursionError):
        return value
