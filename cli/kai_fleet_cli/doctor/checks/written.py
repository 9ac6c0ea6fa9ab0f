"""Pods written so that KAI does nothing with them, by the rules of a stack."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kai_fleet.fleet import cluster as fleet
from kai_fleet.fleet.pod_templates import workloads
from kai_fleet.fleet.pods import PodTemplate
from kai_fleet.fleet.queues import DeclaredQueue
from kai_fleet.kube.objects import KubeObject
from kai_fleet.releases.keys import POD_GROUP
from kai_fleet_cli.doctor.causes import Fault
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot
from kai_fleet_cli.doctor.usage import queue_of
from kai_fleet_policies.problem import Level, Problem, problems_of
from kai_fleet_policies.rules.workloads import (
    workload_gpu_request,
    workload_gpu_sharing,
    workload_known_keys,
    workload_leaf_queue,
    workload_scheduler,
)

# A pod that has a node is past what these judge.
_WAITING: Final = (
    *(workload_leaf_queue, workload_scheduler),
    *(workload_gpu_request, workload_gpu_sharing),
)
_ALWAYS: Final = (workload_known_keys,)
_BY_LEAF_QUEUE: Final = "has schedulerName: kai-scheduler but no label"


def written(
    pods: Sequence[KubeObject], cluster: Cluster, snapshot: Snapshot
) -> Mapping[tuple[str, str], list[Fault]]:
    """What is wrong with how pods are written, by namespace and name."""
    scheduling, team = snapshot.scheduling(cluster), snapshot.team_of(cluster)
    found: dict[tuple[str, str], list[Fault]] = defaultdict(list)
    if scheduling.kai is None:
        return found
    live = [it for it in pods if it.phase in ("Pending", "Running") and _stays(it)]
    waiting = _judged(cluster, [pod for pod in live if not pod.spec.get("nodeName")])
    if scheduling is not cluster:
        queue = team.queue if team is not None else None
        waiting = replace(waiting, scheduled_by=_judged(scheduling, ()), team_queue=queue)
    for problem in (*_problems(_ALWAYS, _judged(cluster, live)), *_problems(_WAITING, waiting)):
        namespace, _, name = problem.path.partition("/")
        cause, _, fix = problem.message.rpartition("; ")
        fault = Fault("pod", problem.path, cause or problem.message, fix, check=problem.rule)
        if _BY_LEAF_QUEUE not in problem.message and fault not in found[namespace, name]:
            found[namespace, name].append(fault)
    return {place: faults for place, faults in found.items() if faults}


def _stays(pod: KubeObject) -> bool:
    return not pod["metadata"].get("deletionTimestamp")


def _problems(rules: Sequence[Any], cluster: fleet.Cluster) -> Iterator[Problem]:
    for rule in rules:
        for problem in problems_of(rule, cluster):
            if problem.level is Level.MANDATORY and "/" in problem.path:
                yield problem


def _judged(cluster: Cluster, pods: Sequence[KubeObject]) -> fleet.Cluster:
    """What the rules judge, from live objects.

    A queue that is declared and not there is another check's: who names it is well written.
    """
    release = cluster.kai
    there = {item.name: queue_of(item) for item in cluster.all("queues")}
    declared = cluster.desired.queues
    absent = [DeclaredQueue(it.name, it.parent) for it in declared if it.name not in there]
    return fleet.Cluster(
        name=cluster.name,
        kai=(fleet.Kai(release.version, sharing=cluster.desired.sharing),) if release else (),
        queues=(*there.values(), *absent),
        workloads=tuple(_workload(pod, cluster) for pod in pods),
    )


def _workload(pod: KubeObject, cluster: Cluster) -> PodTemplate:
    path = f"{pod.namespace}/{pod.name}"
    (workload,) = workloads("Pod", pod, pod.name, path)
    # KAI writes this annotation on every pod that it groups, also with a queue that is not there.
    group = cluster.named("podgroups", pod.annotations.get(POD_GROUP, ""), pod.namespace)
    queue = str(group.spec.get("queue")) if group is not None else ""
    if isinstance(workload.annotations, Mapping) and not cluster.named("queues", queue):
        own = {key: it for key, it in workload.annotations.items() if key != POD_GROUP}
        workload = replace(workload, annotations=own)
    # The API server fills it in where nobody wrote it.
    default = workload.scheduler == "default-scheduler"
    return replace(workload, scheduler=None) if default else workload
