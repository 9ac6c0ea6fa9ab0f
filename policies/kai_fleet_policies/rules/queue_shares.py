"""Rules about amounts in queues: quotas and limits that fit each other, and pods that fit in."""

from collections.abc import Iterable
from functools import cache, reduce
from itertools import product
from operator import add
from typing import NamedTuple

from kai_fleet.releases.keys import DEFAULT_SHARD
from kai_fleet.values import UNKNOWN, Maybe, known_or
from kai_fleet.wording import listed
from kai_fleet_policies.model.cluster import ClusterModel
from kai_fleet_policies.model.queues import (
    RESOURCES,
    SLACK,
    UNLIMITED,
    DeclaredQueue,
    QueueShare,
    Resource,
    as_written,
    decimal_text,
)
from kai_fleet_policies.rules.rule import (
    Findings,
    Judged,
    Subject,
    advisory,
    cluster_subject,
    each_queue,
    mandatory,
    name_in_words,
    queue_subject,
    require_known,
)


@advisory("queue-zero-quota", "low", each_queue)
def queue_zero_quota(cluster: ClusterModel, queue: DeclaredQueue, subject: Subject) -> Findings:
    """A queue with no quota keeps pods of Deployments Pending.

    KAI treats pods of Deployments as non-preemptible, and those may use only guaranteed
    resources of their queue and of every queue above it: with a quota of 0 they stay Pending.
    """
    shares = require_known(queue.shares, "its resources are known")
    # Without a limit nothing runs at all, which queue-quota reports. UNKNOWN counts as a limit, and
    # as a quota above 0.
    resources = [key for key, share in shares.items() if share.quota == 0 and share.limit]
    if resources:
        yield subject.warn(
            f"guarantees no {listed(resources, 'and')} (quota 0), so pods of Deployments that ask"
            " for it stay Pending here and in every queue below",
            "give a quota (or unlimited, -1), or set priorityClassName: train on such pods",
        )


_GPU_STEP = 1e-6  # the last digit that KAI keeps of a number of GPUs
# Fractions of a GPU that pods ask for.
_COMMON_FRACTIONS = (0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9)


@cache
def _pods_that_do_not_fit(bound: object) -> tuple[float, ...]:
    """GPUs of some pods that are `bound` together, and more if they are added as floats.

    These are two or three fractions; for a bound above 1 a pod with its whole GPUs may come first.
    Nothing if there are no such pods, or if `bound` is whole or no float. A sum that is above
    `bound` by less than half of KAI's last digit counts as equal to it. Cached for each bound.
    """
    if not isinstance(bound, float) or bound == UNLIMITED or bound % 1 == 0:
        return ()
    whole_gpus = sorted({0.0, bound // 1})
    for count in (2, 3):
        for pods in product(whole_gpus, *[_COMMON_FRACTIONS] * count):
            total = reduce(add, pods)  # as KAI adds; `sum` is more exact
            if bound < total < bound + _GPU_STEP / 2:
                return tuple(filter(None, pods))
    return ()


@advisory("queue-fraction", "low", each_queue)
def queue_fraction(cluster: ClusterModel, queue: DeclaredQueue, subject: Subject) -> Findings:
    """Pods whose fractions add up to a quota or limit of GPUs fit into it.

    KAI adds and compares floats, in which 0.1 and 0.2 are more than 0.3. With a limit the last of
    such pods always stays Pending, with a quota only if its priority class is not preemptible.
    """
    share = _share(queue, "gpu")
    children = cluster.tree.children_of(queue)
    # A finding for each bound, without that for a limit where the quota's says the same.
    bounds = {"limit": share.limit, "quota": share.quota}
    if any(_pods_that_do_not_fit(_share(child, "gpu").quota) for child in children):
        del bounds["quota"]  # it is the sum of the children's, which are reported
    elif share.limit == share.quota:
        del bounds["limit"]
    for key, bound in bounds.items():
        pods = _pods_that_do_not_fit(bound)
        if not isinstance(bound, float) or not pods:
            continue  # a bound that is not known is a question of queue-quota
        fractions = listed([decimal_text(gpus) for gpus in pods], "and")
        yield subject.at("gpu", key).warn(
            f"has gpu {key} {decimal_text(bound)}, and pods of {fractions} do not fit together: KAI"
            " adds floats, and gets more",
            f"write {decimal_text(bound + _GPU_STEP)}, or let pods ask for 0.25 and 0.5, which add"
            " up",
        )


_NO_SHARE = QueueShare(quota=0.0, limit=0.0, weight=0.0)
_UNKNOWN_SHARE = QueueShare(UNKNOWN, UNKNOWN, UNKNOWN)


class _QueueResource(NamedTuple):
    """One resource of a queue."""

    queue: DeclaredQueue
    resource: Resource


class _TeamGpus(NamedTuple):
    """The GPUs that a team may hold: on a pool, named by its shard, or on all nodes ("")."""

    pool: str
    gpus: Maybe[float]


def _promises(cluster: ClusterModel) -> Judged[_QueueResource | _TeamGpus]:
    """Each resource of each queue, also without a share; then the GPUs of the team, or its pools'.

    GPUs that nothing bounds are left out, as on a host; UNKNOWN ones are not.
    """
    for queue, subject in each_queue(cluster):
        for resource in RESOURCES:
            yield _QueueResource(queue, resource), subject.at(resource)
    subject = cluster_subject("queues", cluster).at("queues")
    on_all_nodes = {"": cluster.gpus}
    for pool, gpus in (cluster.pools or on_all_nodes).items():
        if gpus is not None:
            yield _TeamGpus(pool, gpus), subject


@mandatory("queue-quota", "high", _promises)
def queue_quota(
    cluster: ClusterModel, promise: _QueueResource | _TeamGpus, subject: Subject
) -> Findings:
    """Quotas and limits of a queue fit each other, its parent's and the team's GPUs.

    KAI checks no sums: a tree that promises more than its parent, or a team's scheduler that
    promises more GPUs than the team has, leaves pods Pending or takes other teams' share.
    A limit that is left out is 0: nothing ever runs.
    """
    if isinstance(promise, _TeamGpus):
        yield from _above_team(cluster, promise, subject)
        return
    # The sum of the children's quotas comes before the queue's own limit: both may be found.
    queue, resource = promise
    share = require_known(queue.shares, "its resources are known").get(resource)
    children = cluster.tree.children_of(queue)
    if children and queue not in cluster.tree.repeated:
        quota = (share or _NO_SHARE).quota
        yield from _quotas_above(children, resource, quota, "its quota", subject.at("quota"))
    if share is not None:
        yield from _wrong_limits(cluster, promise, share, subject.at("limit"))
    elif resource != "gpu":  # a queue without a share of GPUs is one for CPU pods
        yield subject.refuse(
            f"has no share of {resource}, which KAI reads as limit 0: no pod that asks for"
            f" {resource} ever runs",
            f"write {resource}: quota 0, limit -1 (unlimited)",
        )


def _wrong_limits(
    cluster: ClusterModel,
    promise: _QueueResource,
    share: QueueShare,
    subject: Subject,
) -> Findings:
    """What is wrong with a queue's limit: it is absent, below its quota, or above an ancestor's.

    A limit that is there may be both of the others. Raises UnknownValueError if the quota or the
    limit is not known.
    """
    queue, resource = promise
    quota = require_known(share.quota, f"its {resource} quota is known")
    limit = require_known(share.limit, f"its {resource} limit is known")
    if limit is None:
        yield subject.refuse(
            f"leaves its {resource} limit out, which KAI reads as 0: no pod that asks for"
            f" {resource} ever runs",
            "write limit: -1 for unlimited, or a number",
        )
        return
    if _exceeds(quota, limit) and not _may_be_limit_of_team(cluster, promise, limit):
        low = as_written(resource, limit, queue.path)
        high = as_written(resource, quota, queue.path)
        yield subject.refuse(
            f"has {resource} limit {low}, below its quota {high}",
            f"raise the limit to {high} or lower the quota to {low}",
        )
    yield from _limit_above_ancestor(cluster, promise, limit, subject)


def _may_be_limit_of_team(cluster: ClusterModel, promise: _QueueResource, limit: float) -> bool:
    """Whether the limit may be the team's GPUs, filled in for a top-level queue without a limit.

    The sum of the quotas says better then what is wrong.
    """
    queue, resource = promise
    if resource != "gpu" or queue.parent is not None:
        return False
    return limit in (cluster.gpus, cluster.pools.get(queue.shard or DEFAULT_SHARD))


def _limit_above_ancestor(
    cluster: ClusterModel,
    promise: _QueueResource,
    limit: float,
    subject: Subject,
) -> Findings:
    """Refuse a limit above that of the nearest queue over it that has one: at most one finding.

    A queue that is unlimited itself leaves the limit above it to hold, and so does one whose share
    lacks its limit. Without a share the limit is 0. One that is UNKNOWN ends the comparison.
    """
    if limit == UNLIMITED:
        return
    queue, resource = promise
    for ancestor in cluster.tree.ancestors(queue):
        most = _share(ancestor, resource).limit
        if most is UNKNOWN:
            return
        if most is None or most == UNLIMITED:
            continue
        if _exceeds(limit, most):
            bound = as_written(resource, most, queue.path)
            above = name_in_words(ancestor.name)
            yield subject.refuse(
                f"has {resource} limit {as_written(resource, limit, queue.path)}, above the limit"
                f" {bound} of queue {above} over it",
                f"write at most {bound}, or raise that of {above}",
            )
        return


def _share(queue: DeclaredQueue, resource: Resource) -> QueueShare:
    """The queue's share of a resource: all zero if it has none, all UNKNOWN if that is UNKNOWN."""
    if queue.shares is UNKNOWN:
        return _UNKNOWN_SHARE
    return queue.shares.get(resource, _NO_SHARE)


def _above_team(cluster: ClusterModel, team: _TeamGpus, subject: Subject) -> Findings:
    """Refuse top-level queues of a team above its GPUs: the sum of quotas, then each limit.

    With a pool only the queues of its shard count. A queue whose parent is UNKNOWN is none of them.
    A limit that is absent, UNKNOWN, or equal to the quota is not compared; unlimited is above.
    Raises UnknownValueError if the number of its GPUs is not known.
    """
    gpus = require_known(team.gpus, "the team's number of GPUs is known")
    bound = f"the team's GPUs on pool {team.pool}" if team.pool else "the team's GPUs"
    queues = [queue for queue in cluster.queues if queue.parent is None]
    if team.pool:
        queues = [queue for queue in queues if (queue.shard or DEFAULT_SHARD) == team.pool]
    yield from _quotas_above(queues, "gpu", gpus, bound, subject)
    for queue in queues:
        share = _share(queue, "gpu")
        limit = share.limit
        # A limit that is the quota may be filled in: the sum of the quotas says it better.
        if limit in (None, UNKNOWN, share.quota):
            continue
        if limit is not None and _exceeds(limit, gpus):
            most = as_written("gpu", gpus, queue.path)
            above = f"{as_written('gpu', limit, queue.path)}, above {bound} of {most}"
            limit_subject = queue_subject(queue, cluster).at("gpu", "limit")
            yield limit_subject.refuse(
                f"has gpu limit {above}: its scheduler would hand out GPUs that the host then"
                " refuses",
                f"write limit {most} or less",
            )


def _quotas_above(
    queues: Iterable[DeclaredQueue],
    resource: Resource,
    bound: Maybe[float],
    bound_name: str,
    subject: Subject,
) -> Findings:
    """Refuse a sum of the queues' quotas above a bound: one finding, about `subject`.

    Quotas that are absent or not known count 0. A bound that is not known refuses nothing.
    `bound_name` completes "above", before its amount.
    """
    if bound is UNKNOWN:
        return
    names = list[str]()
    total = 0.0
    for queue in queues:
        names.append(name_in_words(queue.name))
        total += known_or(_share(queue, resource).quota, 0)
    if _exceeds(total, bound):
        sum_of_quotas = as_written(resource, total, subject.path)
        most = as_written(resource, bound, subject.path)
        yield subject.refuse(
            f"the {resource} quotas of {listed(names, 'and')} add up to {sum_of_quotas}, above"
            f" {bound_name} of {most}",
            f"lower them to {most} together, or raise that to {sum_of_quotas}",
        )


def _exceeds(amount: float, bound: float) -> bool:
    """Whether `amount` is above `bound`, beyond what fractions are off by."""
    return amount > bound + SLACK * max(1.0, abs(bound))
