"""What a stack's file wants of each of its clusters, to hold the live ones against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from components.releases import DEFAULT_VCLUSTER, KaiRelease, UnknownVersion, kai
from components.settings import Settings
from components.settings.queues import Queue, walk
from components.settings.teams import Access, Mode
from policies.model import GPU_RESOURCES

HOST: Final = "host"
NVIDIA: Final = GPU_RESOURCES[0]


@dataclass(frozen=True)
class Wanted:
    """One cluster as its stack declares it.

    `declared` is False where there is no stack file: then only what is wrong in itself can be
    said. `kai` is None where no KAI is wanted, `key` is where its settings stand in the file, and
    `queues_key` where its queues do. `queues` maps names to the `spec` of the Queue object.
    """

    declared: bool = False
    kai: KaiRelease | None = None
    gpu_sharing: bool = True
    gpu_resource: str = NVIDIA
    queues: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    shards: tuple[str, ...] = ()
    topologies: Mapping[str, Sequence[str]] = field(default_factory=dict)
    key: str = "kai-fleet:kai"
    queues_key: str = "kai-fleet:queues"


@dataclass(frozen=True)
class WantedTeam:
    """A team's vCluster as its stack declares it, or as it was found (`declared` False)."""

    name: str
    namespace: str
    declared: bool = False
    mode: Mode = "default"
    node_pool: Mapping[str, str] = field(default_factory=dict)
    gpus: int | None = None
    access: Access | None = None
    vcluster: str | None = None
    inside: Wanted = field(default_factory=Wanted)
    queue: str | None = None

    @property
    def key(self) -> str:
        """Where the team stands in the stack file."""
        return f"kai-fleet:teams.{self.name}"


def host_of(settings: Settings) -> Wanted:
    """The host cluster of a stack."""
    own = settings.kai
    return Wanted(
        declared=True,
        kai=_release(own.version, own.untested) if own else None,
        gpu_sharing=settings.shares_gpus(own) if own else False,
        gpu_resource=settings.gpu.resource,
        queues=_specs(settings.queues, None),
        shards=tuple(own.shards) if own else (),
        topologies=own.topologies if own else {},
    )


def teams_of(settings: Settings) -> dict[str, WantedTeam]:
    """The teams of a stack by name."""
    return {name: _team(settings, name) for name in settings.teams}


def found_team(name: str, namespace: str) -> WantedTeam:
    """A team that a cluster has and no stack file was given for."""
    return WantedTeam(name, namespace)


def _team(settings: Settings, name: str) -> WantedTeam:
    team, vcluster = settings.teams[name], settings.vcluster_of(name)
    own = team.scheduler
    key = f"kai-fleet:teams.{name}"
    version = own.version if own.mode == "virtual" else None
    return WantedTeam(
        name=name,
        namespace=f"team-{name}",
        declared=True,
        mode=own.mode,
        node_pool=dict(team.node_pool),
        gpus=team.gpus,
        access=settings.access_of(name),
        vcluster=vcluster.version or DEFAULT_VCLUSTER,
        inside=Wanted(
            declared=True,
            kai=_release(version, own.untested) if version else None,
            gpu_sharing=settings.shares_gpus(own),
            gpu_resource=settings.gpu.resource,
            queues=_specs(team.queues, team.gpus),
            shards=tuple(own.shards),
            topologies=own.topologies,
            key=f"{key}.scheduler",
            queues_key=f"{key}.queues",
        ),
        queue=team.queue,
    )


def _specs(tree: Mapping[str, Queue], gpus: int | None) -> dict[str, Mapping[str, Any]]:
    """As `QueueTree` makes them: inside a vCluster the team's GPUs bound the top level."""
    return {
        placed.name: placed.queue.spec(placed.parent, gpus if placed.parent is None else None)
        for placed in walk(tree)
    }


def _release(version: str, untested: bool) -> KaiRelease | None:
    try:
        return kai(version, untested=untested)
    except UnknownVersion:
        return None  # the stack file is refused for it already
