"""Namespaces that belong to KAI, the GPU operator and Kubernetes stay theirs."""

from collections.abc import Iterator
from typing import Final

from kai_fleet.fleet.model import DeclaredCluster
from kubectl_fleet.declared.pods import PodTemplate
from kubectl_fleet.declared.unknown import UNKNOWN
from kubectl_fleet.releases.keys import KAI_NAMESPACE, SCALING_NAMESPACE
from kubectl_fleet.rules.problem import (
    Level,
    Problem,
    Severity,
    at,
    called,
    mandatory,
    undecided,
    workload_subject,
)

NAME = "namespace-reserved"
LEVEL = Level.MANDATORY
SEVERITY = Severity.CRITICAL
WHY = (
    "KAI's admission lets pods in these namespaces through unseen (W8), and removing KAI deletes"
    " every Deployment in its own (K11)."
)
REMEDY = "Put workloads in a namespace of the team, and only KAI in kai-scheduler."

# What KAI itself needs beside its release: pull secrets, rights, network rules, scraping.
_KAI_SUPPORT: Final = frozenset(
    {
        "NetworkPolicy",
        "PodMonitor",
        "Role",
        "RoleBinding",
        "Secret",
        "ServiceAccount",
        "ServiceMonitor",
    }
)


def check(cluster: DeclaredCluster) -> Iterator[Problem]:
    """Workloads in any reserved namespace; in KAI's own, everything that is not KAI."""
    for workload in cluster.workloads:
        subject = workload_subject(workload, cluster)
        if workload.namespace is UNKNOWN:
            yield undecided(subject, workload.path, "its namespace is known")
        elif workload.namespace in cluster.reserved and not _is_scaling_pod(workload):
            yield mandatory(
                subject,
                workload.path,
                f"runs in {workload.namespace}, which is reserved for the platform;"
                " write a namespace of the team's own, for example team-a",
            )
    for thing in cluster.namespaced:
        subject = f"{thing.kind} {called(thing.name)} in {cluster.name}"
        if thing.namespace is UNKNOWN:
            if thing.kind == "Release":
                yield undecided(subject, thing.path, "its namespace is known")
        elif thing.namespace == KAI_NAMESPACE and thing.kind not in _KAI_SUPPORT:
            what = f"the chart {thing.chart}" if thing.chart else thing.kind
            yield mandatory(
                subject,
                thing.path,
                f"puts {what} in {KAI_NAMESPACE}, where removing KAI deletes every Deployment;"
                " write another namespace",
            )
    for release in cluster.kai:
        subject = f"KAI of {cluster.name}"
        path = at(release.path, "namespace")
        if release.namespace is UNKNOWN:
            yield undecided(subject, path, "its namespace is known")
        elif release.namespace != KAI_NAMESPACE:
            yield mandatory(
                subject,
                path,
                f"is installed in {release.namespace or 'default'}, but its clean-up works in"
                f" {KAI_NAMESPACE} only; write namespace: {KAI_NAMESPACE}",
            )


def _is_scaling_pod(workload: PodTemplate) -> bool:
    """Whether it is one of those that KAI's node-scale-adjuster makes in its namespace."""
    labels = {} if workload.labels is UNKNOWN else workload.labels
    return workload.namespace == SCALING_NAMESPACE and "shared-gpu-pod-name" in labels
