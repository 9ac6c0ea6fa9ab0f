"""Namespaces that belong to KAI, the GPU operator and Kubernetes stay theirs."""

import re
from typing import Final

from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.fleet.pods import PodTemplate
from kai_fleet.releases.keys import KAI_NAMESPACE, SCALING_NAMESPACE
from kai_fleet.values import UNKNOWN, pairs
from kai_fleet_policies.problem import Level, ProblemPlace, Problems, Severity, called, of_workload
from kai_fleet_policies.rules.kai import of_kai

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
# In the type of what Pulumi's Chart makes, object by object: the third part of its URN.
_OF_CHART: Final = re.compile(r"\bhelm\.sh/v\d:Chart\$")


def check(cluster: DeclaredCluster) -> Problems:
    """Workloads in any reserved namespace; in KAI's own, everything that is not KAI.

    What a Chart makes is the chart's, as in a Release: only KAI's namespace is closed to it.
    """
    placed = [
        *((it.namespace, it.path) for it in cluster.workloads),
        *((it.namespace, it.path) for it in cluster.objects),
    ]
    by_chart = [at for ns, at in placed if ns == KAI_NAMESPACE and _by_chart(at)]
    if by_chart:
        yield ProblemPlace(f"Chart in {cluster.name}", min(by_chart)).mandatory(
            f"makes the objects of a chart in {KAI_NAMESPACE} without Helm. KAI's charts need their"
            " Helm hooks, which a Chart of Pulumi's leaves out or makes at the wrong moment (K15):"
            " declare KAI by kubernetes:helm.sh/v3:Release, with the same chart, version and"
            " values; another chart goes into another namespace"
        )
    for workload in cluster.workloads:
        if _by_chart(workload.path):
            continue
        place = of_workload(workload, cluster)
        if workload.namespace is UNKNOWN:
            yield place.undecided("its namespace is known")
        elif workload.namespace in cluster.reserved and not _is_scaling_pod(workload):
            yield place.mandatory(
                f"runs in {workload.namespace}, which is reserved for the platform;"
                " write a namespace of the team's own, for example team-a"
            )
    for thing in cluster.objects:
        if _by_chart(thing.path):
            continue
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


def _by_chart(path: str) -> bool:
    parts = path.split("::", 3)
    return len(parts) == 4 and _OF_CHART.search(parts[2]) is not None


def _is_scaling_pod(workload: PodTemplate) -> bool:
    """Whether it is one of those that KAI's node-scale-adjuster makes in its namespace."""
    has_label = "shared-gpu-pod-name" in pairs(workload.labels)
    return workload.namespace == SCALING_NAMESPACE and has_label
