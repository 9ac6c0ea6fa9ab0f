"""What a stack's file wants of each of its clusters, to hold the live ones against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kai_fleet.guards.host_rules import HostRules
from kai_fleet.guards.policies import Object
from kai_fleet.guards.queue_rules import QueueRules, inside_vcluster
from kai_fleet.isolation import team_rules
from kai_fleet.kai.keys import GPU_RESOURCES
from kai_fleet.releases import (
    DEFAULT_VCLUSTER,
    KaiRelease,
    UnknownVersionError,
    kai,
    takes_external_pod_groups,
)
from kai_fleet.settings import Settings
from kai_fleet.settings.sections.isolation import Isolation
from kai_fleet.settings.sections.monitoring import Monitoring
from kai_fleet.settings.sections.queues import Queue, leaves, walk
from kai_fleet.settings.sections.teams import Access, Mode
from kai_fleet.settings.tenant import Tenant

HOST: Final = "host"
NVIDIA: Final = GPU_RESOURCES[0]


@dataclass(frozen=True)
class DeclaredCluster:
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
    monitoring: Monitoring | None = None


@dataclass(frozen=True)
class DeclaredTeam:
    """A team's vCluster as its stack declares it, or as it was found (`declared` False).

    `granted`: its vCluster is of a stack of its own, and this one has the namespace and its bounds.
    `key` is where it stands in the stack file. `guards` are the objects of the guard inside it.
    """

    name: str
    namespace: str
    declared: bool = False
    mode: Mode = "default"
    node_pool: Mapping[str, str] = field(default_factory=dict)
    gpus: int | None = None
    access: Access | None = None
    vcluster: str | None = None
    inside: DeclaredCluster = field(default_factory=DeclaredCluster)
    queue: str | None = None
    isolation: Isolation | None = None
    rules: HostRules | None = None
    control_pool: Mapping[str, str] = field(default_factory=dict)
    granted: bool = False
    key: str = "kai-fleet:teams"
    guards: tuple[Object, ...] = ()


def host_of(settings: Settings) -> DeclaredCluster:
    """The host cluster of a stack. Of a team stack's only the team's own queues are declared."""
    if isinstance(settings, Tenant):
        team = settings.teams[settings.team]
        granted = settings.granted_queue if team.scheduler.mode == "host" else None
        return DeclaredCluster(
            gpu_resource=settings.gpu.resource,
            queues=_specs(team.queues, None, above=granted) if granted else {},
            queues_key=f"{settings.team_path(settings.team)}.queues",
        )
    own = settings.kai
    return DeclaredCluster(
        declared=True,
        kai=_release(own.version, own.untested) if own else None,
        gpu_sharing=settings.shares_gpus(own) if own else False,
        gpu_resource=settings.gpu.resource,
        queues=_specs(settings.queues, None, settings.queue_limits()),
        shards=tuple(own.shards) if own else (),
        topologies=own.topologies if own else {},
        monitoring=settings.monitoring,
    )


def teams_of(settings: Settings) -> dict[str, DeclaredTeam]:
    """The teams of a stack by name, those with a stack of their own as far as they are its."""
    own = {name: _team(settings, name) for name in settings.teams}
    return own | {name: _granted(settings, name) for name in settings.team_stacks}


def found_team(name: str, namespace: str) -> DeclaredTeam:
    """A team that a cluster has and no stack file was given for."""
    return DeclaredTeam(name, namespace, key=f"kai-fleet:teams.{name}")


def _granted(settings: Settings, name: str) -> DeclaredTeam:
    grant = settings.team_stacks[name]
    return DeclaredTeam(
        name=name,
        namespace=f"team-{name}",
        declared=True,
        mode="virtual" if settings.kai is None else "host",
        node_pool=dict(grant.node_pool),
        gpus=grant.gpus,
        isolation=settings.isolation_of(name),
        rules=team_rules.of_granted(settings, name),
        control_pool=settings.control_pool_of(name),
        inside=DeclaredCluster(gpu_resource=settings.gpu.resource),
        granted=True,
        key=f"kai-fleet:teamStacks.{name}",
    )


def _team(settings: Settings, name: str) -> DeclaredTeam:
    team, vcluster = settings.teams[name], settings.vcluster_of(name)
    own = team.scheduler
    key = settings.team_path(name)
    tenant = isinstance(settings, Tenant)
    version = own.version if own.mode == "virtual" else None
    return DeclaredTeam(
        name=name,
        namespace=f"team-{name}",
        declared=True,
        mode=own.mode,
        node_pool=dict(team.node_pool),
        isolation=settings.isolation_of(name),
        # A team stack's namespace is the platform's, and what its guard lets through.
        rules=None if tenant else team_rules.of_declared(settings, name),
        control_pool=settings.control_pool_of(name),
        key=key,
        guards=_guards(settings, name) if version else (),
        gpus=team.gpus,
        access=settings.access_of(name),
        vcluster=vcluster.version or DEFAULT_VCLUSTER,
        inside=DeclaredCluster(
            declared=True,
            kai=_release(version, own.untested) if version else None,
            gpu_sharing=settings.shares_gpus(own),
            gpu_resource=settings.gpu.resource,
            queues=_specs(team.queues, team.gpus) if version else {},
            shards=tuple(own.shards),
            topologies=own.topologies,
            key=f"{key}.scheduler",
            queues_key=f"{key}.queues",
        ),
        queue=team.queue,
    )


def _guards(settings: Settings, name: str) -> tuple[Object, ...]:
    """As `Team` declares them inside its vCluster."""
    mode, team = settings.guard.mode, settings.teams[name]
    if mode == "off":
        return ()
    leaf_queues = leaves(team.queues)
    rules = QueueRules(
        name,
        leaf_queues,
        mode=mode,
        gpu_sharing=settings.shares_gpus(team.scheduler),
        pod_groups=takes_external_pod_groups(team.scheduler.version or ""),
        outside=settings.guard.outside(leaf_queues),
        gpu_resource=settings.gpu.resource,
    )
    return tuple(inside_vcluster(rules))


def _specs(
    tree: Mapping[str, Queue],
    gpus: int | None,
    limits: Mapping[str, int] | None = None,
    above: str | None = None,
) -> dict[str, Mapping[str, Any]]:
    """As `QueueTree` makes them: the teams' GPUs bound the top level inside a vCluster, and the
    queues that are teams' on the host. `above` is the queue that the top level hangs below.
    """
    of_teams = limits or {}
    return {
        placed.name: placed.queue.spec(
            placed.parent or above,
            gpus if placed.parent is None else None,
            of_teams.get(placed.name),
        )
        for placed in walk(tree)
    }


def _release(version: str, untested: bool) -> KaiRelease | None:
    try:
        return kai(version, untested=untested)
    except UnknownVersionError:
        return None  # the stack file is refused for it already
