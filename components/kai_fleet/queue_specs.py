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
from typing import Any, Final

from kai_fleet.inputs import without_none
from kai_fleet.quantities import WORD, parse_quantity
from kai_fleet.releases.keys import DEFAULT_SHARD, NODE_POOL
from kai_fleet.values import whole_numbers

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
        top = {
            name: (queues[name].get("gpu") or {}, specs[0][1]["resources"]["gpu"])
            for name, specs in trees.items()
            if shard in (None, shards[name])
        }
        if most is not None:
            _bound([*top.values()], float(most))
    return [(name, whole_numbers(spec)) for specs in trees.values() for name, spec in specs]


def _specs(
    name: str, args: Mapping[str, Any], parent: str | None, bound: frozenset[str]
) -> list[tuple[str, Spec]]:
    """A queue and its descendants, with default quotas filled in; `bound` are the resources with a
    quota or limit in a queue above.
    """
    try:
        shares = {key: _share(key, args.get(key) or {}) for key in _UNITS}
    except ValueError as why:
        raise ValueError(f"queue {name}: {why}") from None
    below = bound | {
        key
        for key, share in shares.items()
        if not {share["quota"], share["limit"]} <= {None, UNLIMITED}
    }
    children = [
        _specs(child, own, name, below) for child, own in (args.get("children") or {}).items()
    ]
    for key, share in shares.items():
        quotas = [specs[0][1]["resources"][key]["quota"] for specs in children]
        default = UNLIMITED if UNLIMITED in quotas else sum(quotas)
        if not children and key != "gpu" and key not in bound:
            default = UNLIMITED
        if share["quota"] is None:
            share["quota"] = _within(share["limit"], default)
    priority = args.get("priority")
    optional = {
        "displayName": args.get("display_name"),
        "parentQueue": parent,
        "priority": None if priority is None else int(priority),
        "preemptMinRuntime": args.get("preempt_min_runtime"),
        "reclaimMinRuntime": args.get("reclaim_min_runtime"),
    }
    own = (name, {"resources": shares, **without_none(optional)})
    return [own, *(spec for specs in children for spec in specs)]


def _share(resource: str, args: Mapping[str, Any]) -> Spec:
    """Share of one resource, in KAI's units; a quota that is not set is None."""
    per_unit, digits = _UNITS[resource]

    def amount(value: Any) -> float:
        if value in (WORD, -1, "-1"):
            return UNLIMITED
        return float(round(parse_quantity(value) * per_unit, digits))

    given = {"limit": UNLIMITED, "weight": 1.0, **without_none(args)}
    return {
        "quota": amount(given["quota"]) if "quota" in given else None,
        # KAI reads an unset limit as 0, and then nothing ever runs (Q2).
        "limit": amount(given["limit"]),
        "overQuotaWeight": float(given["weight"]),
    }


def _within(limit: float, quota: float) -> float:
    """A default quota, at most the limit where one is set."""
    if limit == UNLIMITED:
        return quota
    return limit if quota == UNLIMITED else min(quota, limit)


def _bound(top: Sequence[tuple[Mapping[str, Any], Spec]], gpus: float) -> None:
    """Give the only top-level queue without a GPU quota what the others leave of these GPUs, and
    limit to them those without a limit. Each is its GPU argument and its share.
    """
    unset = [share for args, share in top if args.get("quota") is None]
    if len(unset) == 1 and unset[0]["quota"] != UNLIMITED:
        others = [share["quota"] for _, share in top if share is not unset[0]]
        rest = 0.0 if UNLIMITED in others else gpus - sum(others)
        unset[0]["quota"] = _within(unset[0]["limit"], max(rest, unset[0]["quota"]))
    for args, share in top:
        if args.get("limit") is None:
            share["limit"] = max(gpus, share["quota"])
