"""Queues and their tree, indexed once per cluster for all rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, TypeAlias

from kai_fleet_policies.unknown import UNKNOWN, Amount, Text, Unknown

UNLIMITED: Final = -1.0
Resource: TypeAlias = Literal["cpu", "memory", "gpu"]
RESOURCES: Final[tuple[Resource, ...]] = ("cpu", "memory", "gpu")


@dataclass(frozen=True)
class Share:
    """A queue's share of one resource in KAI's units; -1 is unlimited.

    The units are millicores of CPU, 10^6 bytes of memory and GPUs. `limit` is None where a declared
    Queue leaves it out, which KAI reads as 0.
    """

    quota: Amount = 0.0
    limit: Amount | None = UNLIMITED
    weight: Amount = 1.0


@dataclass(frozen=True)
class Queue:
    """A scheduling queue; `parent` is None at the top level, a missing share is all zero.

    `min_runtimes` may be anything that was written there: the rule says what is right.
    `filled_in_namespace` is what a provider writes that has not seen the CRD yet.
    """

    name: Text
    parent: Text | None = None
    shares: Mapping[Resource, Share] | Unknown = field(default_factory=dict)
    namespace: Text | None = None
    preempt_min_runtime: object = None
    reclaim_min_runtime: object = None
    path: str = ""
    filled_in_namespace: str = "default"


class QueueTree:
    """Lookups by name and parent; of queues with the same name the first one counts."""

    def __init__(self, queues: Iterable[Queue]) -> None:
        self.queues = tuple(queues)
        self.by_name: dict[str, Queue] = {}
        self.children: dict[str, list[Queue]] = {}
        self.unknown_names = False
        self.unknown_parents = False
        for queue in self.queues:
            if queue.name is UNKNOWN:
                self.unknown_names = True
            else:
                self.by_name.setdefault(queue.name, queue)
            if queue.parent is UNKNOWN:
                self.unknown_parents = True
            elif queue.parent is not None:
                self.children.setdefault(queue.parent, []).append(queue)

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
                if child.name is UNKNOWN or child.name in seen:
                    continue
                seen.add(child.name)
                (leaves if self.is_leaf(child.name) else todo).append(child.name)
        return sorted(leaves)

    def ancestors(self, queue: Queue) -> Iterator[Queue]:
        """The chain above a queue, nearest first; stops at a cycle, a gap or an unknown parent."""
        seen = {queue.name}
        parent = queue.parent
        while parent is not None and parent is not UNKNOWN and parent not in seen:
            above = self.by_name.get(parent)
            if above is None:
                return
            seen.add(parent)
            yield above
            parent = above.parent

    def cycles(self) -> list[tuple[str, ...]]:
        """Every ring of two or more queues that are each other's parents, in order."""
        done: set[str] = set()
        rings: list[tuple[str, ...]] = []
        for start in self.by_name:
            walk: dict[str, int] = {}
            name: object = start
            while isinstance(name, str) and name in self.by_name and name not in done:
                if name in walk:
                    ring = list(walk)[walk[name] :]
                    if len(ring) > 1:
                        first = ring.index(min(ring))
                        rings.append(tuple(ring[first:] + ring[:first]))
                    break
                walk[name] = len(walk)
                name = self.by_name[name].parent
            done.update(walk)
        return rings

    def levels(self) -> dict[str, int]:
        """The level of each queue, 1 at the top; queues in or under a cycle or gap have none."""
        level: dict[str, int] = {}
        todo: list[tuple[str, int]] = [
            (name, 1) for name, queue in self.by_name.items() if queue.parent is None
        ]
        while todo:
            name, depth = todo.pop()
            level[name] = depth
            for child in self.children.get(name, ()):
                if child.name is not UNKNOWN and self.by_name[child.name] is child:
                    todo.append((child.name, depth + 1))
        return level
