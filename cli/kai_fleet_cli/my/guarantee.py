"""Whether a pod that waits asks for what is guaranteed to its queue, or for what others leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kai_fleet_cli.gpu_usage.amounts import UNLIMITED, Resource, rounded
from kai_fleet_cli.gpu_usage.formatting import in_words, short
from kai_fleet_cli.gpu_usage.pods import PodUse
from kai_fleet_cli.gpu_usage.queues import QueueUse

_SLACK = 1e-6
_ORDER: tuple[Resource, ...] = ("gpu", "cpu", "memory")


@dataclass(frozen=True)
class Guarantee:
    """`guaranteed`: its queue and those above it have as much left of their quotas."""

    guaranteed: bool
    sentence: str


def guarantee(queues: Mapping[str, QueueUse], pod: PodUse) -> Guarantee | None:
    """By the quotas of its queue and of those above it.

    A limit that keeps the pod out comes before them: of GPUs the doctor's cause says it, and then
    there is None. So it is for a pod whose queue is not there, or that asks for nothing that is
    bounded.
    """
    queue = queues.get(pod.queue or "") if pod.scheduled_by_kai else None
    bounded: tuple[QueueUse, Resource] | None = None
    beyond: tuple[QueueUse, Resource] | None = None
    while queue is not None:
        for resource in _ORDER:
            share, asked = queue.share(resource), pod.amounts.of(resource)
            if not asked:
                continue
            if share.limit != UNLIMITED and share.in_use + asked > share.limit + _SLACK:
                return (
                    None
                    if resource == "gpu"
                    else Guarantee(False, _kept_out(queue, resource, asked))
                )
            if share.quota != UNLIMITED:
                bounded = bounded or (queue, resource)
                if share.in_use + asked > share.quota + _SLACK:
                    beyond = beyond or (queue, resource)
        queue = queues.get(queue.parent or "")
    if beyond is not None:
        return Guarantee(
            False,
            f"it asks for more than is guaranteed: {_left(*beyond)}. It gets what others leave"
            " over, and may be stopped again when they want it",
        )
    if bounded is not None:
        return Guarantee(
            True,
            f"it asks for what is guaranteed: {_left(*bounded)}. KAI stops pods that borrow, if"
            " there are any, to make room for it",
        )
    return None


def _kept_out(queue: QueueUse, resource: Resource, asked: float) -> str:
    share = queue.share(resource)
    wanted, limit = in_words(resource, asked), in_words(resource, share.limit)
    if asked > share.limit + _SLACK:
        return (
            f"it asks for {wanted}, and queue {queue.name} may hold {limit} at most: it never runs"
        )
    held = short(resource, share.in_use)
    return f"it asks for {wanted}, and queue {queue.name} holds {held} of at most {limit}"


def _left(queue: QueueUse, resource: Resource) -> str:
    share = queue.share(resource)
    left = rounded(max(0.0, share.quota - share.in_use))
    return (
        f"queue {queue.name} has {short(resource, left)} left of {in_words(resource, share.quota)}"
    )
