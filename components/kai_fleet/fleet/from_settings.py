"""What a stack's settings declare: its charts, its queues, and what bounds each team."""

from collections.abc import Mapping

from kai_fleet.fleet.declared import queues_at
from kai_fleet.fleet.queue_arguments import host_queue_args, queue_args
from kai_fleet.fleet.queues import DeclaredQueue
from kai_fleet.settings import Settings
from kai_fleet.settings.sections.queues import Queue
from kai_fleet.settings.sections.teams import TeamSettings


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
    queues = queue_args(tree, shard) if limits is None else host_queue_args(tree, limits)
    args = {"queues": queues, "gpus": gpu_limit, "pools": pools or None, "parent": parent}
    return queues_at(args, path)


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
