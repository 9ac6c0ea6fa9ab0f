"""The queue tree as a stack file writes it: nested, in Kubernetes quantities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Generic, TypeVar

from pydantic import BeforeValidator, Field

from kai_fleet.releases.keys import DEFAULT_SHARD
from kai_fleet.settings.files.named import TreeFile, read_tree
from kai_fleet.settings.sections.kubernetes import UNLIMITED, Cpu, Gpu, Memory
from kai_fleet.settings.sections.models import Strict, Wrong, like, short_for
from kai_fleet.settings.sections.platform import ShardName

# A queue's name is also the value of the pod label kai.scheduler/queue: 63 characters at most.
QueueName = Annotated[str, like(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", 63)]
Q = TypeVar("Q")


def _without_default(schema: dict[str, Any]) -> None:
    """What holds for a quota that is left out depends on the queues around it."""
    schema.pop("default", None)


class Share(Strict, Generic[Q]):
    """What a queue may have of one resource; -1 stands for unlimited.

    quota is guaranteed, limit is the most it may hold, weight its part of what others leave over.
    A quota that is left out is filled in from those around it.
    """

    quota: Q = Field(  # type: ignore[assignment]
        default=0.0,
        description="Guaranteed; what the queue always gets. It is filled in where left out.",
        json_schema_extra=_without_default,
    )
    # KAI reads an unset limit as 0, and then nothing ever runs (Q2).
    limit: Q = Field(default=UNLIMITED, description="The most it may hold; unlimited unless set.")  # type: ignore[assignment]
    weight: float = Field(default=1.0, ge=0, le=1e6)
    """Over-quota weight: its part of what is left over."""


_AMOUNT: Final = int | float | str
CpuShare = Annotated[Share[Cpu], short_for("quota", _AMOUNT, Share[Cpu] | Cpu)]
MemoryShare = Annotated[Share[Memory], short_for("quota", _AMOUNT, Share[Memory] | Memory)]
GpuShare = Annotated[Share[Gpu], short_for("quota", _AMOUNT, Share[Gpu] | Gpu)]


def _share(quantity: Any, description: str) -> Any:
    """The field for what a queue may have of one resource."""
    about = f"A quota, or quota, limit and weight. {description}"
    return Field(default_factory=Share[quantity], description=about)


class Queue(Strict):
    """One queue and the queues below it. Only a queue without children takes pods."""

    display_name: str | None = None
    """Shown in scheduler messages."""
    priority: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Higher gets over-quota first; KAI's is 100."""
    cpu: CpuShare = _share(Cpu, "Unlimited unless set.")
    memory: MemoryShare = _share(Memory, "Unlimited unless set.")
    gpu: GpuShare = _share(
        Gpu,
        "Without children: none guaranteed unless set; with children the sum of theirs; a team's"
        " one top-level queue has all its GPUs.",
    )
    preempt_min_runtime: str | None = None
    """Go duration such as 4h or 90m; days and weeks do not parse."""
    reclaim_min_runtime: str | None = None
    """Go duration such as 4h."""
    shard: ShardName | None = None
    """Top-level queues: the shard that serves it and what is below."""
    children: dict[QueueName, Queue] = Field(default_factory=dict)


QueueTree = Annotated[
    dict[QueueName, Queue],
    BeforeValidator(read_tree, json_schema_input_type=dict[QueueName, Queue] | TreeFile),
]


@dataclass(frozen=True)
class PlacedQueue:
    """A queue with its place: the queues above it from the top, and its key path in the file."""

    name: str
    above: tuple[str, ...]
    path: str
    queue: Queue
    shard: str | None = None


def walk(
    tree: Mapping[str, Queue], path: str = "", above: tuple[str, ...] = (), shard: str | None = None
) -> Iterator[PlacedQueue]:
    """Every queue of a tree, parents before their children."""
    for name, queue in tree.items():
        here, served = f"{path}{name}", shard if above else queue.shard
        yield PlacedQueue(name, above, here, queue, served)
        yield from walk(queue.children, f"{here}.children.", (*above, name), served)


def leaves(tree: Mapping[str, Queue]) -> list[str]:
    """The names of the queues that take pods, in the tree's order."""
    return [placed.name for placed in walk(tree) if not placed.queue.children]


def shard_mistakes(
    tree: Mapping[str, Queue], shards: Mapping[str, object], parent: str | None = None
) -> Wrong:
    """Queues that name a shard that there is not, or name one below the top: (path, sentence).

    `parent` is a queue of another tree below which this one hangs.
    """
    known = ", ".join(dict.fromkeys((DEFAULT_SHARD, *shards)))
    for placed in walk(tree, above=(parent,) if parent else ()):
        named, path = placed.queue.shard, f"{placed.path}.shard"
        if named is not None and placed.above:
            yield path, "is for top-level queues: those below are of the same shard; drop it"
        elif named not in (None, DEFAULT_SHARD, *shards):
            yield path, f"names the shard {named}, which is not declared; write one of {known}"
