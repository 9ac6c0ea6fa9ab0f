"""The queue tree as a stack file writes it: nested, in Kubernetes quantities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Generic, NamedTuple, TypeVar

from pydantic import BeforeValidator, Field

from kai_fleet.releases import queue_bounds
from kai_fleet.releases.keys import DEFAULT_SHARD
from kai_fleet.settings.files.yaml_file import TreeFile, read_tree
from kai_fleet.settings.sections.kubernetes import Cpu, Gpu, Memory
from kai_fleet.settings.sections.models import Grants, Strict, Wrong, like, short_for
from kai_fleet.settings.sections.platform import ShardName

# A queue's name is also the value of the pod label kai.scheduler/queue.
QueueName = Annotated[str, like(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", queue_bounds.NAME)]
Q = TypeVar("Q")
_NONE: Final[Any] = None


class Share(Strict, Generic[Q]):
    """What a queue may have of one resource; -1 stands for unlimited.

    quota is guaranteed, limit is the most it may hold, weight its part of what others leave over.
    """

    quota: Q = _NONE
    """Guaranteed; what the queue always gets. It is filled in from those around where left out."""
    limit: Annotated[Q, Grants.MOST_UNSET] = _NONE
    """The most it may hold; unlimited unless set."""
    weight: float = Field(default=1.0, ge=0, le=queue_bounds.WEIGHT)
    """Over-quota weight: its part of what is left over."""


_AMOUNT: Final = int | float | str
_ABOUT: Final = "A quota, or quota, limit and weight."
_UNSET: Final = f"{_ABOUT} Unlimited unless set."
CpuShare = Annotated[Share[Cpu], short_for("quota", _AMOUNT, Share[Cpu] | Cpu)]
MemoryShare = Annotated[Share[Memory], short_for("quota", _AMOUNT, Share[Memory] | Memory)]
GpuShare = Annotated[Share[Gpu], short_for("quota", _AMOUNT, Share[Gpu] | Gpu)]


class Queue(Strict):
    """One queue and the queues below it. Only a queue without children takes pods."""

    display_name: Annotated[str | None, Grants.NOTHING] = None
    """Shown in scheduler messages."""
    priority: int | None = Field(default=None, ge=0, le=queue_bounds.PRIORITY)
    """Higher gets over-quota first; KAI's is 100."""
    cpu: CpuShare = Field(default_factory=Share, description=_UNSET)
    memory: MemoryShare = Field(default_factory=Share, description=_UNSET)
    gpu: GpuShare = Field(
        default_factory=Share,
        description=f"{_ABOUT} Without children: none guaranteed unless set; with children the sum"
        " of theirs; a team's one top-level queue has all its GPUs.",
    )
    preempt_min_runtime: str | None = None
    """Go duration such as 4h or 90m; days and weeks do not parse. At most 999999h."""
    reclaim_min_runtime: str | None = None
    """Go duration such as 4h."""
    shard: ShardName | None = None
    """Top-level queues: the shard that serves it and what is below."""
    children: dict[QueueName, Queue] = Field(default_factory=dict)


QueueTree = Annotated[
    dict[QueueName, Queue],
    BeforeValidator(read_tree, json_schema_input_type=dict[QueueName, Queue] | TreeFile),
]


class PlacedQueue(NamedTuple):
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


def shard_mistakes(
    tree: Mapping[str, Queue], shards: Mapping[str, object], parent: str | None = None
) -> Wrong:
    """Queues that name a shard that there is not, or name one below the top: (path, sentence).

    `parent` is a queue of another tree below which this one hangs.
    """
    known = dict.fromkeys((DEFAULT_SHARD, *shards))
    for placed in walk(tree, above=(parent,) if parent else ()):
        named = placed.queue.shard
        if named is not None and placed.above:
            fix = "drop it, those below are of the same one"
            yield f"{placed.path}.shard", f"is for top-level queues; {fix}"
        elif named is not None and named not in known:
            cause = f"names the shard {named}, which is not declared"
            yield f"{placed.path}.shard", f"{cause}; write one of {', '.join(known)}"
