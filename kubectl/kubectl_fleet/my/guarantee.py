"""Whether a pod that waits asks for what is guaranteed to its queue, or for what others leave."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from kubectl_fleet.usage.amounts import SLACK, UNLIMITED, Resource, in_words, rounded, short
from kubectl_fleet.usage.pods import PodUse
from kubectl_fleet.usage.queues import QueueUse, ShareUse, upwards

_ORDER: Final[tuple[Resource, ...]] = ("gpu", "cpu", "memory")


class Guarantee(NamedTuple):
    """`guaranteed`: its queue and those above it have as much left of their quotas."""

    guaranteed: bool
    sentence: str


def guarantee(queues: Mapping[str, QueueUse], pod: PodUse) -> Guarantee | None:
    """By the quotas of its queue and of those above it.

    A limit that keeps the pod out comes before them: of GPUs the doctor's cause says it, and then
    there is None. So it is for a pod whose queue is not there, or that asks for nothing that is
    bounded.
    """
    bounded = beyond = ""
    for queue in upwards(queues, pod.queue if pod.scheduled_by_kai else None):
        for resource in _ORDER:
            share, amount = queue.share(resource), pod.amounts.of(resource)
            if not amount:
                continue
            if share.limit != UNLIMITED and share.in_use + amount > share.limit + SLACK:
                kept_out = _kept_out(queue, share, resource, amount)
                return None if resource == "gpu" else Guarantee(False, kept_out)
            if share.quota != UNLIMITED:
                left = rounded(max(0.0, share.quota - share.in_use))
                sentence = (
                    f"queue {queue.name} has {short(resource, left)} left of"
                    f" {in_words(resource, share.quota)}"
                )
                bounded = bounded or sentence
                if share.in_use + amount > share.quota + SLACK:
                    beyond = beyond or sentence
    if beyond:
        return Guarantee(
            False,
            f"it asks for more than is guaranteed: {beyond}. It gets what others leave over, and"
            " may be stopped again when they want it",
        )
    if bounded:
        return Guarantee(
            True,
            f"it asks for what is guaranteed: {bounded}. KAI stops pods that borrow, if there are"
            " any, to make room for it",
        )
    return None


def _kept_out(queue: QueueUse, share: ShareUse, resource: Resource, amount: float) -> str:
    wanted, limit = in_words(resource, amount), in_words(resource, share.limit)
    if amount > share.limit + SLACK:
        return (
            f"it asks for {wanted}, and queue {queue.name} may hold {limit} at most: it never runs"
        )
    held = short(resource, share.in_use)
    return f"it asks for {wanted}, and queue {queue.name} holds {held} of at most {limit}"
