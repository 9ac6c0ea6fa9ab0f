"""Pods and queues written so that KAI does nothing with them, by the program's own rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fleet.doctor.finding import Finding
from fleet.doctor.objects import Object, name_of, pod_subject, spec, status
from fleet.doctor.seen import Look, Seen, TeamSeen
from policies.model import RESOURCES, Cluster, KaiRelease, Queue, Share, Workload
from policies.pod_templates import workloads
from policies.problem import Level, Problem
from policies.rules import (
    queue_depth,
    queue_tree,
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


def check(look: Look) -> Iterator[Finding]:
    """The queues of each cluster, and its pods that are not done."""
    for cluster in look.clusters:
        if cluster.kai is None:
            continue
        for problem in _asked((queue_tree, queue_depth), _cluster(cluster, ())):
            yield cluster.broken(QUEUES, problem.subject, *_cause_and_fix(problem))
    for cluster in look.clusters:
        yield from _pods(look, cluster)


def wrong(look: Look, cluster: Seen, pod: Object) -> Problem | None:
    """The first thing that is wrong about how a pod is written; None for nothing."""
    found = _problems(look, cluster, [pod])
    return found[0] if found else None


def _pods(look: Look, cluster: Seen) -> Iterator[Finding]:
    by_path = {str(pod["metadata"].get("uid") or pod_subject(pod)): pod for pod in _open(cluster)}
    said: set[str] = set()
    for problem in _problems(look, cluster, list(by_path.values())):
        pod = by_path.get(problem.path)
        if pod is None or problem.message.startswith(_SAID_BY_LEAF_QUEUE):
            continue
        cause, fix = _cause_and_fix(problem)
        if cause not in said or problem.path not in said:
            said |= {cause, problem.path}
            yield cluster.broken(problem.rule, pod_subject(pod), cause, fix)


def _open(cluster: Seen) -> list[Object]:
    return [
        pod
        for pod in cluster.user_pods
        if status(pod).get("phase") in ("Pending", "Running")
        and not pod["metadata"].get("deletionTimestamp")
    ]


def _problems(look: Look, cluster: Seen, pods: Sequence[Object]) -> list[Problem]:
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


def _queue_of(team: TeamSeen | None) -> str | None:
    return team.wanted.queue if team is not None else None


def _asked(rules: Sequence[object], cluster: Cluster) -> list[Problem]:
    return [
        problem
        for rule in rules
        for problem in rule.check(cluster)  # type: ignore[attr-defined]
        if problem.level is Level.MANDATORY and not problem.undecided
    ]


def _cluster(seen: Seen, pods: Sequence[Object]) -> Cluster:
    """What the rules look at, from live objects."""
    release = seen.kai
    return Cluster(
        name=seen.name,
        path=seen.wanted.key,
        kai=(KaiRelease(release.version, gpu_sharing=seen.wanted.gpu_sharing),) if release else (),
        queues=tuple(_queue(item) for item in seen.all("queues")),
        workloads=tuple(_workload(pod) for pod in pods),
    )


def _workload(pod: Object) -> Workload:
    path = str(pod["metadata"].get("uid") or pod_subject(pod))
    (found,) = workloads("Pod", pod, name_of(pod), path)
    # The API server fills it in where nobody wrote it.
    default = found.scheduler == "default-scheduler"
    return replace(found, scheduler=None) if default else found


def _queue(item: Object) -> Queue:
    resources = spec(item).get("resources") or {}
    shares = {
        resource: Share(
            float(share.get("quota", 0)), share.get("limit"), float(share.get("overQuotaWeight", 0))
        )
        for resource in RESOURCES
        if (share := resources.get(resource)) is not None
    }
    return Queue(name_of(item), spec(item).get("parentQueue") or None, shares)


def _cause_and_fix(problem: Problem) -> tuple[str, str]:
    """A rule's message is both, parted by its last semicolon."""
    cause, _, fix = problem.message.rpartition("; ")
    return (cause, fix) if cause else (problem.message, "")
