"""Queues belong to no namespace."""

from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.problem import Level, Problems, Severity, of_queue

LEVEL = Level.MANDATORY
SEVERITY = Severity.MEDIUM
WHY = (
    "Queue is a cluster-scoped kind: a namespace on it does nothing but promise a separation that"
    " is not there, and two queues of one name in two namespaces are one queue (Q1)."
)
REMEDY = "Leave metadata.namespace out."


def check(cluster: DeclaredCluster) -> Problems:
    """The namespace of each queue; what a provider fills in before it knows the CRD is let pass."""
    for queue in cluster.queues:
        place = of_queue(queue, cluster)
        if queue.namespace is UNKNOWN:
            yield place.undecided("its metadata.namespace is known")
        elif queue.namespace and queue.namespace not in ("default", queue.filled_in_namespace):
            yield place.mandatory(
                f"has the namespace {queue.namespace}, but queues are cluster-wide;"
                " leave metadata.namespace out"
            )
