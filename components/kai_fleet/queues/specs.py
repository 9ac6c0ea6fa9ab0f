"""Specs of KAI's Queue objects for a tree of QueueArgs.

Amounts are in KAI's units: CPU in millicores, memory in 10⁶ bytes, GPUs in devices. Quotas that
are left out:

- `cpu` and `memory` of a leaf: unlimited, or the leaf's limit; 0 below a queue with a quota or
  limit, whose share the leaf then uses.
- `gpu` of a leaf: 0; the leaf gets over-quota only.
- A queue with children: the sum of the children's quotas.
- `gpu` of the only top-level queue without a quota: the team's GPUs minus the quotas of the other
  top-level queues. With GPUs by shard (`pools`) this is computed for each shard.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import Any, TypeVar

from kai_fleet.declaring.inputs import has_output, without_none
from kai_fleet.queues.amounts import UNLIMITED, for_kai, means_unlimited
from kai_fleet.releases.keys import DEFAULT_SHARD, NODE_POOL
from kai_fleet.values import whole_numbers
from kai_usage.quantities import parse_quantity

# QueueArgs by name. Python and stack files may write a quota in place of a share.
Queue = Mapping[str, Any]
Queues = Mapping[str, Queue]
Spec = dict[str, Any]
Q = TypeVar("Q", bound=Mapping[str, Any])


@dataclass(frozen=True)
class _Unit:
    """KAI's units per core, byte or device, and how many decimal digits an amount keeps."""

    factor: Decimal
    digits: int


_UNITS = {
    "cpu": _Unit(Decimal(1000), digits=3),
    "memory": _Unit(Decimal("1e-6"), digits=0),
    "gpu": _Unit(Decimal(1), digits=6),
}


@dataclass
class _Share:
    """A queue's share of one resource, in KAI's units; UNLIMITED is infinity.

    `written_quota` is None if the arguments have none; `quota` is filled in later. A limit that the
    arguments lack is UNLIMITED, until `_share_out` bounds a top-level GPU share.
    """

    written_quota: float | None
    limit: float
    has_written_limit: bool
    weight: float | None
    quota: float = 0.0

    @property
    def is_bounded(self) -> bool:
        """Whether the arguments have a quota or a limit that is a number, 0 among them.

        To be read before `_share_out` sets a limit.
        """
        return self.written_quota not in (None, UNLIMITED) or self.limit != UNLIMITED

    def to_kai(self) -> dict[str, float]:
        """The share in a Queue's spec, with all three fields: -1 for UNLIMITED, 1 for no weight.

        KAI reads an unset limit as 0: nothing ever runs (Q2). The quota has to be filled in.
        """
        return {
            "quota": for_kai(self.quota),
            "limit": for_kai(self.limit),
            "overQuotaWeight": 1.0 if self.weight is None else float(self.weight),
        }


@dataclass
class _QueueNode:
    """A queue of the tree while its quotas and limits are computed.

    `parent` is None at the top, if no queue of another tree is above; `shares` are by resource.
    """

    name: str
    args: Queue
    parent: str | None
    shares: dict[str, _Share]
    children: list["_QueueNode"]

    def descendants(self) -> Iterator["_QueueNode"]:
        """This queue and all below it, parents before their children."""
        yield self
        for child in self.children:
            yield from child.descendants()

    def to_kai(self) -> Spec:
        """The `spec` of the Queue object; numbers that are whole are integers.

        Quotas have to be filled in. Optional fields without a value are left out.
        """
        resources = {resource: share.to_kai() for resource, share in self.shares.items()}
        optional = {
            "displayName": self.args.get("display_name"),
            "parentQueue": self.parent,
            "priority": self.args.get("priority"),
            "preemptMinRuntime": self.args.get("preempt_min_runtime"),
            "reclaimMinRuntime": self.args.get("reclaim_min_runtime"),
        }
        spec: Spec = whole_numbers({"resources": resources, **without_none(optional)})
        return spec


def walk(queues: Mapping[str, Q]) -> Iterator[tuple[str, Q]]:
    """Name and arguments of each queue of the tree, parents before their children."""
    for name, queue in queues.items():
        yield name, queue
        yield from walk(queue.get("children") or {})


def leaves(queues: Queues) -> list[str]:
    """Names of the queues without children, in the tree's order."""
    return [name for name, queue in walk(queues) if not queue.get("children")]


def labels_of(queues: Queues) -> dict[str, dict[str, str]]:
    """Labels of the Queue objects, by the queue's name, for those that need one.

    A shard selects its queues by the label `kai.scheduler/node-pool`; the default shard takes the
    queues without it. A top-level queue's shard holds for all queues below, whose own is not read.
    """
    labels = {}
    for top_name, top_queue in queues.items():
        shard = top_queue.get("shard") or DEFAULT_SHARD
        if shard == DEFAULT_SHARD:
            continue
        for name, _ in walk({top_name: top_queue}):
            labels[name] = {NODE_POOL: shard}
    return labels


def mistakes(queues: Queues) -> Iterator[str]:
    """Sentences about queue names that occur twice, and about invalid quantities.

    Outputs are not checked, because their values are not known yet, and neither are weights.
    """
    seen = set[str]()
    for name, queue in walk(queues):
        if name in seen:
            yield f"queue {name} is there twice; names are unique in a cluster"
        seen.add(name)
        for resource in _UNITS:
            share = share_of(queue, resource)
            for key in ("quota", "limit"):
                amount = share.get(key)
                if has_output(amount):
                    continue
                try:
                    _amount(resource, amount)
                except ValueError as why:
                    yield f"queue {name}: {resource}.{key}: {why}"


def share_of(queue: Queue, resource: str) -> Mapping[str, Any]:
    """The queue's share of a resource; a plain value in place of a mapping is its quota.

    {} if the queue has none.
    """
    share = queue.get(resource)
    if share is None:
        return {}
    return share if isinstance(share, Mapping) else {"quota": share}


def named_specs(
    queues: Queues,
    gpus: float | None = None,
    pools: Mapping[str, float] | None = None,
    parent: str | None = None,
) -> list[tuple[str, Spec]]:
    """Name and `spec` of each Queue object, in the order of `walk`. Names may occur twice.

    Args:
        queues: the top-level queues by name, as QueueArgs without Outputs.
        gpus: the team's GPUs, the limit of top-level queues without one: a scheduler inside a
            vCluster sees every GPU of its nodes. None: unlimited.
        pools: in place of `gpus`, the GPUs of each shard. A shard that is not named has `gpus`.
            None and {}: `gpus` are those of all shards together.
        parent: the queue of another tree that is the parent of the top-level queues; None: none.

    Raises:
        ValueError: an invalid quantity, or a weight that is no number.
    """
    trees = [_read(name, queue, parent) for name, queue in queues.items()]
    for tree in trees:
        _fill_in_quotas(tree, bounded=frozenset())
    for shard_trees, shard_gpus in _trees_by_shard(trees, gpus, pools or {}):
        if shard_gpus is not None:
            _share_out([tree.shares["gpu"] for tree in shard_trees], float(shard_gpus))
    nodes = chain.from_iterable(tree.descendants() for tree in trees)
    return [(node.name, node.to_kai()) for node in nodes]


def _read(name: str, queue: Queue, parent: str | None) -> _QueueNode:
    """The queue and its descendants, with quotas and limits as they are written.

    Raises:
        ValueError: an invalid quantity, with the queue's name.
    """
    try:
        shares = {resource: _read_share(queue, resource) for resource in _UNITS}
    except ValueError as why:
        raise ValueError(f"queue {name}: {why}") from None
    children = queue.get("children") or {}
    below = [_read(child_name, child, name) for child_name, child in children.items()]
    return _QueueNode(name, queue, parent, shares, below)


def _read_share(queue: Queue, resource: str) -> _Share:
    """The share of a resource as it is written. Raises ValueError for an invalid quantity."""
    share = share_of(queue, resource)
    quota = _amount(resource, share.get("quota"))
    limit = _amount(resource, share.get("limit"))
    return _Share(
        written_quota=quota,
        limit=UNLIMITED if limit is None else limit,
        has_written_limit=limit is not None,
        weight=share.get("weight"),
    )


def _amount(resource: str, quantity: object) -> float | None:
    """The quantity in KAI's units; None if there is none.

    UNLIMITED stands for `unlimited`, -1 and UNLIMITED itself. A number is rounded: CPU to a
    thousandth of a millicore, memory to 10^6 bytes, GPUs to a millionth.

    Raises:
        ValueError: `parse_quantity` refuses it.
    """
    if quantity is None:
        return None
    if quantity == UNLIMITED or means_unlimited(quantity):
        return UNLIMITED
    unit = _UNITS[resource]
    return float(round(parse_quantity(quantity) * unit.factor, unit.digits))


def _fill_in_quotas(queue: _QueueNode, bounded: frozenset[str]) -> None:
    """Fill in the quotas of the queue and its descendants: the written one, else the default.

    A default, as in this module's docstring, is at most the share's limit. The rest of the team's
    GPUs comes later, from `_share_out`.

    `bounded` has the resources with a quota or limit in a queue above.
    """
    bounded_here = {resource for resource, share in queue.shares.items() if share.is_bounded}
    for child in queue.children:
        _fill_in_quotas(child, bounded | bounded_here)
    for resource, share in queue.shares.items():
        if share.written_quota is not None:
            share.quota = share.written_quota
            continue
        if queue.children:
            default = sum(child.shares[resource].quota for child in queue.children)
        elif resource == "gpu" or resource in bounded:
            default = 0.0
        else:
            default = UNLIMITED
        share.quota = min(default, share.limit)


def _trees_by_shard(
    trees: Sequence[_QueueNode], gpus: float | None, pools: Mapping[str, float]
) -> list[tuple[list[_QueueNode], float | None]]:
    """The top-level queues of each shard with its GPUs; without `pools` all of them together.

    A shard that `pools` lacks has `gpus`. The GPUs are None if nothing bounds them.
    """
    if not pools:
        return [(list(trees), gpus)]
    by_shard = dict[str, list[_QueueNode]]()
    for tree in trees:
        shard = tree.args.get("shard") or DEFAULT_SHARD
        by_shard.setdefault(shard, []).append(tree)
    return [(shard_trees, pools.get(shard, gpus)) for shard, shard_trees in by_shard.items()]


def _share_out(shares: Sequence[_Share], gpus: float) -> None:
    """Bound top-level GPU shares to these GPUs.

    Quotas have to be filled in. The only share without a written quota gets the rest as its quota,
    if that is more, up to its limit. A share without a written limit is limited to the GPUs, or to
    its quota if that is larger; a written limit stays, also above the GPUs.
    """
    open_shares = [share for share in shares if share.written_quota is None]
    if len(open_shares) == 1:
        share = open_shares[0]
        rest = gpus - sum(other.quota for other in shares if other is not share)
        share.quota = min(max(rest, share.quota), share.limit)
    for share in shares:
        if share.has_written_limit:
            continue
        finite_quota = share.quota if share.quota < UNLIMITED else 0.0
        share.limit = max(gpus, finite_quota)
