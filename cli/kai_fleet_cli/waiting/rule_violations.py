"""Pods and queues written so that KAI does nothing with them, by the program's own rules."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kai_fleet.finding import Finding, Level
from kai_fleet.fleet.cluster import Cluster, Kai
from kai_fleet.fleet.pod_templates import workloads
from kai_fleet.fleet.pods import PodTemplate
from kai_fleet.fleet.queues import DeclaredQueue
from kai_fleet.kube.objects import KubeObject
from kai_fleet.releases.keys import POD_GROUP
from kai_fleet_cli.usage import queue_of
from kai_fleet_cli.waiting.read_cluster import ClusterPods, Findings, ReadCluster
from kai_fleet_policies.rules.gpus import workload_gpu_request, workload_gpu_sharing
from kai_fleet_policies.rules.queues import queue_depth, queue_tree
from kai_fleet_policies.rules.rule import Rule
from kai_fleet_policies.rules.workloads import (
    workload_known_keys,
    workload_leaf_queue,
    workload_scheduler,
)

_ALWAYS = (workload_known_keys,)
# A pod that has a node is past what these look at.
_WAITING = (workload_leaf_queue, workload_scheduler, workload_gpu_request, workload_gpu_sharing)
_SAID_BY_LEAF_QUEUE = "has schedulerName: kai-scheduler but no label"


def check_queues(cluster: ReadCluster) -> Findings:
    """The queues of a cluster with a KAI."""
    for problem in _judge((queue_tree, queue_depth), _cluster(cluster, ())):
        yield cluster.broken(problem.subject, problem.cause, problem.fix, check=queue_tree.name)


def check(of: ClusterPods) -> Findings:
    """The pods of a cluster that are not done, by the rule's name."""
    by_path = {path_of(pod): pod for pod in of.pods}
    told: set[tuple[str, str]] = set()
    for problem in _problems(of):
        pod = by_path.get(problem.path)
        if pod is None or problem.message.startswith(_SAID_BY_LEAF_QUEUE):
            continue
        cause, fix = problem.cause, problem.fix
        if (cause, problem.path) not in told:
            told.add((cause, problem.path))
            yield of.cluster.broken(pod.pod_subject, cause, fix, check=problem.check)


def wrong(of: ClusterPods) -> frozenset[str]:
    """The pods of a cluster, by `path_of`, about which something is written wrong."""
    return frozenset(each.path for each in _problems(of))


def path_of(pod: KubeObject) -> str:
    """What a pod is known by among all of its cluster."""
    return str(pod["metadata"].get("uid") or pod.pod_subject)


def _problems(of: ClusterPods) -> list[Finding]:
    if of.scheduling.kai is None:
        return []
    pods = [
        pod
        for pod in of.pods
        if pod.phase in ("Pending", "Running") and not pod["metadata"].get("deletionTimestamp")
    ]
    waiting = _cluster(of.cluster, [pod for pod in pods if not pod.spec.get("nodeName")])
    if of.scheduling is not of.cluster:
        queue = of.team.queue if of.team is not None else None
        waiting = replace(waiting, scheduled_by=_cluster(of.scheduling, ()), team_queue=queue)
    return [*_judge(_ALWAYS, _cluster(of.cluster, pods)), *_judge(_WAITING, waiting)]


def _judge(rules: Sequence[Rule], cluster: Cluster) -> list[Finding]:
    return [
        problem
        for rule in rules
        for problem in rule.findings(cluster)
        if problem.level is Level.MANDATORY and not problem.undecided
    ]


def _cluster(state: ReadCluster, pods: Sequence[KubeObject]) -> Cluster:
    """What the rules look at, from live objects.

    A queue that the stack declares and nobody has is `queues`': who needs it is well written.
    """
    release, sharing = state.kai, state.wanted.sharing
    there = {item.name: queue_of(item) for item in state.all("queues")}
    absent = [
        DeclaredQueue(it.name, it.parent, it.shares)
        for it in state.wanted.queues
        if it.name not in there
    ]
    return Cluster(
        name=state.name,
        path=state.wanted.key,
        kai=(Kai(release.version, sharing=sharing),) if release else (),
        queues=(*there.values(), *absent),
        workloads=tuple(_workload(pod, state) for pod in pods),
    )


def _workload(pod: KubeObject, state: ReadCluster) -> PodTemplate:
    (workload,) = workloads("Pod", pod, pod.name, path_of(pod))
    # KAI writes this one on every pod that it groups, also with a queue that there is not.
    if isinstance(workload.annotations, Mapping) and not _has_queue(state, pod, workload.pod_group):
        own = {key: value for key, value in workload.annotations.items() if key != POD_GROUP}
        workload = replace(workload, annotations=own)
    # The API server fills it in where nobody wrote it.
    default = workload.scheduler == "default-scheduler"
    return replace(workload, scheduler=None) if default else workload


def _has_queue(state: ReadCluster, pod: KubeObject, pod_group: object) -> bool:
    """Whether the PodGroup of a pod gives it a queue that is there."""
    group = state.named("podgroups", str(pod_group), pod.namespace) if pod_group else None
    return group is not None and state.named("queues", str(group.spec.get("queue"))) is not None
