"""The Queue objects of a tree of QueueArgs: quotas that are left out, and KAI's units.

Quotas that are left out:

- `cpu` and `memory` of a leaf: unlimited, or its own limit. Where a queue above it has a number,
  the leaf is guaranteed none and shares what that queue has.
- `gpu` of a leaf: none guaranteed; it shares what the others leave.
- A queue with children: the sum of theirs.
- `gpu` of the one top-level queue without a quota: the team's GPUs, less what the other top-level
  queues have. Of a team with several pools: the pool's, of the queues on it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

from kai_fleet.quantities import WORD, parse_quantity
from kai_fleet.releases.keys import DEFAULT_SHARD, NODE_POOL

UNLIMITED: Final = -1.0
_GPU: Final = "gpu"
Queues = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class _Share:
    """Of one resource, in KAI's units: millicores, 10⁶ bytes, devices. None: left out."""

    quota: float | None
    limit: float | None
    weight: float

    @property
    def bounded(self) -> bool:
        return self.quota not in (None, UNLIMITED) or self.limit not in (None, UNLIMITED)

    def filled(self, quota: float) -> "_Share":
        """With a quota that nobody wrote: not above the limit that somebody did."""
        if self.limit not in (None, UNLIMITED):
            quota = self.limit if quota == UNLIMITED else min(quota, self.limit)
        return replace(self, quota=quota)


@dataclass(frozen=True)
class _Placed:
    """A queue with its parent, the shard that serves it, its shares and those it was given."""

    name: str
    parent: str | None
    shard: str
    args: Mapping[str, Any]
    shares: dict[str, _Share]
    children: "list[_Placed]"


def walk(queues: Queues) -> Iterator[tuple[str, Any]]:
    """Every queue of a tree with its name, parents before their children."""
    for name, queue in queues.items():
        yield name, queue
        yield from walk(queue.get("children") or {})


def leaves(queues: Queues) -> list[str]:
    """The names of the queues that take pods, in the tree's order."""
    return [name for name, queue in walk(queues) if not queue.get("children")]


def labels_of(queues: Queues) -> dict[str, dict[str, str]]:
    """The labels of the Queue objects by name: by them a shard sees its queues; the default one
    sees what has none.
    """
    return {
        name: {NODE_POOL: top["shard"]}
        for top_name, top in queues.items()
        if top.get("shard", DEFAULT_SHARD) != DEFAULT_SHARD
        for name, _ in walk({top_name: top})
    }


def specs_of(
    queues: Queues,
    gpus: float | None = None,
    pools: Mapping[str, float] | None = None,
    parent: str | None = None,
) -> dict[str, dict[str, Any]]:
    """The `spec` of each Queue object by name, parents before their children.

    Args:
        queues: the top-level queues, as QueueArgs.
        gpus: the team's GPUs: the limit of top-level queues that have none, for each inner
            scheduler sees every GPU of its nodes.
        pools: in place of it, those of each shard.
        parent: a queue of another tree below which this one hangs.

    Raises:
        ValueError: an amount is none, or a name is there twice.
    """
    specs = dict[str, dict[str, Any]]()
    for name, spec in every_spec(queues, gpus, pools, parent):
        if name in specs:
            raise ValueError(f"queue {name} is there twice; names are unique in a cluster")
        specs[name] = spec
    return specs


def every_spec(
    queues: Queues,
    gpus: float | None = None,
    pools: Mapping[str, float] | None = None,
    parent: str | None = None,
) -> list[tuple[str, dict[str, Any]]]:
    """The same in the order of `walk`, of names that are there twice as well."""
    top = [_placed(name, queue, parent, None, frozenset()) for name, queue in queues.items()]
    for shard, most in (pools or {}).items():
        _fill_up([queue for queue in top if queue.shard == shard], most)
    if gpus is not None and not pools:
        _fill_up(top, gpus)
    for queue in top:
        own = gpus if not pools or queue.shard not in pools else pools[queue.shard]
        gpu = queue.shares[_GPU]
        if own is not None and gpu.limit is None:
            queue.shares[_GPU] = replace(gpu, limit=max(float(own), gpu.quota or 0.0))
    return [each for queue in top for each in _specs(queue)]


def _placed(
    name: str, args: Mapping[str, Any], parent: str | None, shard: str | None, bound: frozenset[str]
) -> _Placed:
    """A queue with every quota filled in; `bound` are resources of which a queue above has a
    number.
    """
    try:
        shares = {key: _share(args.get(key) or {}, read) for key, read in _READ.items()}
    except ValueError as why:
        raise ValueError(f"queue {name}: {why}") from None
    shard = shard or args.get("shard") or DEFAULT_SHARD
    below = bound | {key for key, share in shares.items() if share.bounded}
    children = [
        _placed(child, own, name, shard, below)
        for child, own in (args.get("children") or {}).items()
    ]
    for key, share in shares.items():
        if share.quota is not None:
            continue
        if children:
            quotas = [child.shares[key].quota or 0.0 for child in children]
            shares[key] = share.filled(UNLIMITED if UNLIMITED in quotas else sum(quotas))
        else:
            shares[key] = share.filled(0.0 if key == _GPU or key in bound else UNLIMITED)
    return _Placed(name, parent, shard, args, shares, children)


def _fill_up(top: list[_Placed], gpus: float) -> None:
    """Give the one of some top-level queues that has no quota what the others leave."""
    open_ = [queue for queue in top if (queue.args.get(_GPU) or {}).get("quota") is None]
    if len(open_) != 1:
        return
    (queue,) = open_
    share = queue.shares[_GPU]
    others = [other.shares[_GPU].quota or 0.0 for other in top if other is not queue]
    rest = 0.0 if UNLIMITED in others else gpus - sum(others)
    if share.quota != UNLIMITED:
        queue.shares[_GPU] = share.filled(max(rest, share.quota or 0.0, 0.0))


def _specs(queue: _Placed) -> Iterator[tuple[str, dict[str, Any]]]:
    resources = {
        key: {
            "quota": _number(share.quota or 0.0),
            # KAI reads an unset limit as 0, and then nothing ever runs (Q2).
            "limit": _number(UNLIMITED if share.limit is None else share.limit),
            "overQuotaWeight": _number(share.weight),
        }
        for key, share in queue.shares.items()
    }
    priority = queue.args.get("priority")
    optional = {
        "displayName": queue.args.get("display_name"),
        "parentQueue": queue.parent,
        "priority": None if priority is None else int(priority),
        "preemptMinRuntime": queue.args.get("preempt_min_runtime"),
        "reclaimMinRuntime": queue.args.get("reclaim_min_runtime"),
    }
    given = {key: value for key, value in optional.items() if value is not None}
    yield queue.name, {"resources": resources, **given}
    for child in queue.children:
        yield from _specs(child)


def _share(args: Mapping[str, Any], read: Callable[[Any], float]) -> _Share:
    quota, limit = args.get("quota"), args.get("limit")
    weight = args.get("weight")
    return _Share(
        None if quota is None else read(quota),
        None if limit is None else read(limit),
        1.0 if weight is None else float(weight),
    )


def _amount(per_unit: Decimal, digits: int) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        if value in (WORD, -1, "-1"):
            return UNLIMITED
        return float(round(parse_quantity(value) * per_unit, digits))

    return read


_READ: Final = {
    "cpu": _amount(Decimal(1000), 3),
    "memory": _amount(Decimal("1e-6"), 0),
    _GPU: _amount(Decimal(1), 6),
}


def _number(value: float) -> float | int:
    """Whole numbers as integers, so that a plan reads `4` and not `4.0`."""
    return int(value) if float(value).is_integer() else value
