"""A stack's configuration: every key typed and checked at once, before anything is declared.

`load` never raises for a user's mistake. It reports all of them with their key paths, and gives
the settings without the wrong parts, so that the rules can still be asked about the rest.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import BaseModel, Field, ValidationError

from components.settings.cluster import Cluster
from components.settings.guard import Guard
from components.settings.kind import access_in_kind, port_mistakes
from components.settings.mistakes import NAMESPACE, Location, Mistake, key_path, mistakes
from components.settings.model import Strict
from components.settings.platform import NVIDIA, Gpu, HostKai, Name
from components.settings.queue_files import or_file, with_trees
from components.settings.queues import QueueTree, shard_mistakes, walk
from components.settings.scheduling import Scheduling, scheduling_mistakes
from components.settings.team_gpus import too_many_gpus
from components.settings.team_stack import Grant
from components.settings.teams import Access, Scheduler, Team, Vcluster, mode_mistakes
from components.settings.workloads import Workload, workload_mistakes
from components.values import merged

__all__ = ["Loaded", "Mistake", "Settings", "key_path", "load", "read_config", "validated"]

M = TypeVar("M", bound=BaseModel)


class Settings(Strict):
    """One stack: a host cluster, what runs on it for everybody, and its teams."""

    cluster: Cluster = Field(description="The host cluster: its name, and how to reach or make it.")
    gpu: Gpu = Field(default_factory=Gpu)
    kai: HostKai | None = Field(default=None, description="Absent when no team is in host mode.")
    queues: QueueTree = Field(
        default_factory=dict, description="The host's queue tree.", json_schema_extra=or_file
    )
    vcluster: Vcluster = Field(
        default_factory=Vcluster, description="What every team's vCluster has unless it says so."
    )
    guard: Guard = Field(default_factory=Guard, description="Wrong pods at admission: deny them?")
    teams: dict[Name, Team] = Field(default_factory=dict)
    team_stacks: dict[Name, Grant] = Field(
        default_factory=dict, description="Teams with a stack of their own, and what each may have."
    )

    workloads: dict[Name, Workload] = Field(
        default_factory=dict, description="What runs in the teams' vClusters, by name."
    )

    def team_path(self, team: str) -> str:
        """The key path of a team in the stack file."""
        return key_path(("teams", team))

    def vcluster_of(self, team: str) -> Vcluster:
        """A team's vCluster with the stack's defaults filled in, chart values merged."""
        own = self.teams[team].vcluster
        given = {key: getattr(own, key) for key in own.model_fields_set}
        values = merged(self.vcluster.values, own.values)
        merged_over = self.vcluster.model_copy(update={**given, "values": values})
        if self.cluster.kind is None:
            return merged_over
        return merged_over.model_copy(update={"access": access_in_kind(merged_over.access)})

    def kai_of(self, team: str) -> str | None:
        """The version of the KAI that schedules a team's pods; None where none does."""
        scheduler = self.teams[team].scheduler
        if scheduler.mode == "host":
            return self.kai.version if self.kai else None
        return scheduler.version

    def shard_of(self, team: str, queue: str | None) -> str | None:
        """The shard that serves a queue of a team's pods; None is KAI's default one."""
        host = self.teams[team].scheduler.mode == "host"
        tree = self.queues if host else self.teams[team].queues
        return next((placed.shard for placed in walk(tree) if placed.name == queue), None)

    def shares_gpus(self, kai: HostKai | Scheduler) -> bool:
        """Whether a KAI lets pods share GPUs.

        It reserves a shared one by the name nvidia.com/gpu, so other vendors' are given whole.
        """
        return kai.gpu_sharing and self.gpu.resource == NVIDIA

    def access_of(self, team: str) -> Access:
        """How a team's vCluster is reached."""
        return self.vcluster_of(team).access or Access()


_TEAMS: Final = key_path(("teams",))


@dataclass(frozen=True)
class Loaded:
    """What `load` found: settings (None where too little was right) and every mistake.

    `dropped` are the key paths whose values were left out of the settings because of a mistake.
    """

    settings: Settings | None
    mistakes: tuple[Mistake, ...] = ()
    dropped: tuple[str, ...] = ()


def load(raw: Mapping[str, Any]) -> Loaded:
    """Settings from the `kai-fleet:` part of a stack file: `{"cluster": {…}, "teams": {…}}`."""
    whole, unread = with_trees(raw)
    settings, found, dropped = validated(Settings, whole)
    dropped += [mistake.path for mistake in unread]
    found += unread
    if settings is not None:
        between = (*_between_keys(settings), *_of_kind(settings))
        found += [
            mistake
            for mistake in (*between, *workloads_mistakes(settings, dropped))
            if not _within(mistake.path, dropped)
        ]
    return Loaded(settings, tuple(found), tuple(dropped))


def validated(model: type[M], raw: Any) -> tuple[M | None, list[Mistake], list[str]]:
    """A model without its wrong parts, every mistake, and the key paths that were left out."""
    found: list[Mistake] = []
    dropped: list[str] = []
    rest = raw
    for _ in range(4):  # leaving a wrong part out can show others, seldom more than once
        try:
            return model.model_validate(rest), found, dropped
        except ValidationError as error:
            found += [m for m in mistakes(error, model, rest) if not _within(m.path, dropped)]
            places = [detail["loc"] for detail in error.errors(include_url=False)]
            if any(detail["type"] == "recursion_loop" for detail in error.errors()):
                break
            rest = _without(rest, places)
            dropped += [key_path(place) for place in places]
    return None, found, dropped


def _between_keys(settings: Settings) -> Iterator[Mistake]:
    """What only shows when several keys are looked at together."""
    cluster = settings.cluster
    ways = (cluster.context, cluster.kubeconfig, cluster.kind)
    if sum(way is not None for way in ways) != 1:
        yield Mistake(
            key_path(("cluster", "context")),
            "is needed, or kubeconfig, or kind, and only one of them: the program never takes"
            " whatever cluster happens to be current; write context: with a name from"
            " `kubectl config get-contexts`, or kind: {} for a new one on this machine",
        )
    yield from _sharing(settings)
    if settings.gpu.resource != NVIDIA and settings.gpu.provider != "none":
        yield Mistake(
            key_path(("gpu", "provider")),
            f"is NVIDIA's; nodes with {settings.gpu.resource} need their vendor's own, installed"
            " beside this program: write none",
        )
    yield from of_scheduling(("kai",), settings.kai, ("queues",), settings.queues)
    for name, team in settings.teams.items():
        place = ("teams", name)
        yield from of_scheduling(
            (*place, "scheduler"), team.scheduler, (*place, "queues"), team.queues
        )
        for key, sentence in mode_mistakes(team):
            yield Mistake(f"{settings.team_path(name)}.{key}", sentence)
        yield from access_mistakes(settings, name)


def access_mistakes(settings: Settings, team: str) -> Iterator[Mistake]:
    """What is missing to reach a team's vCluster, the stack's defaults filled in."""
    access = settings.access_of(team)
    if access.type == "NodePort" and access.host is None:
        yield Mistake(
            f"{settings.team_path(team)}.vcluster.access.host",
            "is missing: a NodePort is reached at a node; write its name or address",
        )


def _sharing(settings: Settings) -> Iterator[Mistake]:
    every: list[tuple[Location, HostKai | Scheduler | None]] = [(("kai",), settings.kai)]
    every += [(("teams", n, "scheduler"), t.scheduler) for n, t in settings.teams.items()]
    for place, kai in every:
        asked = kai is not None and kai.gpu_sharing and "gpu_sharing" in kai.model_fields_set
        if asked and kai is not None and not settings.shares_gpus(kai):
            yield Mistake(
                key_path((*place, "gpuSharing")),
                f"is on, and KAI shares only {NVIDIA}: it reserves a shared GPU by that name;"
                f" drop it, pods with {settings.gpu.resource} get whole GPUs",
            )


def of_scheduling(
    place: Location,
    scheduling: Scheduling | None,
    queues_place: Location,
    queues: QueueTree,
    parent: str | None = None,
) -> Iterator[Mistake]:
    """What is wrong with one KAI's scheduling and its queues, which may hang below a `parent`."""
    for key, sentence in scheduling_mistakes(scheduling) if scheduling else ():
        yield Mistake(key_path((*place, key)), sentence)
    for key, sentence in shard_mistakes(queues, scheduling.shards if scheduling else {}, parent):
        yield Mistake(key_path((*queues_place, key)), sentence)


def _of_kind(settings: Settings) -> Iterator[Mistake]:
    """What a kind cluster cannot serve."""
    if settings.cluster.kind is not None:
        accesses = {name: settings.access_of(name) for name in settings.teams}
        for team, key, sentence in port_mistakes(settings.cluster.kind, accesses):
            yield Mistake(key_path(("teams", team, f"vcluster.access.{key}")), sentence)


def workloads_mistakes(settings: Settings, dropped: list[str]) -> Iterator[Mistake]:
    """Every workload against its team, unless something of the team was left out."""
    for name, workload in settings.workloads.items():
        team, kai = settings.teams.get(workload.team), None
        if any(f"{path}.".startswith(f"{_TEAMS}.{workload.team}.") for path in dropped):
            team = None
        elif team is None and not _within(_TEAMS, dropped):
            known = ", ".join(settings.teams) or "none yet"
            sentence = f"is {workload.team!r}, and there is no such team; the teams: {known}"
            yield Mistake(key_path(("workloads", name, "team")), sentence)
        if team is not None:
            kai = settings.kai_of(workload.team)
        for key, sentence in workload_mistakes(workload, team, kai):
            yield Mistake(key_path(("workloads", name, key)), sentence)
    for name, team in settings.teams.items():
        own = {key: w for key, w in settings.workloads.items() if w.team == name}
        too_many = too_many_gpus(team, own) if own else None
        if too_many:
            yield Mistake(key_path(("teams", name, "gpus")), too_many)


def _within(path: str, dropped: list[str]) -> bool:
    """Whether a place was left out, lies in one that was, or holds one that was."""
    return any(f"{path}.".startswith(f"{d}.") or f"{d}.".startswith(f"{path}.") for d in dropped)


def read_config() -> dict[str, Any]:
    """The `kai-fleet:` part of the running program's Pulumi configuration.

    Pulumi hands structured values over as JSON text; a plain `key: text` stays text.
    """
    from pulumi.runtime import config

    raw = config.CONFIG.get() or config.get_config_env()
    prefix = f"{NAMESPACE}:"
    return {key.removeprefix(prefix): _parsed(raw[key]) for key in raw if key.startswith(prefix)}


def _parsed(value: Any) -> Any:
    try:
        return json.loads(value)
    except (TypeError, ValueError):
        return value


def _without(raw: Any, places: list[Location]) -> Any:
    """A copy of `raw` that lacks the wrong places, or what holds them where a key is missing."""
    rest = copy.deepcopy(raw)
    for place in places:
        here, holder = rest, None
        path = [part for part in place if part != "[key]"]
        for part in path[:-1]:
            if not isinstance(here, dict) or part not in here:
                break
            holder, here = (here, part), here[part]
        else:
            if isinstance(here, dict) and path and path[-1] in here:
                del here[path[-1]]
            elif holder is not None:
                holder[0].pop(holder[1], None)
    return rest
