"""The queues of one cluster: each with its parent, its `spec` and its shares, in KAI's units; and
amounts in these units.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, Self, TypeAlias

from kai_fleet.queue_specs import UNLIMITED as UNLIMITED
from kai_fleet.values import UNKNOWN, get, mapping, number, text

Resource: TypeAlias = Literal["cpu", "memory", "gpu"]
RESOURCES: Final[tuple[Resource, ...]] = ("cpu", "memory", "gpu")
SLACK: Final = 1e-5  # of a GPU, a millicore or a megabyte: more than fractions are off by
_STEPS: Final = ((10**6, "T"), (10**3, "G"), (1, "M"))


@dataclass(frozen=True)
class QueueShare:
    """A queue's share of one resource in KAI's units; -1 is unlimited.

    The units are millicores of CPU, 10^6 bytes of memory and GPUs. `limit` is None where a declared
    Queue leaves it out, which KAI reads as 0.
    """

    quota: float = 0.0
    limit: float | None = UNLIMITED
    weight: float = 1.0


@dataclass(frozen=True)
class DeclaredQueue:
    """A scheduling queue; `parent` is None at the top level, a missing share is all zero.

    `spec` is that of its Queue object, where one is declared; what is in it may be anything that
    was written there. `shard` is the one that serves it.
    """

    name: str
    parent: str | None = None
    shares: Mapping[Resource, QueueShare] = field(default_factory=dict)
    namespace: str | None = None
    path: str = ""
    shard: str | None = None
    spec: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @classmethod
    def of(cls, name: str, spec: Any, **place: Any) -> Self:
        """A queue by the `spec` of its Queue object; UNKNOWN is what the update will tell."""
        resources, shares = get(spec, "resources"), dict[Resource, QueueShare]()
        for resource in RESOURCES:
            if (share := get(resources, resource)) is not None:
                amounts = (number(get(share, key)) for key in ("quota", "limit", "overQuotaWeight"))
                quota, limit, weight = amounts
                shares[resource] = QueueShare(quota or 0.0, limit, weight or 0.0)
        known: Any = UNKNOWN if resources is UNKNOWN else shares
        parent = text(get(spec, "parentQueue")) or None
        return cls(name, parent, known, spec=mapping(spec), **place)


class QueueIndex:
    """Lookups by name and parent; of queues with the same name the first one counts.

    A name or parent that is not known before the update is no text, and only noted.
    """

    def __init__(self, queues: Iterable[DeclaredQueue]) -> None:
        self.queues = tuple(queues)
        self.by_name: dict[str, DeclaredQueue] = {}
        self.children: dict[str, list[DeclaredQueue]] = {}
        self.twice: list[DeclaredQueue] = []
        names: list[Any] = [queue.name for queue in self.queues]
        parents: list[Any] = [queue.parent for queue in self.queues]
        self.unknown_names, self.unknown_parents = UNKNOWN in names, UNKNOWN in parents
        for queue, name, parent in zip(self.queues, names, parents, strict=True):
            if name in self.by_name:
                self.twice.append(queue)
            elif name is not UNKNOWN:
                self.by_name[name] = queue
            if isinstance(parent, str):
                self.children.setdefault(parent, []).append(queue)

    def is_leaf(self, name: str) -> bool:
        """Whether no queue names this one as its parent."""
        return name not in self.children

    @cached_property
    def leaves(self) -> list[str]:
        """The names of all queues that pods may name, sorted."""
        return sorted(name for name in self.by_name if self.is_leaf(name))

    def below(self, name: str) -> Iterator[str]:
        """The names of all queues under one queue, each once."""
        seen, pending = {name}, [name]
        while pending:
            for child in self._children_of(pending.pop()):
                if child not in seen:
                    seen.add(child)
                    pending.append(child)
                    yield child

    @cached_property
    def _leaves_below(self) -> dict[str, list[str]]:
        return {}

    def leaves_below(self, name: str) -> list[str]:
        """The leaves under one queue, sorted."""
        if name not in self._leaves_below:  # every pod of a queue asks
            self._leaves_below[name] = sorted(filter(self.is_leaf, self.below(name)))
        return self._leaves_below[name]

    def ancestors(self, queue: DeclaredQueue) -> Iterator[DeclaredQueue]:
        """The chain above a queue, nearest first; stops at a cycle, a gap or an unknown parent."""
        seen, above = {queue.name}, self.by_name.get(queue.parent or "")
        while above is not None and above.name not in seen:
            seen.add(above.name)
            yield above
            above = self.by_name.get(above.parent or "")

    @cached_property
    def levels(self) -> dict[str, int]:
        """The level of each queue, 1 at the top: parents before their children, children by name.

        Queues in or under a cycle or gap have none.
        """
        levels = dict[str, int]()
        pending = [(name, 1) for name, queue in self.by_name.items() if queue.parent is None]
        pending.sort(reverse=True)
        while pending:
            name, level = pending.pop()
            levels[name] = level
            children = sorted(self._children_of(name), reverse=True)
            pending += [(child, level + 1) for child in children]
        return levels

    def _children_of(self, name: str) -> list[str]:
        """The names of the queues that count and have this parent."""
        children = self.children.get(name, ())
        return [queue.name for queue in children if self.by_name.get(queue.name) is queue]


def rounded(amount: float) -> float:
    """An amount without what binary fractions add to it: sums of 0.1 stay as they were written."""
    return round(amount, 6)


def written(resource: Resource, amount: float, path: str) -> str:
    """An amount in KAI's units as its author writes it: in a Queue (`path` is a URN) as the bare
    number, in a stack file as a quantity.
    """
    in_queue = path.startswith("urn:")
    if amount == UNLIMITED:
        return "-1 (unlimited)" if in_queue else "unlimited"
    if resource == "gpu" or in_queue:
        return exact(amount)
    if resource == "cpu":
        return exact(amount / 1000) if amount % 1000 == 0 else f"{exact(amount)}m"
    size, unit = next((step for step in _STEPS if amount and amount % step[0] == 0), _STEPS[-1])
    return exact(amount / size) + unit


def exact(number: float) -> str:
    """A number without an exponent or zeros behind the point."""
    return f"{number:.10f}".rstrip("0").rstrip(".") if number % 1 else str(int(number))
