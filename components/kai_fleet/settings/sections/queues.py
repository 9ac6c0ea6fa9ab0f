"""The queue tree as a stack file writes it: nested, in Kubernetes quantities.

Quotas that a stack file leaves out:

- `cpu` and `memory` of a leaf: unlimited, or its own limit. Where a queue above it has a number,
  the leaf is guaranteed none and shares what that queue has.
- `gpu` of a leaf: none guaranteed; it shares what the others leave.
- A queue with children: the sum of theirs.
- `gpu` of the one top-level queue of a team that says none: the team's GPUs, less what the other
  top-level queues have. Of a team with several pools: the pool's, of the queues on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Final, Generic, TypeVar

from pydantic import BeforeValidator, Field, StringConstraints

from kai_fleet.releases.keys import DEFAULT_SHARD, NODE_POOL
from kai_fleet.settings.sections.kubernetes import UNLIMITED, Cpu, Gpu, Memory, short_or_whole
from kai_fleet.settings.sections.models import Strict
from kai_fleet.settings.sections.platform import ShardName

# A queue's name is also the value of the pod label kai.scheduler/queue: 63 characters at most.
QueueName = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=63)
]
Q = TypeVar("Q")
_GPU: Final = "gpu"
_RESOURCES: Final = ("cpu", "memory", _GPU)


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
    weight: float = Field(
        default=1.0, ge=0, le=1e6, description="Over-quota weight: its part of what is left over."
    )


def _as_share(value: Any) -> Any:
    """`gpu: 12` is short for `gpu: {quota: 12}`."""
    return {"quota": value} if isinstance(value, int | float | str) else value


CpuShare = Annotated[Share[Cpu], BeforeValidator(_as_share)]
MemoryShare = Annotated[Share[Memory], BeforeValidator(_as_share)]
GpuShare = Annotated[Share[Gpu], BeforeValidator(_as_share)]


def _share(quantity: Any, description: str) -> Any:
    """The field for what a queue may have of one resource."""
    return Field(
        default_factory=Share[quantity],
        description=f"A quota, or quota, limit and weight. {description}",
        json_schema_extra=short_or_whole(quantity),
    )


class Queue(Strict):
    """One queue and the queues below it. Only a queue without children takes pods."""

    display_name: str | None = Field(default=None, description="Shown in scheduler messages.")
    priority: int | None = Field(
        default=None, ge=0, le=2**31 - 1, description="Higher gets over-quota first; KAI's is 100."
    )
    cpu: CpuShare = _share(Cpu, "Unlimited unless set.")
    memory: MemoryShare = _share(Memory, "Unlimited unless set.")
    gpu: GpuShare = _share(
        Gpu,
        "Without children: none guaranteed unless set; with children the sum of theirs; a team's"
        " one top-level queue has all its GPUs.",
    )
    preempt_min_runtime: str | None = Field(
        default=None, description="Go duration such as 4h or 90m; days and weeks do not parse."
    )
    reclaim_min_runtime: str | None = Field(default=None, description="Go duration such as 4h.")
    shard: ShardName | None = Field(
        default=None, description="Top-level queues: the shard that serves it and what is below."
    )
    children: dict[QueueName, Queue] = Field(default_factory=dict)

    def spec(
        self, parent: str | None, gpu_limit: int | None = None, team_gpus: int | None = None
    ) -> dict[str, Any]:
        """The `spec` of the Queue object, in KAI's units.

        `gpu_limit` bounds a top-level queue inside a vCluster to its team's GPUs where the config
        gives no limit: each inner scheduler sees every GPU of its nodes (V18). `team_gpus` bounds a
        queue of the host to the GPUs of the teams that it is for (T13).
        """
        quota, limit = self.gpu.quota, self.gpu.limit
        if team_gpus is not None and quota == UNLIMITED:
            quota = float(team_gpus)
        most = gpu_limit if team_gpus is None else team_gpus
        if most is not None and "limit" not in self.gpu.model_fields_set:
            limit = max(float(most), quota)
        gpu = self.gpu.model_copy(update={"quota": quota, "limit": limit})
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
    shard: str | None = None

    @property
    def labels(self) -> dict[str, str]:
        """The Queue object's labels."""
        return shard_labels(self.shard)

    @property
    def is_leaf(self) -> bool:
        """Whether pods may be sent to it."""
        return not self.queue.children


def shard_labels(shard: str | None) -> dict[str, str]:
    """The label by which a shard sees a queue or a pod; the default one sees what has none."""
    return {} if shard in (None, DEFAULT_SHARD) else {NODE_POOL: str(shard)}


def walk(
    tree: Mapping[str, Queue],
    path: str = "",
    parent: str | None = None,
    shard: str | None = None,
) -> Iterator[PlacedQueue]:
    """Every queue of a tree, parents before their children."""
    for name, queue in tree.items():
        here = f"{path}.{name}"
        served = queue.shard if parent is None else shard
        yield PlacedQueue(name, parent, here, queue, served)
        yield from walk(queue.children, f"{here}.children", name, served)


def leaves(tree: Mapping[str, Queue]) -> list[str]:
    """The names of the queues that take pods, in the tree's order."""
    return [placed.name for placed in walk(tree) if placed.is_leaf]


def shard_mistakes(
    tree: Mapping[str, Queue], shards: Mapping[str, object], parent: str | None = None
) -> Iterator[tuple[str, str]]:
    """Queues that name a shard that there is not, or name one below the top: (path, sentence).

    `parent` is a queue of another tree below which this one hangs.
    """
    known = ", ".join(dict.fromkeys((DEFAULT_SHARD, *shards)))
    for placed in walk(tree, parent=parent):
        named, path = placed.queue.shard, f"{placed.path.removeprefix('.')}.shard"
        if named is None:
            continue
        if placed.parent is not None:
            yield path, "is for top-level queues: those below are of the same shard; drop it"
        elif named != DEFAULT_SHARD and named not in shards:
            yield path, f"names the shard {named}, which is not declared; write one of {known}"


def _number(value: float) -> float | int:
    """Whole numbers as integers, so that a plan reads `4` and not `4.0`."""
    return int(value) if float(value).is_integer() else value


def with_quotas(
    tree: Mapping[str, Queue],
    gpus: float | None = None,
    pools: Mapping[str, float] = MappingProxyType({}),
) -> QueueTree:
    """The tree with every quota filled in; `gpus` are the team's, where the tree is a team's, and
    `pools` those of each of its pools, by shard.
    """
    filled = {name: _filled(queue, frozenset()) for name, queue in tree.items()}
    if pools:
        for shard, most in pools.items():
            own = {name: it for name, it in tree.items() if (it.shard or DEFAULT_SHARD) == shard}
            _fill_up(filled, own, most)
    elif gpus is not None:
        _fill_up(filled, tree, gpus)
    return filled


def _fill_up(filled: QueueTree, top: Mapping[str, Queue], gpus: float) -> None:
    """Give the one of some top-level queues that says no quota what the others leave."""
    open_ = [name for name, queue in top.items() if _left_out(queue, _GPU)]
    if len(open_) != 1:
        return
    (name,) = open_
    others = [filled[other].gpu.quota for other in top if other != name]
    share = filled[name].gpu
    rest = 0.0 if UNLIMITED in others else gpus - sum(others)
    if share.quota != UNLIMITED:
        quota = _capped(max(rest, share.quota, 0.0), share)
        filled[name] = filled[name].model_copy(update={_GPU: _with_quota(share, quota)})


def _left_out(queue: Queue, resource: str) -> bool:
    """Whether the file says no quota of a resource."""
    return "quota" not in getattr(queue, resource).model_fields_set


def _filled(queue: Queue, bounded: frozenset[str]) -> Queue:
    """The queue and what is below it; `bounded` are resources of which a queue above has so much"""
    own = frozenset(r for r in _RESOURCES if _is_bounded(getattr(queue, r)))
    children = {name: _filled(child, bounded | own) for name, child in queue.children.items()}
    filled: dict[str, Any] = {"children": children} if children else {}
    for resource in _RESOURCES:
        share = getattr(queue, resource)
        if not _left_out(queue, resource):
            continue
        if children:
            quota = _sum(getattr(child, resource).quota for child in children.values())
        else:
            quota = 0.0 if resource == _GPU or resource in bounded else UNLIMITED
        filled[resource] = _with_quota(share, _capped(quota, share))
    return queue.model_copy(update=filled) if filled else queue


def _is_bounded(share: Share[float]) -> bool:
    said = "quota" in share.model_fields_set and share.quota != UNLIMITED
    return said or share.limit != UNLIMITED


def _sum(quotas: Iterable[float]) -> float:
    listed = list(quotas)
    return UNLIMITED if UNLIMITED in listed else sum(listed)


def _capped(quota: float, share: Share[float]) -> float:
    """A quota that nobody wrote is not above the limit that somebody did."""
    if share.limit == UNLIMITED:
        return quota
    return share.limit if quota == UNLIMITED else min(quota, share.limit)


def _with_quota(share: Share[float], quota: float) -> Share[float]:
    """The share with a quota; what the file says is still seen in `model_fields_set`."""
    values = {**dict(share), "quota": quota}
    return type(share).model_construct(_fields_set=set(share.model_fields_set), **values)
