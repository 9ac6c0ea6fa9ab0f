"""A tree of KAI queues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from components.settings.queues import Queue, leaves, walk


@dataclass
class QueueTreeArgs:
    """`queues` is the tree as configured. `gpu_limit`, in whole GPUs, bounds the top-level queues
    that give no limit of their own: a team's share, inside its vCluster (V18).
    """

    queues: Mapping[str, Queue]
    gpu_limit: int | None = None


class QueueTree(pulumi.ComponentResource):
    """`scheduling.run.ai/v2` Queues: cluster-scoped, parents before children (Q1, Q9).

    Give `depends_on` a KaiScheduler's `ready`: until KAI's webhook answers, a Queue is refused.
    """

    leaves: list[str]

    def __init__(
        self, name: str, args: QueueTreeArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:QueueTree", name, None, opts)
        opts = opts or pulumi.ResourceOptions()
        declared: dict[str, CustomResource] = {}
        for placed in walk(args.queues):
            first, labels = placed.parent is None, placed.labels
            declared[placed.name] = CustomResource(
                f"{name}-{placed.name}",
                api_version="scheduling.run.ai/v2",
                kind="Queue",
                metadata={"name": placed.name, **({"labels": labels} if labels else {})},
                spec=placed.queue.spec(placed.parent, args.gpu_limit if first else None),
                opts=pulumi.ResourceOptions(
                    parent=self,
                    depends_on=opts.depends_on if first else [declared[placed.parent or ""]],
                    deleted_with=opts.deleted_with,
                ),
            )
        self.leaves = leaves(args.queues)
        self.register_outputs({"leaves": self.leaves})
