"""Limits of queues that a waiting pod would exceed."""

from collections.abc import Sequence
from typing import NamedTuple

from kai_usage.amounts import RESOURCES, SLACK, UNLIMITED, Resource
from kai_usage.pods import Pod
from kai_usage.queues import Queue, Queues, upwards


class ExceededLimit(NamedTuple):
    """A limit of a queue that a pod would exceed.

    `requested` is what the pod asks for. `alone`: that is more than the limit, so that the pod
    never runs, even if the queue holds nothing else. All amounts are in the units of `amounts`.
    """

    queue: Queue
    resource: Resource
    requested: float
    alone: bool

    @property
    def in_use(self) -> float:
        """What pods with a node hold of the resource in the queue, without this pod."""
        return self.queue.shares[self.resource].in_use

    @property
    def limit(self) -> float:
        """The limit of the queue for the resource."""
        return self.queue.shares[self.resource].limit

    @property
    def needed(self) -> float:
        """The least limit with which the pod would run: now, or for `alone` in an empty queue."""
        return self.requested if self.alone else self.in_use + self.requested


def exceeded_limits(
    pod: Pod, queues: Queues, resources: Sequence[Resource] = RESOURCES
) -> list[ExceededLimit]:
    """Limits of the pod's queue and of those above it that the pod would exceed.

    First those that it exceeds alone, then those that it exceeds with what the queues hold now;
    within both, nearest queues first, and a queue's resources in the order of `resources`. Empty if
    the pod's queue is not in the tree, or is None. A limit may be exceeded by SLACK. What the pod
    does not ask for exceeds none. Quotas do not count.

    Args:
        pod: A pod that waits: what it asks for must not be in use already.
        queues: The tree, with `in_use` as `add_use` fills it in.
        resources: The resources whose limits count.
    """
    exceeded = []
    for queue in upwards(queues, pod.queue):
        for resource in resources:
            share = queue.shares[resource]
            requested = pod.amounts[resource]
            if not requested or share.limit == UNLIMITED:
                continue
            alone = requested > share.limit + SLACK
            if alone or share.in_use + requested > share.limit + SLACK:
                exceeded.append(ExceededLimit(queue, resource, requested, alone))
    return sorted(exceeded, key=lambda limit: not limit.alone)
