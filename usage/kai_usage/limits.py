"""Limits of queues that a waiting pod would exceed."""

from collections.abc import Sequence
from typing import NamedTuple

from kai_usage.amounts import RESOURCES, SLACK, UNLIMITED, Resource
from kai_usage.pods import Pod
from kai_usage.queues import Queue, Queues, upwards


class ExceededLimit(NamedTuple):
    """A limit of a queue that a pod would exceed.

    `requested` is what the pod asks for, in KAI's units. `alone`: that is more than the limit, so
    that the pod never runs, even if the queue holds nothing else.
    """

    queue: Queue
    resource: Resource
    requested: float
    alone: bool

    @property
    def in_use(self) -> float:
        """What the queue holds."""
        return self.queue.shares[self.resource].in_use

    @property
    def limit(self) -> float:
        """The limit of the queue."""
        return self.queue.shares[self.resource].limit

    @property
    def needed(self) -> float:
        """The least limit with which the pod would run."""
        return self.requested if self.alone else self.in_use + self.requested


def exceeded_limits(
    pod: Pod, queues: Queues, resources: Sequence[Resource] = RESOURCES
) -> list[ExceededLimit]:
    """Limits of the pod's queue and of those above it that the pod would exceed, nearest first.

    First those that it exceeds alone, then those that are reached now. None for a pod whose queue
    is not in the tree. Of several resources of a queue those that come first in `resources`.
    """
    alone = []
    reached = []
    for queue in upwards(queues, pod.queue):
        for resource in resources:
            share = queue.shares[resource]
            requested = pod.amounts[resource]
            if not requested or share.limit == UNLIMITED:
                continue
            if requested > share.limit + SLACK:
                alone.append(ExceededLimit(queue, resource, requested, alone=True))
            elif share.in_use + requested > share.limit + SLACK:
                reached.append(ExceededLimit(queue, resource, requested, alone=False))
    return alone + reached
