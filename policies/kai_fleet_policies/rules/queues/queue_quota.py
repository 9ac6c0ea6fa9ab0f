"""Quotas and limits of a queue fit each other, its parent's and the team's GPUs."""

from kai_fleet.fleet.amounts import written
from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.fleet.queues import RESOURCES, UNLIMITED, DeclaredQueue, QueueShare, Resource
from kai_fleet.releases.keys import DEFAULT_SHARD
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.problem import Level, ProblemPlace, Problems, Severity, called, of_queue

LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = (
    "KAI checks no sums: a tree that promises more than its parent, or a team's scheduler that"
    " promises more GPUs than the team has, leaves pods Pending or takes other teams' share"
    " (Q7, V18). A limit that is left out is 0: nothing ever runs (Q2)."
)
REMEDY = (
    "Per resource: children's quotas add up to at most the parent's quota, a quota is at most the"
    " limit, a child's limit at most its parent's. -1 (unlimited) counts as more than any number."
)

# Sums of fractions such as 0.1 + 0.2 must not count as above 0.3.
_SLACK = 1e-6
_NOTHING = QueueShare(quota=0.0, limit=0.0, weight=0.0)


def check(cluster: DeclaredCluster) -> Problems:
    """Every queue by itself, against the queues above it, and against its children's sum."""
    for queue in cluster.tree.queues:
        if queue.shares is UNKNOWN:
            yield of_queue(queue, cluster, "resources").undecided("its resources are known")
            continue
        for resource in RESOURCES:
            share = queue.shares.get(resource)
            if share is not None:
                yield from _alone(cluster, queue, resource, share)
                yield from _below_limits(cluster, queue, resource, share)
            elif resource != "gpu":  # without a share of GPUs it is a queue for CPU pods
                yield of_queue(queue, cluster, resource).mandatory(
                    f"has no share of {resource}, which KAI reads as limit 0: no pod that asks for"
                    f" {resource} ever runs; write {resource}: quota 0, limit -1 (unlimited)"
                )
            yield from _children(cluster, queue, resource)
    top = [queue for queue in cluster.tree.queues if queue.parent is None]
    for pool, most in cluster.pools.items():
        own = [queue for queue in top if (queue.shard or DEFAULT_SHARD) == pool]
        yield from _team(cluster, own, most, f" on pool {pool}")
    if cluster.gpus is not None and not cluster.pools:
        yield from _team(cluster, top, cluster.gpus)


def _alone(
    cluster: DeclaredCluster, queue: DeclaredQueue, resource: Resource, share: QueueShare
) -> Problems:
    for word, amount in (("quota", share.quota), ("limit", share.limit), ("weight", share.weight)):
        place = of_queue(queue, cluster, resource, word)
        if amount is UNKNOWN:
            yield place.undecided(f"its {resource} {word} is known")
        elif amount is not None and amount < 0 and (amount != UNLIMITED or word == "weight"):
            instead = "0 or more" if word == "weight" else "0 or more, or -1 (unlimited)"
            yield place.mandatory(f"has {resource} {word} {amount:g}; write {instead}")
    quota, limit = share.quota, share.limit
    place = of_queue(queue, cluster, resource, "limit")
    of_team = (cluster.gpus, cluster.pools.get(queue.shard or DEFAULT_SHARD))
    if limit is None:
        yield place.mandatory(
            f"leaves its {resource} limit out, which KAI reads as 0: no pod that asks for"
            f" {resource} ever runs; write limit: -1 for unlimited, or a number"
        )
    elif resource == "gpu" and queue.parent is None and limit in of_team:
        pass  # it may be the limit of the team, not written here: the sum below says it better
    elif quota is not UNKNOWN and limit is not UNKNOWN and _above(quota, limit):
        q, bound = written(resource, quota, queue.path), written(resource, limit, queue.path)
        if quota == UNLIMITED:
            advice = f"write quota {bound}, or limit {q}"
        else:
            advice = f"raise the limit to {q} or lower the quota to {bound}"
        yield place.mandatory(f"has {resource} limit {bound}, below its quota {q}; {advice}")


def _below_limits(
    cluster: DeclaredCluster, queue: DeclaredQueue, resource: Resource, share: QueueShare
) -> Problems:
    """A limit above that of a queue further up; no limit of its own (-1) leaves theirs to hold."""
    limit = share.limit
    if limit is None or limit is UNKNOWN or limit == UNLIMITED:
        return
    for above in cluster.tree.ancestors(queue):
        if above.shares is UNKNOWN:
            return
        bound = above.shares.get(resource, _NOTHING).limit
        if bound is UNKNOWN:
            return
        if bound is None or bound == UNLIMITED:
            continue
        if _above(limit, bound):
            high = written(resource, limit, queue.path)
            low = written(resource, bound, queue.path)
            yield of_queue(queue, cluster, resource, "limit").mandatory(
                f"has {resource} limit {high}, above the limit {low} of queue {called(above.name)}"
                f" over it; write at most {low}, or raise that of {called(above.name)}"
            )
        return


def _children(cluster: DeclaredCluster, queue: DeclaredQueue, resource: Resource) -> Problems:
    if queue.name is UNKNOWN or queue.shares is UNKNOWN:
        return
    children = cluster.tree.children.get(queue.name)
    bound = queue.shares.get(resource, _NOTHING).quota
    if not children or bound is UNKNOWN or bound == UNLIMITED:
        return
    if cluster.tree.by_name[queue.name] is not queue:
        return  # a second queue of that name, which queue-tree reports
    place = of_queue(queue, cluster, resource, "quota")
    yield from _sum(children, resource, bound, place, "its quota", "that")


def _team(
    cluster: DeclaredCluster, top: list[DeclaredQueue], gpus: float, where: str = ""
) -> Problems:
    """The top-level queues of a team, or of one of its pools, against its GPUs there."""
    place = ProblemPlace(f"queues of {cluster.name}", cluster.path)
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
            yield of_queue(queue, cluster, "gpu", "limit").mandatory(
                f"has gpu limit {has}, but the team has {most} GPUs{where}: its scheduler would"
                f" hand out GPUs that the host then refuses; write limit {most} or less"
            )


def _sum(
    queues: list[DeclaredQueue],
    resource: Resource,
    bound: float,
    place: ProblemPlace,
    what: str,
    raise_what: str,
) -> Problems:
    """The quotas of `queues` against `bound`, which `what` names."""
    total, unlimited, open_ = 0.0, [], False
    for queue in queues:
        if queue.shares is UNKNOWN:
            open_ = True
            continue
        quota = queue.shares.get(resource, _NOTHING).quota
        if quota is UNKNOWN:
            open_ = True
        elif quota == UNLIMITED:
            unlimited.append(called(queue.name))
        elif quota > 0:
            total += quota
    most = written(resource, bound, place.path)
    if unlimited:
        yield place.mandatory(
            f"the {resource} quota of {', '.join(unlimited[:3])} is unlimited, above {what} of"
            f" {most}; write numbers that add up to at most {most}"
        )
    elif _above(total, bound):
        names = ", ".join(called(queue.name) for queue in queues[:4])
        if len(queues) > 4:
            names += f" and {len(queues) - 4} more"
        adds = written(resource, total, place.path)
        yield place.mandatory(
            f"the {resource} quotas of {names} add up to {adds}, above {what} of {most}; lower them"
            f" to {most} together, or raise {raise_what} to {adds}"
        )
    elif open_:
        yield place.undecided(f"the {resource} quotas of its children are known")


def _above(amount: float, bound: float) -> bool:
    """Whether `amount` exceeds `bound`, -1 being unlimited on both sides."""
    if bound == UNLIMITED:
        return False
    return amount == UNLIMITED or amount > bound + _SLACK * max(1.0, abs(bound))
