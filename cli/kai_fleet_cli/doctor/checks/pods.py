"""Pods that wait, are refused or written wrong, and such queues, in every cluster of a stack."""

from kai_fleet_cli.doctor.checks.kai.gpu_sharing import GPU_STACK
from kai_fleet_cli.doctor.cluster_state import Findings, Snapshot
from kai_fleet_cli.waiting import pending, pod_groups, rule_violations
from kai_fleet_cli.waiting.refused import refusals


def check_written(snapshot: Snapshot) -> Findings:
    """The queues of each cluster, and its pods that are not done."""
    for cluster in snapshot.with_kai:
        yield from rule_violations.check_queues(cluster)
    for of in snapshot.pods_of_each:
        yield from rule_violations.check(of)


def check_pending(snapshot: Snapshot) -> Findings:
    """Every pod without a node that is well written."""
    for of in snapshot.pods_of_each:
        yield from pending.check(of)


def check_groups(snapshot: Snapshot) -> Findings:
    """Every cluster whose KAI groups the pods in it."""
    for cluster in snapshot.with_kai:
        yield from pod_groups.check(cluster)


def check_refused(snapshot: Snapshot) -> Findings:
    """What could not be made, each with the name of what its message means."""
    for cluster, of in zip(snapshot.clusters, snapshot.pods_of_each, strict=True):
        for refusal in refusals(of, GPU_STACK | snapshot.copied(cluster)):
            if (reason := cluster.explain(refusal.text)) is not None:
                yield cluster.broken(refusal.subject, *reason)
