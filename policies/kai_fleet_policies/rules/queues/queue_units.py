"""The amounts of a queue are in the units that KAI counts, and are numbers."""

from collections.abc import Callable

from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet_policies.amounts import plain, written
from kubectl_fleet.declared.queues import DeclaredQueue, Resource
from kubectl_fleet.declared.unknown import UNKNOWN
from kubectl_fleet.rules.problem import Level, ProblemPlace, Problems, Severity, of_queue
from kubectl_fleet.wording import listed

NAME = "queue-units"
LEVEL = Level.ADVISORY
SEVERITY = Severity.MEDIUM
WHY = (
    "A Queue counts cpu in millicores and memory in 10^6 bytes, as bare numbers: a limit of cpu: 8"
    " is less than a hundredth of a core, and nothing runs; bytes are a limit that never holds"
    " (Q3). Its CRD takes numbers, no text."
)
REMEDY = "Write cores times 1000, gigabytes times 1000, and numbers without quotes."

# Below a quarter of a core, or half a gigabyte, a whole queue is rather meant in cores or GB; a
# petabyte is rather meant in bytes.
_FEW_MILLICORES = 256
_FEW_MEGABYTES = 512
_MANY_MEGABYTES = 10**9


def check(cluster: DeclaredCluster) -> Problems:
    """Each queue: amounts that are hardly meant, and amounts that are text."""
    for queue in cluster.queues:
        place = of_queue(queue, cluster)
        if queue.quoted is not UNKNOWN and queue.quoted:
            yield place.advisory(
                f"has {listed(queue.quoted, 'and')} as text, and the Queue CRD takes numbers: the"
                " API server refuses it; write the number without quotes"
            )
        if queue.shares is UNKNOWN:
            continue  # queue-quota says so
        yield from _odd(queue, "cpu", lambda it: 0 < it < _FEW_MILLICORES, _cores, place)
        yield from _odd(queue, "memory", lambda it: 0 < it < _FEW_MEGABYTES, _small, place)
        yield from _odd(queue, "memory", lambda it: it >= _MANY_MEGABYTES, _bytes, place)


def _odd(
    queue: DeclaredQueue,
    resource: Resource,
    is_odd: Callable[[float], bool],
    advice: Callable[[float, bool], str],
    place: ProblemPlace,
) -> Problems:
    share = queue.shares.get(resource)
    if share is None:
        return
    found = [
        (word, amount)
        for word, amount in (("quota", share.quota), ("limit", share.limit))
        if amount is not UNKNOWN and amount is not None and is_odd(amount)
    ]
    if not found:
        return
    has = listed([f"{word} {written(resource, it, queue.path)}" for word, it in found], "and")
    in_kais_units = queue.path.startswith("urn:")
    yield place.at(resource).advisory(
        f"has {resource} {has}; {advice(found[-1][1], in_kais_units)}"
    )


def _cores(amount: float, in_kais_units: bool) -> str:
    meant = plain(amount)
    write = plain(amount * 1000) if in_kais_units else meant
    return f"that is {amount / 1000:g} of a core for all its pods: for {meant} cores write {write}"


def _small(amount: float, in_kais_units: bool) -> str:
    meant = plain(amount)
    write = plain(amount * 1000) if in_kais_units else f"{meant}G"
    return f"that is {meant} MB for all its pods: for {meant} GB write {write}"


def _bytes(amount: float, in_kais_units: bool) -> str:
    megabytes = max(1, round(amount / 10**6))
    write = str(megabytes) if in_kais_units else f"{megabytes}M"
    return (
        f"that is {amount / 10**9:g} PB, a limit that never holds: for {plain(amount)} bytes write"
        f" {write}"
    )
