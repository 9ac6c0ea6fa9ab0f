"""The queue trees of stack files as the queues that they declare."""

from collections.abc import Mapping

from kai_fleet.settings.sections.queues import Queue, walk
from kubectl_fleet.declared.queues import DeclaredQueue, shares
from kubectl_fleet.releases.keys import DEFAULT_SHARD


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
