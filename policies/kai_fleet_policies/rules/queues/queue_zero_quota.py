"""A queue with no quota keeps pods of Deployments Pending."""

from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.fleet.queues import RESOURCES, QueueShare
from kai_fleet.values import UNKNOWN
from kai_fleet.wording import listed
from kai_fleet_policies.problem import Level, Problems, Severity, of_queue

LEVEL = Level.ADVISORY
SEVERITY = Severity.LOW
WHY = (
    "KAI treats pods of Deployments as non-preemptible, and those may use only guaranteed resources"
    " of their queue and of every queue above it: with a quota of 0 they stay Pending (Q8)."
)
REMEDY = "Give the queue a quota, or run such pods with priorityClassName: train."


def check(cluster: DeclaredCluster) -> Problems:
    """Queues that let a resource be used (their limit is not 0) but guarantee none of it."""
    for queue in cluster.queues:
        place = of_queue(queue, cluster)
        if queue.shares is UNKNOWN:
            yield place.undecided("its resources are known")
            continue
        zero = [r for r in RESOURCES if _none_guaranteed(queue.shares.get(r))]
        if zero:
            yield place.advisory(
                f"guarantees no {listed(zero, 'and')} (quota 0), so pods of Deployments that ask"
                " for it stay Pending here and in every queue below; give a quota (or unlimited,"
                " -1), or set priorityClassName: train on such pods"
            )


def _none_guaranteed(share: QueueShare | None) -> bool:
    # Without a limit of its own nothing runs at all, which queue-quota reports.
    return share is not None and share.quota == 0 and share.limit not in (0, None)
