"""What the guards of a team let through: on the host, and of its queues."""

from collections.abc import Mapping, Sequence
from typing import Final

from kai_fleet.guards.host_rules import KAI_PRIORITIES, HostRules, KaiPlace
from kai_fleet.guards.queue_rules import QueueRules
from kai_fleet.settings import Settings
from kai_fleet.settings.sections.queues import leaves
from kai_fleet.settings.sections.teams import Mode, TeamSettings
from kubectl_fleet.releases import takes_external_pod_groups
from kubectl_fleet.releases.sharing import NV_FRACTIONS

_PLACES: Final[Mapping[Mode, KaiPlace]] = {"virtual": "inside", "host": "host", "default": "none"}
Pools = Mapping[str, Mapping[str, str]]


def host_rules(
    settings: Settings, name: str, control_pools: Pools, foreign_queues: Sequence[str]
) -> HostRules:
    """What the host's guard lets through of a team that this stack runs, or grants a stack.

    `control_pools` are the pools of all teams' control planes, and `foreign_queues` names that only
    begin like those of the team's queues.
    """
    has = settings.own_of(name)
    place: KaiPlace = "inside"
    if isinstance(has, TeamSettings):
        queue, place = has.queue, _PLACES[has.scheduler.mode]
    else:
        queue = has.parent_queue
        if settings.kai is not None:  # that stack chooses the mode
            place = "host" if queue else "none"
    isolation, by_host = settings.isolation_of(name), place == "host"
    return HostRules(
        name,
        devices=(
            settings.gpu.resource,
            *dict.fromkeys((*isolation.devices, *settings.slices_of(name))),
        ),
        pool=has.node_pool,
        control_pool=control_pools[name],
        foreign_pools=[] if has.node_pool else _foreign_pools(settings, name, control_pools),
        names_nodes=place == "inside",
        # A team whose scheduler is inside has its nodes to itself: the rules see to that.
        shared_nodes=place != "inside" or not has.node_pool,
        kai=place,
        device_classes=tuple(isolation.device_classes),
        priorities=(*(KAI_PRIORITIES if by_host else ()), *isolation.priority_classes),
        queues_only=by_host,
        restricted=isolation.level == "restricted",
        # Nothing that a team's values say: images with such names pass where others do not.
        platform_images=tuple(f"{place}/" for place in settings.sources.known.kai_images),
        runtime_classes=isolation.runtime_classes,
        beside_kai=settings.kai is not None,
        queues=[queue] if by_host and queue else [],
        queue_prefix=f"{name}-" if by_host and name in settings.team_stacks else None,
        foreign_queues=foreign_queues,
        attachments=isolation.network.attachments or not isolation.network.enabled,
        endpoints=isolation.network.endpoints or not isolation.network.enabled,
        private=isolation.network.private,
        annotations=isolation.annotations,
        volumes=isolation.volumes,
        grace_seconds=isolation.bounds.grace_seconds,
        tolerations=[it.text for it in settings.place_of(name).tolerations],
        nv_fractions=by_host
        and settings.kai is not None
        and settings.sharing_of(settings.kai) == NV_FRACTIONS,
    )


def _foreign_pools(settings: Settings, name: str, control_pools: Pools) -> list[dict[str, str]]:
    """The pools of the platform's control planes and of other teams, each once."""
    pools: list[Mapping[str, str]] = [settings.vcluster.node_pool]
    pools += [team.node_pool for other, team in settings.teams.items() if other != name]
    pools += [grant.node_pool for grant in settings.team_stacks.values()]
    pools += [pool for other, pool in control_pools.items() if other != name]
    distinct = {tuple(sorted(pool.items())) for pool in pools if pool}
    return [dict(pool) for pool in sorted(distinct)]


def host_guard(
    settings: Settings, name: str, queue: str | None, foreign_queues: Sequence[str]
) -> QueueRules | None:
    """The guard of the queues on a host whose KAI schedules the team's pods.

    A team with a stack of its own makes queues there whose names begin with its own.
    """
    mode, prefix = settings.guard.mode, None if name in settings.teams else f"{name}-"
    if queue is None or mode == "off":
        return None
    return QueueRules(
        name,
        [queue],
        mode,
        gpu_sharing=settings.kai is not None and settings.shares_gpus(settings.kai),
        prefix=prefix,
        foreign=foreign_queues if prefix else [],
    )


def inside_guard(settings: Settings, name: str) -> QueueRules | None:
    """The guard inside the vCluster of a team with a KAI of its own, unless it is off."""
    mode, team = settings.guard.mode, settings.teams[name]
    version = team.scheduler.version
    if mode == "off" or team.scheduler.mode != "virtual" or version is None:
        return None
    queues = leaves(team.queues)
    return QueueRules(
        name,
        queues,
        mode,
        gpu_sharing=settings.shares_gpus(team.scheduler),
        pod_groups=takes_external_pod_groups(version),
        outside=settings.guard.outside(queues),
        gpu_resource=settings.gpu.resource,
    )
