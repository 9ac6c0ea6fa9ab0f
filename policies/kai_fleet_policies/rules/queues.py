"""Rules about queues: one tree, of levels, durations and amounts that KAI takes."""

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from kai_fleet import releases
from kai_fleet.releases.keys import DEFAULT_SHARD
from kai_fleet.values import UNKNOWN, get
from kai_fleet.wording import listed, nearest_first
from kai_fleet_policies.model.cluster import Cluster
from kai_fleet_policies.model.queues import (
    RESOURCES,
    UNLIMITED,
    DeclaredQueue,
    QueueShare,
    Resource,
    written,
)
from kai_fleet_policies.rules.places import QUEUES, Place, called, of_cluster, of_queue
from kai_fleet_policies.rules.rule import Findings, advisory, known, mandatory

EXISTING_QUEUES: Final = "existingQueues"
_PACK: Final = f"{EXISTING_QUEUES} of the pack's configuration of queue-tree"
CHART_PARENT: Final = "default-parent-queue"  # which KAI's chart makes from v0.10


@mandatory("queue-tree", "high", QUEUES)
def queue_tree(cluster: Cluster, queue: DeclaredQueue, place: Place) -> Findings:
    """Every queue hangs in one tree: unique names, existing parents, no cycles.

    KAI checks none of this: it drops a queue whose parent is absent, or that is in a cycle,
    with everything below it, and says nothing.
    """
    tree, above = cluster.tree, place.at("parent")
    name = known(queue.name, "the name of the queue is known")
    if queue in tree.twice:
        yield place.refuse(
            "is declared twice: queues are cluster-wide, and the later one overwrites the first",
            f"rename one of the two queues {name}",
        )
    elif ring := tree.rings.get(name):
        yield above.refuse(
            f"is below itself ({' → '.join((*ring, name))})",
            f"leave the parent of {listed(ring)} out, which then is the top of the others",
        )
    parent = known(queue.parent, "the name of its parent is known")
    if parent is None:
        return
    if parent == name and queue not in tree.twice:
        yield above.refuse(
            "is its own parent", "leave the parent out for a top-level queue, or name another"
        )
    elif parent not in tree.by_name:
        if tree.unknown_names:
            yield above.undecided("all queue names are known")
        elif _made_elsewhere(parent, cluster):
            yield above.undecided(
                f"it is known that its parent {parent}, which nothing here declares, is in"
                f" {cluster.name}; {EXISTING_QUEUES}: [{parent}] in the pack's configuration of"
                " queue-tree says so"
            )
        else:
            yield above.refuse(
                f"has the parent {parent}, which is not declared in {cluster.name}",
                _instead(parent, [other for other in tree.by_name if other != name], cluster),
            )


def _instead(parent: str, others: list[str], cluster: Cluster) -> str:
    choice = listed(nearest_first(parent, others))
    declare = f"declare {parent} with no parent of its own"
    if not cluster.declared and not cluster.kai:  # then some of its queues may be elsewhere
        declare = f"list {parent} in {_PACK} if another program makes it"
    return f"write {choice}, or {declare}" if choice else declare


def _made_elsewhere(parent: str, cluster: Cluster) -> bool:
    """Whether what makes the parent may stand in another program.

    KAI's chart makes one parent, unless its values switch that off. Others are elsewhere if no
    queue here is the top of a tree; beside a top one, an absent parent is taken for a slip.
    """
    if cluster.declared:
        return False
    if parent == CHART_PARENT and cluster.kai:
        return any(not isinstance(kai.version, str) or kai.values is UNKNOWN for kai in cluster.kai)
    if parent == CHART_PARENT:
        return True
    return not cluster.kai and all(queue.parent is not None for queue in cluster.queues)


@mandatory("queue-depth", "high", QUEUES)
def queue_depth(cluster: Cluster, queue: DeclaredQueue, place: Place) -> Findings:
    """No more and no fewer levels of queues than the KAI version can schedule from.

    Through v0.12 KAI schedules only from the second level: never from the top, never deeper.
    """
    tree, level = cluster.tree, cluster.tree.levels.get(queue.name)
    if level is None or tree.by_name[queue.name] is not queue:
        return
    leaf_at_top = level == 1 and tree.is_leaf(queue.name)
    strict = [
        release
        for kai in cluster.kai
        if (release := releases.KAI.get(str(kai.version))) and release.max_queue_depth
    ]
    if not strict and (level > 2 or leaf_at_top):
        for kai in cluster.kai:
            known(kai.version, "the KAI version is known: through v0.12 only two levels work")
    if strict and leaf_at_top:
        if tree.unknown_parents:
            yield place.undecided(f"all parents are known: {queue.name} may have children")
        else:
            yield place.refuse(
                f"is a top-level queue without children, and KAI {strict[0].version} never"
                " schedules pods from those",
                f"add a child queue below {queue.name} and let pods name that one",
            )
    for release in strict:
        if release.max_queue_depth == level - 1:
            yield place.refuse(
                f"is on level {level}, and KAI {release.version} schedules from {level - 1} levels"
                " only",
                "hang it below a top-level queue, or use KAI v0.14 or newer",
            )


_GO_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_LONGEST: Final = Fraction(2**63, 10**9)  # Go keeps 64 bits of nanoseconds
_PER_SECOND: Final[Mapping[str, int | Fraction]] = {
    **{"ns": 10**9, "us": 10**6, "µs": 10**6, "μs": 10**6, "ms": 1000},
    **{"s": 1, "m": Fraction(1, 60), "h": Fraction(1, 3600)},
}


def _seconds(value: object) -> Fraction | float | None:
    """A duration as Go's time.ParseDuration takes it: `90s`, `1h30m`; None for others: `1d`."""
    bare = value.removeprefix("+").removeprefix("-") if isinstance(value, str) else ""
    if bare != "0" and (not bare or _GO_PART.sub("", bare)):
        return None
    if len(bare) > 60:  # as no number that Go keeps
        return math.inf
    return sum(
        (Fraction(number) / _PER_SECOND[unit] for number, unit in _GO_PART.findall(bare)),
        Fraction(0),
    )


@mandatory("queue-duration", "high", QUEUES)
def queue_duration(cluster: Cluster, queue: DeclaredQueue, place: Place) -> Findings:
    """Minimum run times are durations that Go parses.

    KAI takes Go durations, which know no days and no weeks: 1d does not parse.
    """
    for key in ("preemptMinRuntime", "reclaimMinRuntime"):
        value = known(get(queue.spec, key), f"the value of {key} is known")
        if value is None:
            continue
        seconds = _seconds(value)
        if seconds is None:
            yield place.at(key).refuse(
                f"has {key}: {value}, which is not a duration for KAI (units are h, m and s)",
                "write for example 90s, 1h30m, or 24h for a day",
            )
        elif seconds >= _LONGEST:
            yield place.at(key).refuse(
                f"has {key}: {value}, longer than a duration can be",
                f"write {key}: 2562047h (292 years) or less",
            )


@mandatory("queue-cluster-scoped", "medium", QUEUES)
def queue_cluster_scoped(cluster: Cluster, queue: DeclaredQueue, place: Place) -> Findings:
    """Queues belong to no namespace.

    Queue is a cluster-scoped kind: a namespace on it does nothing but promise a separation that
    is not there, and two queues of one name in two namespaces are one queue.
    """
    namespace = known(queue.namespace, "its metadata.namespace is known")
    if namespace:
        yield place.refuse(
            f"has the namespace {namespace}, but queues are cluster-wide",
            "leave metadata.namespace out",
        )


@advisory("queue-zero-quota", "low", QUEUES)
def queue_zero_quota(cluster: Cluster, queue: DeclaredQueue, place: Place) -> Findings:
    """A queue with no quota keeps pods of Deployments Pending.

    KAI treats pods of Deployments as non-preemptible, and those may use only guaranteed
    resources of their queue and of every queue above it: with a quota of 0 they stay Pending.
    """
    shares = known(queue.shares, "its resources are known")
    # Without a limit of its own nothing runs at all, which queue-quota reports.
    zero = [key for key, share in shares.items() if share.quota == 0 and share.limit]
    if zero:
        yield place.warn(
            f"guarantees no {listed(zero, 'and')} (quota 0), so pods of Deployments that ask for"
            " it stay Pending here and in every queue below",
            "give a quota (or unlimited, -1), or set priorityClassName: train on such pods",
        )


# Sums of fractions such as 0.1 + 0.2 must not count as above 0.3.
_SLACK: Final = 1e-6
_NOTHING: Final = QueueShare(quota=0.0, limit=0.0, weight=0.0)
_UNKNOWN: Final = QueueShare(UNKNOWN, UNKNOWN, UNKNOWN)


@mandatory("queue-quota", "high")
def queue_quota(cluster: Cluster) -> Findings:
    """Quotas and limits of a queue fit each other, its parent's and the team's GPUs.

    KAI checks no sums: a tree that promises more than its parent, or a team's scheduler that
    promises more GPUs than the team has, leaves pods Pending or takes other teams' share.
    A limit that is left out is 0: nothing ever runs.
    """
    for queue in cluster.queues:
        if queue.shares is UNKNOWN:
            yield of_queue(queue, cluster, "resources").undecided("its resources are known")
            continue
        for resource in RESOURCES:
            share = queue.shares.get(resource)
            if share is not None:
                yield from _alone(cluster, queue, resource, share)
                yield from _below_limits(cluster, queue, resource, share.limit)
            elif resource != "gpu":  # without a share of GPUs it is a queue for CPU pods
                yield of_queue(queue, cluster, resource).refuse(
                    f"has no share of {resource}, which KAI reads as limit 0: no pod that asks for"
                    f" {resource} ever runs",
                    f"write {resource}: quota 0, limit -1 (unlimited)",
                )
            bound = queue.shares.get(resource, _NOTHING).quota
            children = cluster.tree.children.get(queue.name, [])
            first = cluster.tree.by_name.get(queue.name) is queue
            if children and first and bound not in (UNKNOWN, UNLIMITED):
                place = of_queue(queue, cluster, resource, "quota")
                yield from _sum(children, resource, bound, place, "its quota", "that")
    top = [queue for queue in cluster.queues if queue.parent is None]
    for pool, most in cluster.pools.items():
        own = [queue for queue in top if (queue.shard or DEFAULT_SHARD) == pool]
        yield from _within_team(cluster, own, most, f" on pool {pool}")
    if cluster.gpus is not None and not cluster.pools:
        yield from _within_team(cluster, top, cluster.gpus)


def _alone(
    cluster: Cluster, queue: DeclaredQueue, resource: Resource, share: QueueShare
) -> Findings:
    for word, amount in (("quota", share.quota), ("limit", share.limit), ("weight", share.weight)):
        place = of_queue(queue, cluster, resource, word)
        if amount is UNKNOWN:
            yield place.undecided(f"its {resource} {word} is known")
        elif amount is not None and amount < 0 and (amount != UNLIMITED or word == "weight"):
            instead = "0 or more" if word == "weight" else "0 or more, or -1 (unlimited)"
            yield place.refuse(f"has {resource} {word} {amount:g}", f"write {instead}")
    quota, limit = share.quota, share.limit
    place = of_queue(queue, cluster, resource, "limit")
    of_team = (cluster.gpus, cluster.pools.get(queue.shard or DEFAULT_SHARD))
    if limit is None:
        yield place.refuse(
            f"leaves its {resource} limit out, which KAI reads as 0: no pod that asks for"
            f" {resource} ever runs",
            "write limit: -1 for unlimited, or a number",
        )
    elif resource == "gpu" and queue.parent is None and limit in of_team:
        pass  # it may be the limit of the team, not written here: the sum below says it better
    elif UNKNOWN not in (quota, limit) and _above(quota, limit):
        q, bound = (written(resource, amount, queue.path) for amount in (quota, limit))
        raised = f"raise the limit to {q} or lower the quota to {bound}"
        advice = f"write quota {bound}, or limit {q}" if quota == UNLIMITED else raised
        yield place.refuse(f"has {resource} limit {bound}, below its quota {q}", advice)


def _share(queue: DeclaredQueue, resource: Resource) -> Any:
    """Its share of a resource, all zero where it has none."""
    return _UNKNOWN if queue.shares is UNKNOWN else queue.shares.get(resource, _NOTHING)


def _below_limits(
    cluster: Cluster, queue: DeclaredQueue, resource: Resource, limit: float | None
) -> Findings:
    """A limit above that of a queue further up; no limit of its own (-1) leaves theirs to hold."""
    chain = ((above, _share(above, resource).limit) for above in cluster.tree.ancestors(queue))
    bounded = ((above, bound) for above, bound in chain if bound not in (None, UNLIMITED))
    above, bound = next(bounded, (queue, UNKNOWN))
    if limit is None or UNKNOWN in (limit, bound) or limit == UNLIMITED or not _above(limit, bound):
        return
    high, low = (written(resource, amount, queue.path) for amount in (limit, bound))
    yield of_queue(queue, cluster, resource, "limit").refuse(
        f"has {resource} limit {high}, above the limit {low} of queue {called(above.name)} over it",
        f"write at most {low}, or raise that of {called(above.name)}",
    )


def _within_team(
    cluster: Cluster, top: list[DeclaredQueue], gpus: float, where: str = ""
) -> Findings:
    """The top-level queues of a team, or of one of its pools, against its GPUs there."""
    place = of_cluster("queues", cluster)
    if gpus is UNKNOWN:
        yield place.undecided("the team's number of GPUs is known")
        return
    what, theirs = f"the team's GPUs{where}", "the team's pools" if where else "the team's gpus"
    yield from _sum(top, "gpu", gpus, place.at("queues"), what, theirs)
    for queue in top:
        share = _share(queue, "gpu")
        # One that is the quota may not be written at all: the sum of the quotas says it better.
        if share.limit in (None, UNKNOWN, share.quota) or not _above(share.limit, gpus):
            continue
        has, most = (written("gpu", amount, queue.path) for amount in (share.limit, gpus))
        yield of_queue(queue, cluster, "gpu", "limit").refuse(
            f"has gpu limit {has}, but the team has {most} GPUs{where}: its scheduler would hand"
            " out GPUs that the host then refuses",
            f"write limit {most} or less",
        )


def _sum(
    queues: list[DeclaredQueue],
    resource: Resource,
    bound: float,
    place: Place,
    what: str,
    raise_what: str,
) -> Findings:
    """The quotas of `queues` against `bound`, which `what` names."""
    quotas = [(called(queue.name), _share(queue, resource).quota) for queue in queues]
    unlimited = [name for name, quota in quotas if quota == UNLIMITED]
    total = sum(quota for _, quota in quotas if quota is not UNKNOWN and quota > 0)
    most = written(resource, bound, place.path)
    if unlimited:
        yield place.refuse(
            f"the {resource} quota of {', '.join(unlimited[:3])} is unlimited, above {what} of"
            f" {most}",
            f"write numbers that add up to at most {most}",
        )
    elif _above(total, bound):
        names = ", ".join(name for name, _ in quotas[:4])
        more = f" and {len(quotas) - 4} more" if len(quotas) > 4 else ""
        adds = written(resource, total, place.path)
        yield place.refuse(
            f"the {resource} quotas of {names}{more} add up to {adds}, above {what} of {most}",
            f"lower them to {most} together, or raise {raise_what} to {adds}",
        )
    elif any(quota is UNKNOWN for _, quota in quotas):
        yield place.undecided(f"the {resource} quotas of its children are known")


def _above(amount: float, bound: float) -> bool:
    """Whether `amount` exceeds `bound`, -1 being unlimited on both sides."""
    if bound == UNLIMITED:
        return False
    return amount == UNLIMITED or amount > bound + _SLACK * max(1.0, abs(bound))
