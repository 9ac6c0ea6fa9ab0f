"""Queue specs for a tree of QueueArgs, in KAI's units: millicores, 10^6 bytes, GPUs.

Defaults of quotas:

- `cpu` and `memory` of a leaf: unlimited, or its own limit; 0 below a queue with a quota or limit,
  whose share it then uses.
- `gpu` of a leaf: 0; it gets over-quota only.
- A queue with children: the sum of theirs.
- `gpu` of the only top-level queue without a quota: the team's GPUs minus the quotas of the other
  top-level queues. For a team with several pools this is done for each pool.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from kai_fleet.inputs import without_none
from kai_fleet.quantities import WORD, parse_quantity
from kai_fleet.releases.keys import DEFAULT_SHARD, NODE_POOL

UNLIMITED: Final = -1.0
_GPU: Final = "gpu"
# KAI's units per core, byte and device, and the decimal digits that are kept.
_UNITS: Final = {"cpu": (Decimal(1000), 3), "memory": (Decimal("1e-6"), 0), _GPU: (Decimal(1), 6)}
Queues = Mapping[str, Mapping[str, Any]]


def walk(queues: Queues) -> Iterator[tuple[str, Any]]:
    """Name and args of every queue of a tree, parents before their children."""
    for name, queue in queues.items():
        yield name, queue
        yield from walk(queue.get("children") or {})


def leaves(queues: Queues) -> list[str]:
    """Names of the queues without children, in the tree's order."""
    return [name for name, queue in walk(queues) if not queue.get("children")]


def labels_of(queues: Queues) -> dict[str, dict[str, str]]:
    """Labels of the Queue objects by name: a shard selects its queues by the label
    `kai.scheduler/node-pool`, the default one those without it.
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
        gpus: the team's GPUs, the limit of top-level queues without one: a scheduler inside a
            vCluster sees every GPU of its nodes.
        pools: in place of `gpus`, the GPUs of each shard.
        parent: the queue of another tree that is the parent of the top-level ones.

    Raises:
        ValueError: an invalid quantity, or two queues with one name.
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
    """The same as pairs in the order of `walk`, duplicate names included."""
    top = [_placed(name, queue, parent, None, frozenset()) for name, queue in queues.items()]
    if gpus is not None and not pools:
        _fill_up(top, gpus)
    for shard, most in (pools or {}).items():
        _fill_up([queue for queue in top if queue.shard == shard], most)
    for queue in top:
        of_shard, gpu = (pools or {}).get(queue.shard, gpus), queue.shares[_GPU]
        if of_shard is not None and gpu.limit is None:
            gpu.limit = max(float(of_shard), gpu.quota or 0.0)
    return [named_spec for queue in top for named_spec in _specs(queue)]


@dataclass
class _Share:
    """Share of one resource, in KAI's units; None where it is not set."""

    quota: float | None
    limit: float | None
    weight: float

    def fill(self, quota: float) -> None:
        """Set a default quota, at most the limit where one is set."""
        if self.limit not in (None, UNLIMITED):
            quota = self.limit if quota == UNLIMITED else min(quota, self.limit)
        self.quota = quota


@dataclass(frozen=True)
class _Placed:
    """A queue with its parent, the shard that schedules it, and its shares."""

    name: str
    parent: str | None
    shard: str
    args: Mapping[str, Any]
    shares: Mapping[str, _Share]
    children: "list[_Placed]"


def _placed(
    name: str, args: Mapping[str, Any], parent: str | None, shard: str | None, bound: frozenset[str]
) -> _Placed:
    """A queue with default quotas filled in; `bound` are the resources with a quota or limit in a
    queue above.
    """
    try:
        shares = {key: _share(key, args.get(key) or {}) for key in _UNITS}
    except ValueError as why:
        raise ValueError(f"queue {name}: {why}") from None
    shard = shard or args.get("shard") or DEFAULT_SHARD
    below = bound | {
        key for key, share in shares.items() if not {share.quota, share.limit} <= {None, UNLIMITED}
    }
    children = [
        _placed(child, own, name, shard, below)
        for child, own in (args.get("children") or {}).items()
    ]
    for key, share in shares.items():
        quotas = [child.shares[key].quota or 0.0 for child in children]
        if share.quota is not None:
            continue
        if children:
            share.fill(UNLIMITED if UNLIMITED in quotas else sum(quotas))
        else:
            share.fill(0.0 if key == _GPU or key in bound else UNLIMITED)
    return _Placed(name, parent, shard, args, shares, children)


def _share(resource: str, args: Mapping[str, Any]) -> _Share:
    quota, limit = (_amount(resource, args.get(key)) for key in ("quota", "limit"))
    weight = args.get("weight")
    return _Share(quota, limit, 1.0 if weight is None else float(weight))


def _amount(resource: str, value: Any) -> float | None:
    if value is None or value in (WORD, -1, "-1"):
        return None if value is None else UNLIMITED
    per_unit, digits = _UNITS[resource]
    return float(round(parse_quantity(value) * per_unit, digits))


def _fill_up(top: Sequence[_Placed], gpus: float) -> None:
    """Set the GPU quota of the only top-level queue without one: what the others leave."""
    unset = [queue for queue in top if (queue.args.get(_GPU) or {}).get("quota") is None]
    if len(unset) != 1 or unset[0].shares[_GPU].quota == UNLIMITED:
        return
    share = unset[0].shares[_GPU]
    others = [queue.shares[_GPU].quota or 0.0 for queue in top if queue is not unset[0]]
    rest = 0.0 if UNLIMITED in others else gpus - sum(others)
    share.fill(max(rest, share.quota or 0.0, 0.0))


def _specs(queue: _Placed) -> Iterator[tuple[str, dict[str, Any]]]:
    args, priority = queue.args, queue.args.get("priority")
    resources = {
        key: {
            "quota": _number(share.quota or 0.0),
            # KAI reads an unset limit as 0, and then nothing ever runs (Q2).
            "limit": _number(UNLIMITED if share.limit is None else share.limit),
            "overQuotaWeight": _number(share.weight),
        }
        for key, share in queue.shares.items()
    }
    optional = {
        "displayName": args.get("display_name"),
        "parentQueue": queue.parent,
        "priority": None if priority is None else int(priority),
        "preemptMinRuntime": args.get("preempt_min_runtime"),
        "reclaimMinRuntime": args.get("reclaim_min_runtime"),
    }
    yield queue.name, {"resources": resources, **without_none(optional)}
    for child in queue.children:
        yield from _specs(child)


def _number(value: float) -> float | int:
    """Whole numbers as integers, so that a plan reads `4` and not `4.0`."""
    return int(value) if float(value).is_integer() else value
