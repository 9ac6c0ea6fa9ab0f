"""What a stack's settings declare: its charts, its queues, and what bounds each team."""

from collections.abc import Mapping, Sequence
from typing import Final

from kai_fleet.fleet.queues import DeclaredQueue, shares
from kai_fleet.guards.host_rules import KAI_PRIORITIES, HostRules, KaiPlace
from kai_fleet.guards.queue_rules import QueueRules
from kai_fleet.releases import takes_external_pod_groups
from kai_fleet.releases.keys import DEFAULT_SHARD
from kai_fleet.releases.sharing import NV_FRACTIONS
from kai_fleet.settings import Settings
from kai_fleet.settings.sections.queues import Queue, leaves, walk
from kai_fleet.settings.sections.teams import Mode, TeamSettings


def declared_queues(
    tree: Mapping[str, Queue],
    path: str = "",
    *,
    gpu_limit: int | None = None,
    pools: Mapping[str, int] | None = None,
    parent: str | None = None,
    shard: str | None = None,
    limits: Mapping[str, int] | None = None,
) -> tuple[DeclaredQueue, ...]:
    """The queues of a tree as a stack file writes it, parents before their children.

    `gpu_limit`, in whole GPUs, bounds the top-level queues that give no limit of their own: a
    team's share, inside its vCluster (V18); where it has `pools`, its share of the pool. `parent`
    is a queue of another stack's tree below which this one hangs, and `shard` the shard that serves
    it. `limits` bounds queues by name to the GPUs of the teams that they are for (T13). `path` is
    the key of the tree.
    """
    declared = []
    for placed in walk(tree, path, parent, shard):
        queue, at_top = placed.queue, placed.parent == parent
        most = (pools or {}).get(placed.shard or DEFAULT_SHARD, gpu_limit) if at_top else None
        spec = queue.spec(placed.parent, most, (limits or {}).get(placed.name))
        declared.append(
            DeclaredQueue(
                placed.name,
                placed.parent,
                shares(spec["resources"]),
                preempt_min_runtime=queue.preempt_min_runtime,
                reclaim_min_runtime=queue.reclaim_min_runtime,
                path=placed.path,
                shard=placed.shard,
                spec=spec,
                labels=placed.labels,
            )
        )
    return tuple(declared)


_PLACES: Final[Mapping[Mode, KaiPlace]] = {"virtual": "inside", "host": "host", "default": "none"}


def control_pool(settings: Settings, name: str) -> dict[str, str]:
    """The labels of the nodes of a team's control plane: the platform's own, or the team's."""
    has = settings.own_of(name)
    own = has.vcluster.node_pool if isinstance(has, TeamSettings) else {}
    return dict(own or settings.vcluster.node_pool or has.node_pool)


def queue_limits(settings: Settings) -> dict[str, int]:
    """The most GPUs of the host's queues that are teams': those of the teams together (T13)."""
    limits: dict[str, int] = {}
    for name, queue in (
        *((name, team.queue) for name, team in settings.teams.items()),
        *((name, grant.parent_queue) for name, grant in settings.team_stacks.items()),
    ):
        if queue is not None:
            limits[queue] = limits.get(queue, 0) + settings.gpus_of(name)
    return limits


def host_rules(settings: Settings, name: str, foreign_queues: Sequence[str]) -> HostRules:
    """What the host's guard lets through of a team that this stack runs, or grants a stack.

    `foreign_queues` are names that only begin like those of the team's queues.
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
        control_pool=control_pool(settings, name),
        foreign_pools=[] if has.node_pool else _foreign_pools(settings, name),
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


def _foreign_pools(settings: Settings, name: str) -> list[dict[str, str]]:
    """The pools of the platform's control planes and of other teams, each once."""
    others = [it for it in {**settings.teams, **settings.team_stacks} if it != name]
    pools: list[Mapping[str, str]] = [settings.vcluster.node_pool]
    pools += [team.node_pool for other, team in settings.teams.items() if other != name]
    pools += [grant.node_pool for grant in settings.team_stacks.values()]
    pools += [control_pool(settings, other) for other in others]
    return [dict(pool) for pool in sorted({tuple(sorted(it.items())) for it in pools if it})]


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
