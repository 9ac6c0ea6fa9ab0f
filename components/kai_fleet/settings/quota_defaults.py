"""Quotas that a stack file leaves out.

- `cpu` and `memory` of a leaf: unlimited, or its own limit. Where a queue above it has a number,
  the leaf is guaranteed none and shares what that queue has.
- `gpu` of a leaf: none guaranteed; it shares what the others leave.
- A queue with children: the sum of theirs.
- `gpu` of the one top-level queue of a team that says none: the team's GPUs, less what the other
  top-level queues have. Of a team with several pools: the pool's, of the queues on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kai_fleet.settings.quantities import UNLIMITED
from kubectl_fleet.releases.keys import DEFAULT_SHARD

if TYPE_CHECKING:
    from kai_fleet.settings.sections.queues import Queue, QueueTree, Share

_GPU = "gpu"
_RESOURCES = ("cpu", "memory", _GPU)


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
    open_ = [name for name, queue in top.items() if left_out(queue, _GPU)]
    if len(open_) != 1:
        return
    (name,) = open_
    others = [filled[other].gpu.quota for other in top if other != name]
    share = filled[name].gpu
    rest = 0.0 if UNLIMITED in others else gpus - sum(others)
    if share.quota != UNLIMITED:
        quota = _capped(max(rest, share.quota, 0.0), share)
        filled[name] = filled[name].model_copy(update={_GPU: _with_quota(share, quota)})


def left_out(queue: Queue, resource: str) -> bool:
    """Whether the file says no quota of a resource."""
    return "quota" not in getattr(queue, resource).model_fields_set


def _filled(queue: Queue, bounded: frozenset[str]) -> Queue:
    """The queue and what is below it; `bounded` are resources of which a queue above has so much"""
    own = frozenset(r for r in _RESOURCES if _is_bounded(getattr(queue, r)))
    children = {name: _filled(child, bounded | own) for name, child in queue.children.items()}
    filled: dict[str, Any] = {"children": children} if children else {}
    for resource in _RESOURCES:
        share = getattr(queue, resource)
        if not left_out(queue, resource):
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
