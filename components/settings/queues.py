"""The queue tree as a stack file writes it: nested, in Kubernetes quantities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from pydantic import Field, StringConstraints

from components.settings.model import Strict
from components.settings.quantities import UNLIMITED, Cpu, Gpu, Memory

# A queue's name is also the value of the pod label kai.scheduler/queue: 63 characters at most.
QueueName = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=63)
]
Q = TypeVar("Q")


class Share(Strict, Generic[Q]):
    """What a queue may have of one resource; -1 stands for unlimited.

    quota is guaranteed, limit is the most it may hold, weight its part of what others leave over.
    """

    quota: Q = Field(default=0.0, description="Guaranteed; what the queue always gets.")  # type: ignore[assignment]
    # KAI reads an unset limit as 0, and then nothing ever runs (Q2).
    limit: Q = Field(default=UNLIMITED, description="The most it may hold; unlimited unless set.")  # type: ignore[assignment]
    weight: float = Field(
        default=1.0, ge=0, le=1e6, description="Over-quota weight: its part of what is left over."
    )


class Queue(Strict):
    """One queue and the queues below it. Only a queue without children takes pods."""

    display_name: str | None = Field(default=None, description="Shown in scheduler messages.")
    priority: int | None = Field(
        default=None, ge=0, le=2**31 - 1, description="Higher gets over-quota first; KAI's is 100."
    )
    cpu: Share[Cpu] = Field(default_factory=Share[Cpu])
    memory: Share[Memory] = Field(default_factory=Share[Memory])
    gpu: Share[Gpu] = Field(default_factory=Share[Gpu])
    preempt_min_runtime: str | None = Field(
        default=None, description="Go duration such as 4h or 90m; days and weeks do not parse."
    )
    reclaim_min_runtime: str | None = Field(default=None, description="Go duration such as 4h.")
    children: dict[QueueName, Queue] = Field(default_factory=dict)

    def spec(self, parent: str | None, gpu_limit: int | None = None) -> dict[str, Any]:
        """The `spec` of the Queue object, in KAI's units.

        `gpu_limit` bounds a top-level queue inside a vCluster to its team's GPUs where the config
        gives no limit: each inner scheduler sees every GPU of its nodes (V18).
        """
        gpu = self.gpu
        if gpu_limit is not None and "limit" not in gpu.model_fields_set:
            gpu = gpu.model_copy(update={"limit": max(float(gpu_limit), gpu.quota)})
        shares: dict[str, Share[Any]] = {"cpu": self.cpu, "memory": self.memory, "gpu": gpu}
        spec: dict[str, Any] = {
            "resources": {
                name: {
                    "quota": _number(share.quota),
                    "limit": _number(share.limit),
                    "overQuotaWeight": _number(share.weight),
                }
                for name, share in shares.items()
            }
        }
        optional = {
            "displayName": self.display_name,
            "parentQueue": parent,
            "priority": self.priority,
            "preemptMinRuntime": self.preempt_min_runtime,
            "reclaimMinRuntime": self.reclaim_min_runtime,
        }
        return spec | {key: value for key, value in optional.items() if value is not None}


QueueTree = dict[QueueName, Queue]


@dataclass(frozen=True)
class PlacedQueue:
    """A queue with its place: its name, its parent's, and its key path in the stack file."""

    name: str
    parent: str | None
    path: str
    queue: Queue

    @property
    def is_leaf(self) -> bool:
        """Whether pods may be sent to it."""
        return not self.queue.children


def walk(
    tree: Mapping[str, Queue], path: str = "", parent: str | None = None
) -> Iterator[PlacedQueue]:
    """Every queue of a tree, parents before their children."""
    for name, queue in tree.items():
        here = f"{path}.{name}"
        yield PlacedQueue(name, parent, here, queue)
        yield from walk(queue.children, f"{here}.children", name)


def leaves(tree: Mapping[str, Queue]) -> list[str]:
    """The names of the queues that take pods, in the tree's order."""
    return [placed.name for placed in walk(tree) if placed.is_leaf]


def _number(value: float) -> float | int:
    """Whole numbers as integers, so that a plan reads `4` and not `4.0`."""
    return int(value) if float(value).is_integer() else value
