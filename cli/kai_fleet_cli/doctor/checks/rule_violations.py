"""Pods and queues written so that KAI does nothing with them, by the program's own rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kai_fleet.fleet.model import DeclaredCluster, DeclaredKai
from kai_fleet.fleet.pods import PodTemplate
from kai_fleet.fleet.queues import RESOURCES, DeclaredQueue, QueueShare
from kai_fleet.kai.keys import POD_GROUP
from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot, TeamState
from kai_fleet_cli.doctor.finding import Finding
from kai_fleet_cli.doctor.objects import Object, name_of, namespace_of, pod_subject, spec, status
from kai_fleet_policies.adapters.pod_templates import workloads
from kai_fleet_policies.problem import Level, Problem
from kai_fleet_policies.rules import Rule, problems_of
from kai_fleet_policies.rules.queues import queue_depth, queue_tree
from kai_fleet_policies.rules.workloads import (
    workload_gpu_request,
    workload_gpu_sharing,
    workload_known_keys,
    workload_leaf_queue,
    workload_scheduler,
)

NAME = "pods"
QUEUES = "queue-tree"
# A pod that has a node is past what the others look at.
_WAITING = (workload_leaf_queue, workload_scheduler, workload_gpu_request, workload_gpu_sharing)
_ALWAYS = (workload_known_keys,)
_SAID_BY_LEAF_QUEUE = "has schedulerName: kai-scheduler but no label"


def check(look: Snapshot) -> Iterator[Finding]:
    """The queues of each cluster, and its pods that are not done."""
    for cluster in look.with_kai:
        for problem in _asked((queue_tree, queue_depth), _cluster(cluster, ())):
            yield cluster.broken(QUEUES, problem.subject, *_cause_and_fix(problem))
    for cluster in look.clusters:
        yield from _pods(look, cluster)


def wrong(look: Snapshot, cluster: ClusterState) -> frozenset[str]:
    """The pods of a cluster, by `path_of`, about which something is written wrong."""
    return frozenset(each.path for each in _problems(look, cluster, _open(look, cluster)))


def path_of(pod: Object) -> str:
    """What a pod is known by among all of its cluster."""
    return str(pod["metadata"].get("uid") or pod_subject(pod))


def _pods(look: Snapshot, cluster: ClusterState) -> Iterator[Finding]:
    by_path = {path_of(pod): pod for pod in _open(look, cluster)}
    said: set[str] = set()
    for problem in _problems(look, cluster, list(by_path.values())):
        pod = by_path.get(problem.path)
        if pod is None or problem.message.startswith(_SAID_BY_LEAF_QUEUE):
            continue
        cause, fix = _cause_and_fix(problem)
        if cause not in said or problem.path not in said:
            said |= {cause, problem.path}
            yield cluster.broken(problem.rule, pod_subject(pod), cause, fix)


def _open(look: Snapshot, cluster: ClusterState) -> list[Object]:
    return [
        pod
        for pod in look.own_pods(cluster)
        if status(pod).get("phase") in ("Pending", "Running")
        and not pod["metadata"].get("deletionTimestamp")
    ]


def _problems(look: Snapshot, cluster: ClusterState, pods: Sequence[Object]) -> list[Problem]:
    waiting = [pod for pod in pods if not spec(pod).get("nodeName")]
    scheduling = look.scheduling(cluster)
    if scheduling.kai is None:
        return []
    team = look.teams.get(cluster.name)
    every = _asked(_ALWAYS, _cluster(cluster, pods))
    judged = _cluster(cluster, waiting)
    if scheduling is not cluster:
        judged = replace(
            judged,
            scheduled_by=_cluster(scheduling, ()),
            team_queue=_queue_of(team),
        )
    return [*every, *_asked(_WAITING, judged)]


def _queue_of(team: TeamState | None) -> str | None:
    return team.wanted.queue if team is not None else None


def _asked(rules: Sequence[Rule], cluster: DeclaredCluster) -> list[Problem]:
    return [
        problem
        for rule in rules
        for problem in problems_of(rule, cluster)
        if problem.level is Level.MANDATORY and not problem.undecided
    ]


def _cluster(seen: ClusterState, pods: Sequence[Object]) -> DeclaredCluster:
    """What the rules look at, from live objects."""
    release = seen.kai
    return DeclaredCluster(
        name=seen.name,
        path=seen.wanted.key,
        kai=(DeclaredKai(release.version, gpu_sharing=seen.wanted.gpu_sharing),) if release else (),
        queues=tuple(_queue(item) for item in [*seen.all("queues"), *_absent(seen)]),
        workloads=tuple(_workload(pod, seen) for pod in pods),
    )


def _absent(seen: ClusterState) -> list[Object]:
    """Queues that the stack declares and nobody has: `queues` says so, and who needs them is well
    written.
    """
    there = {name_of(item) for item in seen.all("queues")}
    return [
        {"metadata": {"name": name}, "spec": wanted}
        for name, wanted in seen.wanted.queue_specs.items()
        if name not in there
    ]


def _workload(pod: Object, seen: ClusterState) -> PodTemplate:
    (found,) = workloads("Pod", pod, name_of(pod), path_of(pod))
    grouped = isinstance(found.pod_group, str) and _queue_of_group(seen, pod, found.pod_group)
    # KAI writes this one on every pod that it groups, also with a queue that there is not.
    if isinstance(found.annotations, Mapping) and not grouped:
        own = {key: value for key, value in found.annotations.items() if key != POD_GROUP}
        found = replace(found, annotations=own)
    # The API server fills it in where nobody wrote it.
    default = found.scheduler == "default-scheduler"
    return replace(found, scheduler=None) if default else found


def _queue_of_group(seen: ClusterState, pod: Object, name: str) -> bool:
    """Whether the PodGroup of a pod gives it a queue that is there."""
    group = seen.named("podgroups", name, namespace_of(pod))
    return group is not None and seen.named("queues", str(spec(group).get("queue"))) is not None


def _queue(item: Object) -> DeclaredQueue:
    resources = spec(item).get("resources") or {}
    shares = {
        resource: QueueShare(
            float(share.get("quota", 0)), share.get("limit"), float(share.get("overQuotaWeight", 0))
        )
        for resource in RESOURCES
        if (share := resources.get(resource)) is not None
    }
    return DeclaredQueue(name_of(item), spec(item).get("parentQueue") or None, shares)


def _cause_and_fix(problem: Problem) -> tuple[str, str]:
    """A rule's message is both, parted by its last semicolon."""
    cause, _, fix = problem.message.rpartition("; ")
    return (cause, fix) if cause else (problem.message, "")
