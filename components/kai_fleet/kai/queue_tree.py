"""A tree of KAI queues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi

from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.options import child_of
from kai_fleet.provider import QUEUES
from kai_fleet.provider.values import packed
from kai_fleet.settings.sections.queues import Queue, leaves, walk


@dataclass
class QueueTreeArgs:
    """`queues` is the tree as configured, `access` the cluster that it is for. `gpu_limit`, in
    whole GPUs, bounds the top-level queues that give no limit of their own: a team's share, inside
    its vCluster (V18). `parent` is a queue of another stack's tree below which this one hangs,
    and `shard` the shard that serves it. `limits` bounds queues by name, where they are teams'
    (T13).
    """

    queues: Mapping[str, Queue]
    access: ClusterAccess
    gpu_limit: int | None = None
    parent: str | None = None
    shard: str | None = None
    limits: Mapping[str, int] = field(default_factory=dict)


class QueueTree(pulumi.ComponentResource):
    """`scheduling.run.ai/v2` Queues: cluster-scoped, parents before children (Q1, Q9).

    All of them are one resource, served by the provider in `kai_fleet.provider`: the engine writes
    its whole state at each step, which a thousand resources turn into minutes (P7). The preview
    shows each queue's change all the same, and a refresh what was changed by hand. Give
    `depends_on` a KaiScheduler's `ready`: until KAI's webhook answers, a Queue is refused.
    """

    leaves: list[str]

    def __init__(
        self, name: str, args: QueueTreeArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:QueueTree", name, None, opts)
        if args.queues:
            _QueuesResource(name, args, child_of(self, opts))
        self.leaves = leaves(args.queues)
        self.register_outputs({"leaves": self.leaves})


class _QueuesResource(pulumi.CustomResource):
    """The resource of the provider: `queues` are the specs by name, as text; `tree` their label."""

    def __init__(self, name: str, args: QueueTreeArgs, opts: pulumi.ResourceOptions) -> None:
        tree = list(walk(args.queues, parent=args.parent, shard=args.shard))
        specs: dict[str, Any] = {
            placed.name: placed.queue.spec(
                placed.parent,
                args.gpu_limit if placed.parent == args.parent else None,
                args.limits.get(placed.name),
            )
            for placed in tree
        }
        labels = {placed.name: placed.labels for placed in tree if placed.labels}
        optional = {
            "labels": labels or None,
            "parent": args.parent,
            "identity": args.access.identifier,  # another cluster of this name gets its own
        }
        super().__init__(
            QUEUES,
            name,
            {
                "cluster": args.access.name,
                "tree": name,
                "queues": packed(specs),
                **{key: value for key, value in optional.items() if value is not None},
                **args.access.reached(),
            },
            opts,
        )
