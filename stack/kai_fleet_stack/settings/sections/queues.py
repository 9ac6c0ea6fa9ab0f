"""The queue tree of a stack file: nested queues, with shares as Kubernetes quantities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Generic, NamedTuple, TypeVar

from pydantic import BeforeValidator, Field

from kai_fleet.releases import queue_bounds
from kai_fleet.releases.keys import DEFAULT_SHARD
from kai_fleet_stack.settings.files.yaml_file import TreeFile, read_tree
from kai_fleet_stack.settings.sections.kubernetes import Cpu, Gpu, Memory
from kai_fleet_stack.settings.sections.models import Grants, Strict, Wrong, like, short_for
from kai_fleet_stack.settings.sections.platform import ShardName

# Pods name their queue in the label kai.scheduler/queue.
QueueName = Annotated[str, like(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", queue_bounds.NAME)]
Q = TypeVar("Q")
# Default of amounts, typed Any because it stands for a value of any Q.
_NONE: Final[Any] = None


class Share(Strict, Generic[Q]):
    """A queue's share of one resource, in cores, bytes or GPUs; -1 and unlimited mean the same."""

    quota: Q = _NONE
    """Guaranteed amount. Default: with children the sum of theirs; else see the queue's cpu, memory
    and gpu.
    """
    limit: Annotated[Q, Grants.MOST_UNSET] = _NONE
    """The most that the queue may hold. Default: unlimited."""
    weight: float = Field(default=1.0, ge=0, le=queue_bounds.WEIGHT)
    """Over-quota weight, relative to sibling queues: the part of unused capacity that it gets."""


_AMOUNT: Final = int | float | str
_SHARE: Final = "A quota, or a mapping with quota, limit and weight"
_UNLIMITED: Final = (
    "Default: unlimited; with children the sum of their quotas; below a queue with a quota or limit"
    " none guaranteed."
)
CpuShare = Annotated[Share[Cpu], short_for("quota", _AMOUNT, Share[Cpu] | Cpu)]
MemoryShare = Annotated[Share[Memory], short_for("quota", _AMOUNT, Share[Memory] | Memory)]
GpuShare = Annotated[Share[Gpu], short_for("quota", _AMOUNT, Share[Gpu] | Gpu)]


class Queue(Strict):
    """One queue and the queues below it. Only a queue without children takes pods."""

    display_name: Annotated[str | None, Grants.NOTHING] = None
    """Name in messages of the scheduler. Default: the queue's name."""
    priority: int | None = Field(default=None, ge=0, le=queue_bounds.PRIORITY)
    """Queues with a higher priority get over-quota first. Default: 100."""
    cpu: CpuShare = Field(default_factory=Share, description=f"{_SHARE}, in cores. {_UNLIMITED}")
    memory: MemoryShare = Field(
        default_factory=Share, description=f"{_SHARE}, in bytes. {_UNLIMITED}"
    )
    gpu: GpuShare = Field(
        default_factory=Share,
        description=f"{_SHARE}, in GPUs. Default: none guaranteed; with children the sum of their"
        " quotas; for the only top-level queue without a quota the rest of the team's GPUs.",
    )
    preempt_min_runtime: str | None = None
    """How long a job runs before its own queue may preempt it: a Go duration, 4h or 90m, without
    days and weeks, at most 999999h. Default: the shard's.
    """
    reclaim_min_runtime: str | None = None
    """How long a job runs before another queue may reclaim its resources: 4h, 90m. Default: the
    shard's.
    """
    shard: ShardName | None = None
    """Top-level queues: the shard that schedules the queue and those below it. Default: default."""
    children: dict[QueueName, Queue] = Field(default_factory=dict)
    """Queues below it, by name. Default: none, so that pods may name the queue."""


QueueTree = Annotated[
    dict[QueueName, Queue],
    BeforeValidator(read_tree, json_schema_input_type=dict[QueueName, Queue] | TreeFile),
]


class PlacedQueue(NamedTuple):
    """A queue in its tree.

    `above` has the names of the queues above it, from the top. `path` is its key path below the
    tree. `shard` is that of its top-level queue, None for the default.
    """

    name: str
    above: tuple[str, ...]
    path: str
    queue: Queue
    shard: str | None = None


def walk(
    tree: Mapping[str, Queue], path: str = "", above: tuple[str, ...] = (), shard: str | None = None
) -> Iterator[PlacedQueue]:
    """All queues of a tree, parents before their children.

    With `above` the tree hangs below those queues of another tree, `path` begins its key paths, and
    `shard` is the shard of all of its queues.
    """
    for name, queue in tree.items():
        key_path = f"{path}{name}"
        served_by = shard if above else queue.shard
        yield PlacedQueue(name, above, key_path, queue, served_by)
        yield from walk(queue.children, f"{key_path}.children.", (*above, name), served_by)


def shard_mistakes(
    tree: Mapping[str, Queue], shards: Mapping[str, object], parent: str | None = None
) -> Wrong:
    """Queues that name an undeclared shard, and queues below the top that name any.

    `parent` is a queue of another tree that is the parent of this tree's top-level queues.
    """
    declared = list(dict.fromkeys((DEFAULT_SHARD, *shards)))
    above = (parent,) if parent else ()
    for placed in walk(tree, above=above):
        shard = placed.queue.shard
        if shard is None:
            continue
        key = f"{placed.path}.shard"
        if placed.above:
            yield key, "is for top-level queues; drop it, those below are of the same one"
        elif shard not in declared:
            cause = f"names the shard {shard}, which is not declared"
            yield key, f"{cause}; write one of {', '.join(declared)}"
