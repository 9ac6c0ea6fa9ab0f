"""Rules about queues: one tree, of levels, durations and amounts that KAI takes."""

from collections.abc import Iterable
from functools import cache, reduce
from itertools import product
from operator import add
from typing import Any, Final

from kai_fleet import releases
from kai_fleet.releases import queue_bounds
from kai_fleet.releases.keys import DEFAULT_SHARD
from kai_fleet.values import UNKNOWN, get, number
from kai_fleet.wording import listed, nearest_first
from kai_fleet_policies.model.cluster import Cluster
from kai_fleet_policies.model.queues import (
    RESOURCES,
    SLACK,
    UNLIMITED,
    DeclaredQueue,
    QueueShare,
    Resource,
    exact,
    written,
)
from kai_fleet_policies.rules.rule import (
    Findings,
    Place,
    UnknownValueError,
    advisory,
    called,
    each_queue,
    known,
    mandatory,
    of_cluster,
    of_queue,
    row,
)

EXISTING_QUEUES: Final = "existingQueues"
CHART_PARENT: Final = "default-parent-queue"  # which KAI's chart makes from v0.10


@mandatory("queue-tree", "high", each_queue)
def queue_tree(cluster: Cluster, queue: DeclaredQueue, place: Place) -> Findings:
    """Every queue hangs in one tree: unique names, existing parents, no cycles.

    KAI checks none of this: it drops a queue whose parent is absent, or that is in a cycle,
    with everything below it, and says nothing.
    """
    tree, above, parent = cluster.tree, place.at("parent"), queue.parent
    name = known(queue.name, "the name of the queue is known")
    chain = [name, *(over.name for over in tree.ancestors(queue))]
    if queue in tree.twice:
        yield place.refuse(*row("queue-twice", name=name))
    elif tree.by_name[chain[-1]].parent == name:
        if name == min(chain):  # once for all that are in it
            cycle = " → ".join((*chain, name))
            yield above.refuse(*row("queue-cycle", cycle=cycle, names=listed(chain)))
    elif known(parent, "the name of its parent is known") and parent not in tree.by_name:
        if tree.unknown_names:
            raise UnknownValueError("all queue names are known")
        others = listed(nearest_first(str(parent), [one for one in tree.by_name if one != name]))
        names = {"parent": parent, "cluster": cluster.name}
        if _made_elsewhere(parent, cluster):
            yield above.undecided(row("queue-parent-elsewhere", **names)[0])
        else:
            # Of a program without a KAI some queues may be in another one.
            partly = not cluster.declared and not cluster.kai
            which = "queue-parent-of-program" if partly else "queue-parent-absent"
            names["write"] = f"write {others}, or " if others else ""
            yield above.refuse(*row(which, **names))


def _made_elsewhere(parent: str | None, cluster: Cluster) -> bool:
    """Whether what makes the parent may stand in another program.

    KAI's chart makes one parent, unless its values switch that off. Others are elsewhere if no
    queue here is the top of a tree; beside a top one, an absent parent is taken for a slip.
    """
    if cluster.declared:
        return False
    if cluster.kai:
        unclear = (UNKNOWN in (kai.version or UNKNOWN, kai.values) for kai in cluster.kai)
        return parent == CHART_PARENT and any(unclear)
    return parent == CHART_PARENT or all(queue.parent is not None for queue in cluster.queues)


@mandatory("queue-depth", "high", each_queue)
def queue_depth(cluster: Cluster, queue: DeclaredQueue, place: Place) -> Findings:
    """No more and no fewer levels of queues than the KAI version can schedule from.

    Through v0.12 KAI schedules only from the second level: never from the top, never deeper.
    """
    tree, level = cluster.tree, cluster.tree.levels.get(queue.name)
    if level is None or tree.by_name[queue.name] is not queue:
        return
    lone = level == 1 and tree.is_leaf(queue.name) and not tree.unknown_parents
    for kai in cluster.kai if lone or level > 2 else ():
        version = known(kai.version, "the KAI version is known: through v0.12 only two levels work")
        release = releases.KAI.get(str(version))
        if release is None or release.max_queue_depth is None:
            continue
        if lone:
            yield place.refuse(*row("queue-lone", version=version, name=queue.name))
        elif level == release.max_queue_depth + 1:
            yield place.refuse(*row("queue-deep", level=level, version=version, levels=level - 1))


@mandatory("queue-duration", "high", each_queue)
def queue_duration(cluster: Cluster, queue: DeclaredQueue, place: Place) -> Findings:
    """Minimum run times are durations that Go parses.

    KAI takes Go durations, which know no days and no weeks: 1d does not parse. One that does not
    parse, or does not fit into 64 bits of nanoseconds, stops its scheduler for all queues.
    """
    for key in queue_bounds.DURATIONS:
        value = known(get(queue.spec, key), f"the value of {key} is known")
        if value is not None and not queue_bounds.is_duration(value):
            yield place.at(key).refuse(*row("queue-duration", key=key, value=value))


@mandatory("queue-bounds", "high", each_queue)
def queue_bounded(cluster: Cluster, queue: DeclaredQueue, place: Place) -> Findings:
    """Priorities, quotas, limits and weights are amounts that a cluster can have.

    KAI checks none: a negative amount but -1, or one beyond any cluster, upsets the shares of all
    queues beside it.
    """
    priority = known(get(queue.spec, "priority"), "its priority is known")
    if priority is not None and not _within(priority, queue_bounds.PRIORITY):
        values = {"key": "priority", "value": priority, "most": queue_bounds.PRIORITY}
        yield place.at("priority").refuse(*row("queue-bounds", **values, unlimited=""))
    for resource in RESOURCES:
        share = known(get(queue.spec, "resources", resource), f"its share of {resource} is known")
        for key in ("quota", "limit", "overQuotaWeight"):
            amount = known(get(share, key), f"its {resource} {key} is known")
            is_weight = key == "overQuotaWeight"
            most = queue_bounds.WEIGHT if is_weight else queue_bounds.MOST[resource]
            is_unlimited = amount == UNLIMITED and not is_weight
            if amount is None or is_unlimited or _within(amount, most):
                continue
            values = {"key": f"{resource} {key}", "value": amount, "most": most}
            values["unlimited"] = "" if is_weight else ", or -1 for unlimited"
            key = "weight" if is_weight else key
            yield place.at(resource, key).refuse(*row("queue-bounds", **values))


def _within(amount: Any, most: int) -> bool:
    """Whether it is a number from 0 to `most`."""
    read = number(amount)
    return read is not None and 0 <= read <= most


@mandatory("queue-cluster-scoped", "medium", each_queue)
def queue_cluster_scoped(cluster: Cluster, queue: DeclaredQueue, place: Place) -> Findings:
    """Queues belong to no namespace.

    Queue is a cluster-scoped kind: a namespace on it does nothing but promise a separation that
    is not there, and two queues of one name in two namespaces are one queue.
    """
    if namespace := known(queue.namespace, "its metadata.namespace is known"):
        yield place.refuse(*row("queue-namespace", namespace=namespace))


@advisory("queue-zero-quota", "low", each_queue)
def queue_zero_quota(cluster: Cluster, queue: DeclaredQueue, place: Place) -> Findings:
    """A queue with no quota keeps pods of Deployments Pending.

    KAI treats pods of Deployments as non-preemptible, and those may use only guaranteed
    resources of their queue and of every queue above it: with a quota of 0 they stay Pending.
    """
    shares = known(queue.shares, "its resources are known")
    # Without a limit of its own nothing runs at all, which queue-quota reports.
    zero = [key for key, share in shares.items() if share.quota == 0 and share.limit]
    if zero:
        yield place.warn(*row("queue-zero-quota", resources=listed(zero, "and")))


# What pods ask for of a GPU.
_MORE: Final = 1e-6  # the last digit that is kept of a GPU
_COMMON: Final = (0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9)


@cache
def _unmet(bound: Any) -> tuple[float, ...]:
    """Whole GPUs and up to three fractions that are `bound` together, and more as floats."""
    whole = sorted({0.0, bound // 1}) if isinstance(bound, float) and bound % 1 else ()
    for pods in (pods for size in (2, 3) for pods in product(whole, *[_COMMON] * size)):
        if bound < reduce(add, pods) < bound + _MORE / 2:  # `sum` is more exact than KAI
            return tuple(filter(None, pods))
    return ()


@advisory("queue-fraction", "low", each_queue)
def queue_fraction(cluster: Cluster, queue: DeclaredQueue, place: Place) -> Findings:
    """A fractional quota or limit of GPUs takes the fractions that are just as much.

    KAI adds and compares floats, in which 0.1 and 0.2 are more than 0.3: the last of such pods
    stays Pending, by a limit always, by a quota where its priority class is not preemptible.
    """
    share = _share(queue, "gpu")
    below = [_share(child, "gpu").quota for child in cluster.tree.children.get(queue.name, ())]
    bounds = {} if any(map(_unmet, below)) else {share.quota: "quota"}
    for bound, key in ({share.limit: "limit"} | bounds).items():
        if pods := _unmet(bound):
            asked = listed([*map(exact, pods)], "and")
            values = {"has": exact(bound), "more": exact(bound + _MORE), "pods": asked}
            yield place.at("gpu", key).warn(*row("queue-fraction", key=key, **values))


_NOTHING: Final = QueueShare(quota=0.0, limit=0.0, weight=0.0)
_UNKNOWN: Final = QueueShare(UNKNOWN, UNKNOWN, UNKNOWN)


def _amounts(cluster: Cluster) -> Iterable[tuple[tuple[Any, Any], Place]]:
    """Each resource of each queue; and the GPUs of the team, or of each of its pools."""
    for queue, place in each_queue(cluster):
        yield from (((queue, resource), place.at(resource)) for resource in RESOURCES)
    pools = cluster.pools.items() or ([] if cluster.gpus is None else [("", cluster.gpus)])
    yield from ((pool, of_cluster("queues", cluster).at("queues")) for pool in pools)


@mandatory("queue-quota", "high", _amounts)
def queue_quota(cluster: Cluster, item: tuple[Any, Any], place: Place) -> Findings:
    """Quotas and limits of a queue fit each other, its parent's and the team's GPUs.

    KAI checks no sums: a tree that promises more than its parent, or a team's scheduler that
    promises more GPUs than the team has, leaves pods Pending or takes other teams' share.
    A limit that is left out is 0: nothing ever runs.
    """
    if not isinstance(item[0], DeclaredQueue):
        yield from _within_team(cluster, *item, place)
        return
    queue, resource = item
    share = known(queue.shares, "its resources are known").get(resource)
    children = cluster.tree.children.get(queue.name)
    if children and queue not in cluster.tree.twice:
        bound = (share or _NOTHING).quota
        yield from _sum(children, resource, bound, place.at("quota"), "its quota")
    if share is not None:
        yield from _limits(cluster, queue, resource, place.at("limit"))
    elif resource != "gpu":  # without a share of GPUs it is a queue for CPU pods
        yield place.refuse(*row("queue-no-share", resource=resource))


def _limits(cluster: Cluster, queue: DeclaredQueue, resource: Resource, place: Place) -> Findings:
    """The limit of a queue against its quota, and against the nearest one above it."""
    share = _share(queue, resource)
    quota, limit = known(share.quota, f"its {resource} quota is known"), share.limit
    if known(limit, f"its {resource} limit is known") is None:
        yield place.refuse(*row("queue-no-limit", resource=resource))
        return
    of_team = (cluster.gpus, cluster.pools.get(queue.shard or DEFAULT_SHARD))
    q, bound = (written(resource, amount, queue.path) for amount in (quota, limit))
    if resource == "gpu" and queue.parent is None and limit in of_team:
        pass  # it may be the limit of the team, not written here: the sum below says it better
    elif _above(quota, limit):
        yield place.refuse(*row("queue-limit-below", resource=resource, limit=bound, quota=q))
    # A queue that is unlimited itself leaves the limit above it to hold.
    chain = [(above, _share(above, resource).limit) for above in cluster.tree.ancestors(queue)]
    nearest = ((above, most) for above, most in chain if most not in (None, UNLIMITED))
    above, most = next(nearest, (queue, UNKNOWN))
    if most is not UNKNOWN and limit != UNLIMITED and _above(limit, most):
        low, name = written(resource, most, queue.path), called(above.name)
        values = {"resource": resource, "limit": bound, "most": low, "above": name}
        yield place.refuse(*row("queue-limit-above", **values))


def _share(queue: DeclaredQueue, resource: Resource) -> Any:
    """Its share of a resource, all zero where it has none."""
    return _UNKNOWN if queue.shares is UNKNOWN else queue.shares.get(resource, _NOTHING)


def _within_team(cluster: Cluster, pool: str, gpus: float, place: Place) -> Findings:
    """The top-level queues of a team, or of one of its pools, against its GPUs there."""
    known(gpus, "the team's number of GPUs is known")
    theirs = f"the team's GPUs on pool {pool}" if pool else "the team's GPUs"
    top = [queue for queue in cluster.queues if queue.parent is None]
    top = [queue for queue in top if pool in ("", queue.shard or DEFAULT_SHARD)]
    yield from _sum(top, "gpu", gpus, place, theirs)
    for queue in top:
        share = _share(queue, "gpu")
        # One that is the quota may not be written at all: the sum of the quotas says it better.
        if share.limit in (None, UNKNOWN, share.quota) or not _above(share.limit, gpus):
            continue
        has, most = (written("gpu", amount, queue.path) for amount in (share.limit, gpus))
        yield of_queue(queue, cluster, "gpu", "limit").refuse(
            *row("queue-limit-of-team", limit=has, bound=theirs, most=most)
        )


def _sum(
    queues: Iterable[DeclaredQueue], resource: Resource, bound: float, place: Place, what: str
) -> Findings:
    """The quotas of `queues` against `bound`, which `what` names."""
    quotas = {called(queue.name): _share(queue, resource).quota for queue in queues}
    sizes = [quota for quota in quotas.values() if quota is not UNKNOWN]
    total = UNLIMITED if UNLIMITED in sizes else sum(sizes)
    if bound is not UNKNOWN and _above(total, bound):
        adds, most = (written(resource, amount, place.path) for amount in (total, bound))
        values = {"resource": resource, "queues": listed(list(quotas), "and"), "bound": what}
        yield place.refuse(*row("queue-quotas", **values, sum=adds, most=most))


def _above(amount: float, bound: float) -> bool:
    """Whether `amount` exceeds `bound`, -1 being unlimited on both sides."""
    if bound == UNLIMITED:
        return False
    return amount == UNLIMITED or amount > bound + SLACK * max(1.0, abs(bound))
