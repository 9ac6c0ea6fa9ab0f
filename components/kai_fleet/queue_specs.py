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
from decimal import Decimal
from math import inf
from typing import Any, Final

from kai_fleet.inputs import has_output, without_none
from kai_fleet.releases.keys import DEFAULT_SHARD, NODE_POOL
from kai_fleet.values import WORD, parse_quantity, whole_numbers

UNLIMITED: Final = -1.0
# KAI's units per core, byte and device, and the decimal digits that are kept.
_UNITS: Final = {"cpu": (Decimal(1000), 3), "memory": (Decimal("1e-6"), 0), "gpu": (Decimal(1), 6)}
Queues = Mapping[str, Mapping[str, Any]]
Spec = dict[str, Any]


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


def specs_of(queues: Queues, *given: Any, **named: Any) -> dict[str, Spec]:
    """`every_spec` by name. Raises ValueError for two queues with one name, too."""
    specs = dict[str, Spec]()
    for name, spec in every_spec(queues, *given, **named):
        if name in specs:
            raise ValueError(f"queue {name} is there twice; names are unique in a cluster")
        specs[name] = spec
    return specs


def mistakes(queues: Queues) -> Iterator[str]:
    """Names that are there twice, and quantities that are none and known by now."""
    seen = set[str]()
    for name, queue in walk(queues):
        if name in seen:
            yield f"queue {name} is there twice; names are unique in a cluster"
        seen.add(name)
        for resource in _UNITS:
            share = share_of(queue, resource)
            for key in ("quota", "limit"):
                try:
                    if not has_output(share.get(key)):
                        _share(resource, {key: share.get(key)})
                except ValueError as why:
                    yield f"queue {name}: {resource}.{key}: {why}"


def share_of(queue: Mapping[str, Any], resource: str) -> Mapping[str, Any]:
    """A queue's share of a resource; a plain value in place of one is its quota."""
    share = queue.get(resource)
    if share is None:
        return {}
    return share if isinstance(share, Mapping) else {"quota": share}


def every_spec(
    queues: Queues,
    gpus: float | None = None,
    pools: Mapping[str, float] | None = None,
    parent: str | None = None,
) -> list[tuple[str, Spec]]:
    """Name and `spec` of each Queue object, in the order of `walk`.

    Args:
        queues: the top-level queues, as QueueArgs.
        gpus: the team's GPUs, the limit of top-level queues without one: a scheduler inside a
            vCluster sees every GPU of its nodes.
        pools: in place of `gpus`, the GPUs of each shard.
        parent: the queue of another tree that is the parent of the top-level ones.

    Raises:
        ValueError: an invalid quantity.
    """
    trees = {name: _specs(name, queue, parent, frozenset()) for name, queue in queues.items()}
    shards = {name: queue.get("shard") or DEFAULT_SHARD for name, queue in queues.items()}
    by_shard = {**dict.fromkeys(shards.values(), gpus), **pools} if pools else {None: gpus}
    for shard, most in by_shard.items():
        if most is not None:
            top = [name for name in trees if shard in (None, shards[name])]
            shares = [trees[name][0][1]["resources"]["gpu"] for name in top]
            _bound([share_of(queues[name], "gpu") for name in top], shares, float(most))
    every = [named_spec for specs in trees.values() for named_spec in specs]
    for share in (share for _, spec in every for share in spec["resources"].values()):
        # KAI reads an unset limit as 0, and then nothing ever runs (Q2).
        share.update((key, UNLIMITED) for key, amount in share.items() if amount == inf)
    return [(name, whole_numbers(spec)) for name, spec in every]


def _specs(
    name: str, args: Mapping[str, Any], parent: str | None, bound: frozenset[str]
) -> list[tuple[str, Spec]]:
    """A queue and its descendants, with default quotas filled in; `bound` are the resources with a
    quota or limit in a queue above.
    """
    try:
        shares = {key: _share(key, share_of(args, key)) for key in _UNITS}
    except ValueError as why:
        raise ValueError(f"queue {name}: {why}") from None
    finite = {key for key, share in shares.items() if not {*share.values()} <= {None, inf}}
    children = [
        _specs(child, own, name, bound | finite)
        for child, own in (args.get("children") or {}).items()
    ]
    for key, share in shares.items():
        default = 0.0 if key == "gpu" or key in bound else inf
        if children:
            default = sum(specs[0][1]["resources"][key]["quota"] for specs in children)
        if share["quota"] is None:
            share["quota"] = min(default, share["limit"])
        weight = share_of(args, key).get("weight")
        share["overQuotaWeight"] = 1.0 if weight is None else float(weight)
    optional = {
        "displayName": args.get("display_name"),
        "parentQueue": parent,
        "priority": args.get("priority"),
        "preemptMinRuntime": args.get("preempt_min_runtime"),
        "reclaimMinRuntime": args.get("reclaim_min_runtime"),
    }
    own = (name, {"resources": shares, **without_none(optional)})
    return [own, *(named_spec for specs in children for named_spec in specs)]


def _share(resource: str, args: Mapping[str, Any]) -> Spec:
    """Quota and limit of one resource, in KAI's units; a quota that is not set is None."""
    per_unit, digits = _UNITS[resource]

    def amount(value: Any, unset: float | None) -> float | None:
        if value is None:
            return unset
        unlimited = value in (WORD, -1, "-1")
        return inf if unlimited else float(round(parse_quantity(value) * per_unit, digits))

    return {"quota": amount(args.get("quota"), None), "limit": amount(args.get("limit"), inf)}


def _bound(args: Sequence[Mapping[str, Any]], shares: Sequence[Spec], gpus: float) -> None:
    """Give the only top-level queue without a GPU quota what the others leave of these GPUs, and
    limit to them those without a limit.
    """
    unset = [share for own, share in zip(args, shares, strict=True) if own.get("quota") is None]
    if len(unset) == 1:
        rest = gpus - sum(share["quota"] for share in shares if share is not unset[0])
        unset[0]["quota"] = min(max(rest, unset[0]["quota"]), unset[0]["limit"])
    for own, share in zip(args, shares, strict=True):
        if own.get("limit") is None:
            share["limit"] = max(gpus, share["quota"] if share["quota"] < inf else 0.0)
