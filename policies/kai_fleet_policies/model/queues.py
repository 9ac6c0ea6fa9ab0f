"""The queues of one cluster: each with its parent, its `spec` and its shares; and amounts.

Amounts are in KAI's units: millicores of CPU, 10^6 bytes of memory, and GPUs.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

from kai_fleet.queues.amounts import UNLIMITED as UNLIMITED
from kai_fleet.queues.amounts import from_kai
from kai_fleet.values import UNKNOWN, Maybe, get, known_or, mapping, number, text
from kai_usage import trees
from kai_usage.amounts import Resource as Resource

RESOURCES: tuple[Resource, ...] = ("cpu", "memory", "gpu")
# More than floats are off by: of a GPU, a millicore or 10^6 bytes; above 1, of the amount.
SLACK = 1e-5
# Suffixes of memory and how many 10^6 bytes they are, the largest first.
_SUFFIXES = {"T": 10**6, "G": 10**3, "M": 1}


@dataclass(frozen=True)
class QueueShare:
    """A queue's share of one resource, in KAI's units; UNLIMITED is infinity, above all others.

    `limit` is None if a Queue object leaves it out, which KAI reads as 0. `weight`, for over-quota,
    has no unit. Each is UNKNOWN if only the update knows it.
    """

    quota: Maybe[float] = 0.0
    limit: Maybe[float] | None = UNLIMITED
    weight: Maybe[float] = 1.0


# Shares with which rules about amounts stay silent: of a queue that is not declared here.
UNLIMITED_SHARES = dict.fromkeys(RESOURCES, QueueShare(UNLIMITED))


@dataclass(frozen=True)
class DeclaredQueue:
    """A scheduling queue.

    Args:
        name: UNKNOWN if only the update knows it, as `parent`, `shares`, `namespace` and `spec`.
        parent: None at the top level.
        shares: By resource; without a share KAI reads quota and limit as 0.
        namespace: A namespace that somebody wrote; queues have none.
        path: Its key in the stack file, or its URN.
        shard: The shard of KAI that serves it; None for the default one, and from resources.
        spec: `spec` of its Queue object, as it was written and not checked; empty if it is no
            mapping, or if another stack or a chart declares the queue.
    """

    name: Maybe[str]
    parent: Maybe[str] | None = None
    shares: Maybe[Mapping[Resource, QueueShare]] = field(default_factory=dict)
    namespace: Maybe[str] | None = None
    path: str = ""
    shard: str | None = None
    spec: Maybe[Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        name: Maybe[str],
        spec: object,
        *,
        path: str = "",
        namespace: Maybe[str] | None = None,
        shard: str | None = None,
    ) -> Self:
        """A queue by the `spec` of its Queue object.

        A quota or weight that is absent or no number counts as 0; such a limit is None, which KAI
        reads as 0. A quota or limit of -1 is UNLIMITED. What is not known is UNKNOWN: an amount,
        all amounts of a share that is, the parent, all shares if `resources` is, and the whole
        `spec`. A parent "" is None.
        """
        return cls(
            name,
            parent=text(get(spec, "parentQueue")) or None,
            shares=_shares(get(spec, "resources")),
            namespace=namespace,
            path=path,
            shard=shard,
            spec=mapping(spec),
        )


def _shares(resources: object) -> Maybe[Mapping[Resource, QueueShare]]:
    """The shares that `spec.resources` has, none of a resource that it lacks; UNKNOWN if it is.

    A share without an amount, and one that is UNKNOWN itself, are as `DeclaredQueue.of` says.
    """
    if resources is UNKNOWN:
        return UNKNOWN
    shares = dict[Resource, QueueShare]()
    for resource in RESOURCES:
        share = get(resources, resource)
        if share is not None:
            shares[resource] = QueueShare(
                quota=from_kai(number(get(share, "quota")) or 0.0),
                limit=from_kai(number(get(share, "limit"))),
                weight=number(get(share, "overQuotaWeight")) or 0.0,
            )
    return shares


class QueueIndex:
    """Queues by name and by parent. Of several queues with one name the first counts.

    `repeated` has the queues whose name an earlier one has.

    A queue whose name is UNKNOWN is not in `by_name`, and one whose parent is UNKNOWN not in
    `children`; `unknown_names` and `unknown_parents` tell whether there are any.
    """

    def __init__(self, queues: Iterable[DeclaredQueue]) -> None:
        self.queues = tuple(queues)
        self.by_name: dict[str, DeclaredQueue] = {}
        self.children: dict[str, list[DeclaredQueue]] = {}
        self.repeated: list[DeclaredQueue] = []
        self.unknown_names = any(queue.name is UNKNOWN for queue in self.queues)
        self.unknown_parents = any(queue.parent is UNKNOWN for queue in self.queues)
        for queue in self.queues:
            if isinstance(queue.name, str) and queue.name not in self.by_name:
                self.by_name[queue.name] = queue
            elif queue.name is not UNKNOWN:
                self.repeated.append(queue)
            # By a parent that is not declared, too.
            if isinstance(queue.parent, str):
                self.children.setdefault(queue.parent, []).append(queue)

    def children_of(self, queue: DeclaredQueue) -> list[DeclaredQueue]:
        """The queues that name this one as their parent, repeated ones too.

        An empty list if its name is not known.
        """
        return self.children.get(queue.name, []) if isinstance(queue.name, str) else []

    def is_leaf(self, name: str) -> bool:
        """Whether no queue is known to name this one as its parent; also if it is not declared."""
        return name not in self.children

    @cached_property
    def leaves(self) -> list[str]:
        """The names of all queues that pods may name, sorted: those that are no known parent."""
        return sorted(name for name in self.by_name if self.is_leaf(name))

    def below(self, name: str) -> list[str]:
        """The names of all queues under one queue, in any order; in a cycle not its own.

        Empty if no queue of this name is declared.
        """
        others = self.by_name.keys() - {name}
        return [other for other in others if name in trees.upwards(self._parents, other)]

    def leaves_below(self, name: str) -> list[str]:
        """The names of the leaves under one queue, sorted.

        Empty for a leaf itself, and if no queue of this name is declared.
        """
        return self._leaves_below.get(name, [])

    @cached_property
    def _leaves_below(self) -> Mapping[str, list[str]]:
        return trees.leaves_below(self._parents, self.leaves)

    def ancestors(self, queue: DeclaredQueue) -> Iterator[DeclaredQueue]:
        """The queues above one queue, nearest first.

        They end where a parent is not declared or not known, and before a queue is repeated. Of
        several queues with one name only the first is above others.
        """
        for name in trees.upwards(self._parents, known_or(queue.parent, None)):
            if name == queue.name:
                return
            yield self.by_name[name]

    @cached_property
    def levels(self) -> dict[str, int]:
        """The level of each queue, 1 at the top: parents before their children, children by name.

        Queues in a cycle, under one, or under a parent that is not declared or not known have no
        level.
        """
        return trees.levels(self._parents)

    @cached_property
    def _parents(self) -> trees.Parents:
        """The parent of each queue; "", which no queue has, for UNKNOWN."""
        return {name: known_or(queue.parent, "") for name, queue in self.by_name.items()}


def as_written(resource: Resource, amount: float, path: str) -> str:
    """An amount in KAI's units as its author writes it.

    In a Queue object, if `path` is a URN, that is the bare number; in a stack file it is a
    quantity: cores or millicores, and bytes with a suffix.
    """
    in_queue = path.startswith("urn:")
    if amount == UNLIMITED:
        return "-1 (unlimited)" if in_queue else "unlimited"
    if resource == "gpu" or in_queue:
        return decimal_text(amount)
    if resource == "memory":
        return _bytes(amount)
    if amount % 1000 == 0:
        return decimal_text(amount / 1000)
    return f"{decimal_text(amount)}m"


def _bytes(amount: float) -> str:
    """10^6 bytes as a quantity, with the largest suffix that leaves a whole number, else with M."""
    for suffix, size in _SUFFIXES.items():
        if amount and amount % size == 0:
            return decimal_text(amount / size) + suffix
    return f"{decimal_text(amount)}M"


def decimal_text(number: float) -> str:
    """The number without an exponent and without zeros at the end, to ten decimals."""
    if number % 1 == 0:
        return str(int(number))
    return f"{number:.10f}".rstrip("0").rstrip(".")
