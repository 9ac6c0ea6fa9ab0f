"""A tree of KAI queues."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.options import child_of
from kai_fleet.provider import QUEUES
from kai_fleet.provider.values import packed
from kubectl_fleet.declared.queues import DeclaredQueue, leaves


@dataclass
class QueueTreeArgs:
    """`queues` are those of `declared_queues`, parents before children, `access` the cluster that
    they are for. `parent` is a queue of another stack's tree below which these hang.
    """

    queues: Sequence[DeclaredQueue]
    access: ClusterAccess
    parent: str | None = None


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
            labels = {queue.name: queue.labels for queue in args.queues if queue.labels}
            optional = {
                "labels": labels or None,
                "parent": args.parent,
                "identity": args.access.identifier,  # another cluster of this name gets its own
            }
            pulumi.CustomResource(
                QUEUES,
                name,
                {
                    "cluster": args.access.name,
                    "tree": name,
                    "queues": packed({queue.name: queue.spec for queue in args.queues}),
                    **{key: value for key, value in optional.items() if value is not None},
                    **args.access.reached(),
                },
                child_of(self, opts),
            )
        self.leaves = leaves(args.queues)
        self.register_outputs({"leaves": self.leaves})
