"""Namespaces that belong to KAI, the GPU operator and Kubernetes stay theirs."""

from typing import Final

from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet_policies.rules.kai import of_kai
from kubectl_fleet.declared.pods import PodTemplate
from kubectl_fleet.declared.unknown import UNKNOWN, pairs
from kubectl_fleet.releases.keys import KAI_NAMESPACE, SCALING_NAMESPACE
from kubectl_fleet.rules.problem import Level, ProblemPlace, Problems, Severity, called, of_workload

LEVEL = Level.MANDATORY
SEVERITY = Severity.CRITICAL
WHY = (
    "KAI's admission lets pods in these namespaces through unseen (W8), and removing KAI deletes"
    " every Deployment in its own (K11)."
)
REMEDY = "Put workloads in a namespace of the team, and only KAI in kai-scheduler."

# What KAI itself needs beside its release: pull secrets, rights, network rules, scraping.
_KAI_SUPPORT: Final = frozenset(
    (
        *("NetworkPolicy", "PodMonitor", "ServiceMonitor"),
        *("Role", "RoleBinding", "Secret", "ServiceAccount"),
    )
)


def check(cluster: DeclaredCluster) -> Problems:
    """Workloads in any reserved namespace; in KAI's own, everything that is not KAI."""
    for workload in cluster.workloads:
        place = of_workload(workload, cluster)
        if workload.namespace is UNKNOWN:
            yield place.undecided("its namespace is known")
        elif workload.namespace in cluster.reserved and not _is_scaling_pod(workload):
            yield place.mandatory(
                f"runs in {workload.namespace}, which is reserved for the platform;"
                " write a namespace of the team's own, for example team-a"
            )
    for thing in cluster.namespaced:
        place = ProblemPlace(f"{thing.kind} {called(thing.name)} in {cluster.name}", thing.path)
        if thing.namespace is UNKNOWN:
            if thing.kind == "Release":
                yield place.undecided("its namespace is known")
        elif thing.namespace == KAI_NAMESPACE and thing.kind not in _KAI_SUPPORT:
            what = f"the chart {thing.chart}" if thing.chart else thing.kind
            yield place.mandatory(
                f"puts {what} in {KAI_NAMESPACE}, where removing KAI deletes every Deployment;"
                " write another namespace"
            )
    for release in cluster.kai:
        place = of_kai(release, cluster, "namespace")
        if release.namespace is UNKNOWN:
            yield place.undecided("its namespace is known")
        elif release.namespace != KAI_NAMESPACE:
            yield place.mandatory(
                f"is installed in {release.namespace or 'default'}, but its clean-up works in"
                f" {KAI_NAMESPACE} only; write namespace: {KAI_NAMESPACE}"
            )


def _is_scaling_pod(workload: PodTemplate) -> bool:
    """Whether it is one of those that KAI's node-scale-adjuster makes in its namespace."""
    has_label = "shared-gpu-pod-name" in pairs(workload.labels)
    return workload.namespace == SCALING_NAMESPACE and has_label
