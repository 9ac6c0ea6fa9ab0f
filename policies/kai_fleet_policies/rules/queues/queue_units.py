"""The amounts of a queue are in the units that KAI counts, and are numbers."""

from collections.abc import Callable, Sequence
from typing import Final

from kai_fleet.fleet.amounts import exact, written
from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.fleet.queues import QueueShare, Resource
from kai_fleet.values import UNKNOWN
from kai_fleet.wording import listed
from kai_fleet_policies.problem import Level, Problems, Severity, of_queue

LEVEL = Level.ADVISORY
SEVERITY = Severity.MEDIUM
WHY = (
    "A Queue counts cpu in millicores and memory in 10^6 bytes, as bare numbers: a limit of cpu: 8"
    " is less than a hundredth of a core, and nothing runs; bytes are a limit that never holds"
    " (Q3). Its CRD takes numbers, no text."
)
REMEDY = "Write cores times 1000, gigabytes times 1000, and numbers without quotes."


def check(cluster: DeclaredCluster) -> Problems:
    """Each queue: amounts that are hardly meant, and amounts that are text."""
    for queue in cluster.queues:
        place, in_kais_units = of_queue(queue, cluster), queue.path.startswith("urn:")
        if queue.quoted is not UNKNOWN and queue.quoted:
            yield place.advisory(
                f"has {listed(queue.quoted, 'and')} as text, and the Queue CRD takes numbers: the"
                " API server refuses it; write the number without quotes"
            )
        if queue.shares is UNKNOWN:
            continue  # queue-quota says so
        for resource, is_odd, advice in _ODD:
            share = queue.shares.get(resource, _NOTHING)
            found = {
                word: amount
                for word, amount in (("quota", share.quota), ("limit", share.limit))
                if amount not in (UNKNOWN, None) and is_odd(amount)
            }
            if found:
                amounts = (
                    f"{word} {written(resource, it, queue.path)}" for word, it in found.items()
                )
                said = advice([*found.values()][-1], in_kais_units)
                yield place.at(resource).advisory(
                    f"has {resource} {listed([*amounts], 'and')}; {said}"
                )


def _cores(amount: float, in_kais_units: bool) -> str:
    meant = exact(amount)
    write = exact(amount * 1000) if in_kais_units else meant
    return f"that is {amount / 1000:g} of a core for all its pods: for {meant} cores write {write}"


def _small(amount: float, in_kais_units: bool) -> str:
    meant = exact(amount)
    write = exact(amount * 1000) if in_kais_units else f"{meant}G"
    return f"that is {meant} MB for all its pods: for {meant} GB write {write}"


def _bytes(amount: float, in_kais_units: bool) -> str:
    megabytes = max(1, round(amount / 10**6))
    write = str(megabytes) if in_kais_units else f"{megabytes}M"
    return (
        f"that is {amount / 10**9:g} PB, a limit that never holds: for {exact(amount)} bytes write"
        f" {write}"
    )


# Below a quarter of a core, or half a gigabyte, a whole queue is rather meant in cores or GB; a
# petabyte is rather meant in bytes.
_ODD: Final[Sequence[tuple[Resource, Callable[[float], bool], Callable[[float, bool], str]]]] = (
    ("cpu", lambda it: 0 < it < 256, _cores),
    ("memory", lambda it: 0 < it < 512, _small),
    ("memory", lambda it: it >= 10**9, _bytes),
)
_NOTHING: Final = QueueShare()
