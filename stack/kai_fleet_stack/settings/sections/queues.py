"""The queue tree of a stack file: nested queues, with shares as Kubernetes quantities."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

from pydantic import BeforeValidator, Field

from kai_fleet.releases import queue_bounds
from kai_fleet.releases.keys import DEFAULT_SHARD
from kai_fleet_stack.settings.files.yaml_file import TreeFile, read_tree
from kai_fleet_stack.settings.sections.kubernetes import Cpu, Gpu, Memory
from kai_fleet_stack.settings.sections.models import (
    NO_KEYS,
    Grants,
    Mistakes,
    Strict,
    like,
    short_for,
)
from kai_fleet_stack.settings.sections.platform import ShardName

# Pods name their queue in the label kai.scheduler/queue.
QueueName = Annotated[str, like(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", queue_bounds.NAME)]
Q = TypeVar("Q")
# Default of amounts, typed Any because it stands for a value of any Q.
_NONE: Any = None


class Share(Strict, Generic[Q]):
    """A queue's share of one resource, in cores, bytes or GPUs; -1 and unlimited mean the same."""

    described_by = ("queue_tree.ShareArgs",)

    quota: Q = _NONE
    limit: Annotated[Q, Grants.MOST_UNSET] = _NONE
    weight: float = Field(default=1.0, ge=0, le=queue_bounds.WEIGHT)


_AMOUNT = int | float | str
CpuShare = Annotated[Share[Cpu], short_for("quota", _AMOUNT, Share[Cpu] | Cpu)]
MemoryShare = Annotated[Share[Memory], short_for("quota", _AMOUNT, Share[Memory] | Memory)]
GpuShare = Annotated[Share[Gpu], short_for("quota", _AMOUNT, Share[Gpu] | Gpu)]


class Queue(Strict):
    """One queue and the queues below it. Only a queue without children takes pods."""

    described_by = ("queue_tree.QueueArgs",)

    display_name: Annotated[str | None, Grants.NOTHING] = None
    priority: int | None = Field(default=None, ge=0, le=queue_bounds.PRIORITY)
    cpu: CpuShare = Field(default_factory=Share)
    memory: MemoryShare = Field(default_factory=Share)
    gpu: GpuShare = Field(default_factory=Share)
    preempt_min_runtime: str | None = None
    reclaim_min_runtime: str | None = None
    shard: ShardName | None = None
    children: dict[QueueName, "Queue"] = NO_KEYS


QueueTree = Annotated[
    dict[QueueName, Queue],
    BeforeValidator(read_tree, json_schema_input_type=dict[QueueName, Queue] | TreeFile),
]


class PlacedQueue(NamedTuple):
    """A queue in its tree.

    `above` has the names of the queues above it, the topmost first, as far as `walk` knows them.
    `path` is its key path below the tree, after the beginning that `walk` was given. `shard` is
    that of its top-level queue, None for the default.
    """

    name: str
    above: tuple[str, ...]
    path: str
    queue: Queue
    shard: str | None = None


def walk(
    tree: Mapping[str, Queue], path: str = "", above: tuple[str, ...] = (), shard: str | None = None
) -> Iterator[PlacedQueue]:
    """All queues of a tree in the file's order, each followed by those below it.

    `path` begins its key paths; it ends with a dot, or is "". With `above` the tree hangs below
    those queues of another tree, the topmost first, and `shard` is the shard of all of its queues,
    None for the default; what they name is not read. Without `above` the shard of each top-level
    queue is that of all queues below it, and `shard` is not read.
    """
    for name, queue in tree.items():
        key_path = f"{path}{name}"
        served_by = shard if above else queue.shard
        yield PlacedQueue(name, above, key_path, queue, served_by)
        yield from walk(queue.children, f"{key_path}.children.", (*above, name), served_by)


def shard_mistakes(
    tree: Mapping[str, Queue], shards: Mapping[str, object], parent: str | None = None
) -> Mistakes:
    """Queues that name an undeclared shard, and queues below the top that name any.

    Key paths begin below the tree: `train.shard`. `shards` has the declared ones by name; the
    default one needs no entry. `parent` is a queue of another tree that is the parent of this
    tree's top-level queues, so that none of them may name any; None if they have no parent.
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
