"""The queues of one cluster: each with its parent, its shares in KAI's units and its `spec`."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias

from kai_fleet.queue_specs import UNLIMITED as UNLIMITED
from kai_fleet.values import UNKNOWN, get, number

Resource: TypeAlias = Literal["cpu", "memory", "gpu"]
RESOURCES: Final[tuple[Resource, ...]] = ("cpu", "memory", "gpu")


@dataclass(frozen=True)
class QueueShare:
    """A queue's share of one resource in KAI's units; -1 is unlimited.

    The units are millicores of CPU, 10^6 bytes of memory and GPUs. `limit` is None where a declared
    Queue leaves it out, which KAI reads as 0.
    """

    quota: float = 0.0
    limit: float | None = UNLIMITED
    weight: float = 1.0


def shares(resources: Any) -> Any:
    """What a Queue's `spec.resources` says; UNKNOWN where the update will tell."""
    if resources is UNKNOWN:
        return UNKNOWN
    return {
        resource: QueueShare(
            quota=number(get(share, "quota")) or 0.0,
            limit=number(get(share, "limit")),
            weight=number(get(share, "overQuotaWeight")) or 0.0,
        )
        for resource in RESOURCES
        if (share := get(resources, resource)) is not None
    }


@dataclass(frozen=True)
class DeclaredQueue:
    """A scheduling queue; `parent` is None at the top level, a missing share is all zero.

    `spec` and `labels` are those of its Queue object, where a stack file declares it, `shard` the
    one that serves it. `preempt_min_runtime` and `reclaim_min_runtime` may be anything that was
    written there: the rule says what is right.
    """

    name: str
    parent: str | None = None
    shares: Mapping[Resource, QueueShare] = field(default_factory=dict)
    namespace: str | None = None
    preempt_min_runtime: object = None
    reclaim_min_runtime: object = None
    path: str = ""
    shard: str | None = None
    spec: Mapping[str, Any] = field(default_factory=dict, hash=False)
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)


class QueueIndex:
    """Lookups by name and parent; of queues with the same name the first one counts.

    A name or parent that is not known before the update is no text, and only noted.
    """

    def __init__(self, queues: Iterable[DeclaredQueue]) -> None:
        self.queues = tuple(queues)
        self.by_name: dict[str, DeclaredQueue] = {}
        self.children: dict[str, list[DeclaredQueue]] = {}
        self.twice: list[DeclaredQueue] = []
        self.unknown_names = False
        self.unknown_parents = False
        for queue in self.queues:
            name: Any = queue.name
            parent: Any = queue.parent
            if isinstance(name, str):
                if name in self.by_name:
                    self.twice.append(queue)
                self.by_name.setdefault(name, queue)
            else:
                self.unknown_names = True
            if isinstance(parent, str):
                self.children.setdefault(parent, []).append(queue)
            elif parent is not None:
                self.unknown_parents = True

    def is_leaf(self, name: str) -> bool:
        """Whether no queue names this one as its parent."""
        return name not in self.children

    @cached_property
    def leaves(self) -> list[str]:
        """The names of all queues that pods may name, sorted."""
        return sorted(name for name in self.by_name if self.is_leaf(name))

    def leaves_below(self, name: str) -> list[str]:
        """The leaves under one queue, sorted."""
        leaves: list[str] = []
        seen = {name}
        todo = [name]
        while todo:
            for child in self.children.get(todo.pop(), ()):
                if child.name not in self.by_name or child.name in seen:
                    continue
                seen.add(child.name)
                (leaves if self.is_leaf(child.name) else todo).append(child.name)
        return sorted(leaves)

    def ancestors(self, queue: DeclaredQueue) -> Iterator[DeclaredQueue]:
        """The chain above a queue, nearest first; stops at a cycle, a gap or an unknown parent."""
        seen = {queue.name}
        parent = queue.parent
        while parent is not None and parent not in seen and parent in self.by_name:
            seen.add(parent)
            above = self.by_name[parent]
            yield above
            parent = above.parent

    @cached_property
    def rings(self) -> dict[str, tuple[str, ...]]:
        """Every ring of two or more queues that are each other's parents, by its first name."""
        done: set[str] = set()
        rings: dict[str, tuple[str, ...]] = {}
        for queue in self.by_name.values():
            walked: dict[str, None] = {}
            here: DeclaredQueue | None = queue
            while here is not None and here.name not in done and here.name not in walked:
                walked[here.name] = None
                here = self.by_name.get(here.parent) if isinstance(here.parent, str) else None
            if here is not None and here.name in walked and here.parent != here.name:
                names = list(walked)
                ring = names[names.index(here.name) :]
                first = ring.index(min(ring))
                rings[ring[first]] = (*ring[first:], *ring[:first])
            done.update(walked)
        return rings

    @cached_property
    def levels(self) -> dict[str, int]:
        """The level of each queue, 1 at the top; queues in or under a cycle or gap have none."""
        levels: dict[str, int] = {}
        todo = [name for name, queue in self.by_name.items() if queue.parent is None]
        level = 1
        while todo:
            levels |= dict.fromkeys(todo, level)
            below = (child.name for name in todo for child in self.children.get(name, ()))
            todo = [name for name in below if name in self.by_name and name not in levels]
            level += 1
        return levels
