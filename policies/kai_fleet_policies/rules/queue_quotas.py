"""The rule about the amounts of queues, which KAI does not hold against each other."""

from typing import Any, Final

from kai_fleet.fleet.amounts import written
from kai_fleet.fleet.cluster import Cluster
from kai_fleet.fleet.queues import RESOURCES, UNLIMITED, DeclaredQueue, QueueShare, Resource
from kai_fleet.releases.keys import DEFAULT_SHARD
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.rules.places import Place, called, of_cluster, of_queue
from kai_fleet_policies.rules.rule import Findings, mandatory

# Sums of fractions such as 0.1 + 0.2 must not count as above 0.3.
_SLACK: Final = 1e-6
_NOTHING: Final = QueueShare(quota=0.0, limit=0.0, weight=0.0)


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
        q, bound = written(resource, quota, queue.path), written(resource, limit, queue.path)
        raised = f"raise the limit to {q} or lower the quota to {bound}"
        advice = f"write quota {bound}, or limit {q}" if quota == UNLIMITED else raised
        yield place.refuse(f"has {resource} limit {bound}, below its quota {q}", advice)


def _below_limits(
    cluster: Cluster, queue: DeclaredQueue, resource: Resource, limit: float | None
) -> Findings:
    """A limit above that of a queue further up; no limit of its own (-1) leaves theirs to hold."""
    if limit in (None, UNKNOWN, UNLIMITED):
        return
    for above in cluster.tree.ancestors(queue):
        bound = UNKNOWN
        if above.shares is not UNKNOWN:
            bound = above.shares.get(resource, _NOTHING).limit
        if bound in (None, UNLIMITED):
            continue
        if bound is not UNKNOWN and limit is not None and _above(limit, bound):
            high = written(resource, limit, queue.path)
            low = written(resource, bound, queue.path)
            yield of_queue(queue, cluster, resource, "limit").refuse(
                f"has {resource} limit {high}, above the limit {low} of queue {called(above.name)}"
                " over it",
                f"write at most {low}, or raise that of {called(above.name)}",
            )
        return


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
        share = None if queue.shares is UNKNOWN else queue.shares.get("gpu")
        limit = None if share is None else share.limit
        if share is not None and limit == share.quota:
            continue  # it may not be written at all: the sum of the quotas says it better
        if limit is not None and limit is not UNKNOWN and _above(limit, gpus):
            has, most = written("gpu", limit, queue.path), written("gpu", gpus, queue.path)
            yield of_queue(queue, cluster, "gpu", "limit").refuse(
                f"has gpu limit {has}, but the team has {most} GPUs{where}: its scheduler would"
                " hand out GPUs that the host then refuses",
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
    quotas = [_quota(queue, resource) for queue in queues]
    named = [called(queue.name) for queue in queues]
    unlimited = [name for name, quota in zip(named, quotas, strict=True) if quota == UNLIMITED]
    total = sum(quota for quota in quotas if quota is not UNKNOWN and quota > 0)
    most = written(resource, bound, place.path)
    if unlimited:
        yield place.refuse(
            f"the {resource} quota of {', '.join(unlimited[:3])} is unlimited, above {what} of"
            f" {most}",
            f"write numbers that add up to at most {most}",
        )
    elif _above(total, bound):
        more = f" and {len(named) - 4} more" if len(named) > 4 else ""
        adds = written(resource, total, place.path)
        yield place.refuse(
            f"the {resource} quotas of {', '.join(named[:4])}{more} add up to {adds}, above {what}"
            f" of {most}",
            f"lower them to {most} together, or raise {raise_what} to {adds}",
        )
    elif UNKNOWN in quotas:
        yield place.undecided(f"the {resource} quotas of its children are known")


def _quota(queue: DeclaredQueue, resource: Resource) -> Any:
    if queue.shares is UNKNOWN:
        return UNKNOWN
    return queue.shares.get(resource, _NOTHING).quota


def _above(amount: float, bound: float) -> bool:
    """Whether `amount` exceeds `bound`, -1 being unlimited on both sides."""
    if bound == UNLIMITED:
        return False
    return amount == UNLIMITED or amount > bound + _SLACK * max(1.0, abs(bound))
