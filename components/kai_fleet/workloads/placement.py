"""The workloads of a stack file, placed in their teams' vClusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pulumi
import pulumi_kubernetes as kubernetes

from kai_fleet.declaring import after
from kai_fleet.fleet.model import DeclaredWorkload, Fleet
from kai_fleet.workloads.pods import GpuDeployment, GpuDeploymentArgs, GpuPod, PodArgs
from kai_fleet.workloads.vllm_server import IMAGE, VllmServer, VllmServerArgs

if TYPE_CHECKING:
    from kai_fleet.team import Team


def place(fleet: Fleet, teams: Mapping[str, Team]) -> dict[str, dict[str, Any]]:
    """Declare the workloads of these teams once each can run its own; what to say of each."""
    namespaces: dict[tuple[str, str], pulumi.Resource] = {}
    return {
        name: _placed(workload, teams[workload.team], namespaces)
        for name, workload in fleet.workloads.items()
        if workload.team in teams
    }


def _placed(
    workload: DeclaredWorkload, team: Team, namespaces: dict[tuple[str, str], pulumi.Resource]
) -> dict[str, Any]:
    name, own = workload.name, workload.own
    inside = team.vcluster.within(team)
    where = (workload.team, own.namespace)
    if own.namespace != "default" and where not in namespaces:
        namespaces[where] = kubernetes.core.v1.Namespace(
            f"{workload.team}-{own.namespace}", metadata={"name": own.namespace}, opts=inside
        )
    before = [*team.ready, *([namespaces[where]] if where in namespaces else [])]
    opts = after(inside, *before)
    summary = {
        "team": workload.team,
        "kind": own.kind,
        "namespace": own.namespace,
        "queue": workload.queue,
        "gpu": own.gpu.in_words() if own.gpu else None,
    }
    match arguments(workload):
        case PodArgs() as args:
            GpuPod(name, args, opts)
        case GpuDeploymentArgs() as args:
            GpuDeployment(name, args, opts)
        case VllmServerArgs() as args:
            summary["url"] = VllmServer(name, args, opts).url
    return summary


def arguments(workload: DeclaredWorkload) -> PodArgs | GpuDeploymentArgs | VllmServerArgs:
    """What the component of a workload gets. Raises ValueError as those arguments do."""
    own = workload.own
    pod = PodArgs(
        image=own.image or IMAGE,
        queue=workload.queue,
        shard=workload.shard,
        namespace=own.namespace,
        command=own.command,
        args=own.args,
        env=own.env,
        gpu=own.gpu,
        cpu=own.cpu,
        memory=own.memory,
        runtime_class=workload.runtime_class,
        priority_class=own.priority_class,
        topology=own.topology,
        gpu_resource=workload.gpu_resource,
        ready_seconds=own.ready_seconds,
    )
    if own.kind == "pod":
        return pod
    if own.kind == "deployment":
        return GpuDeploymentArgs(pod, own.replicas)
    token = own.hugging_face_token
    return VllmServerArgs(
        pod, own.model or "", own.replicas, token.get_secret_value() if token else None
    )


def manifest(workload: DeclaredWorkload) -> tuple[str, dict[str, Any]]:
    """Kind and content of the object that carries a workload's pods, as it is declared.

    Raises ValueError as its arguments do.
    """
    args = arguments(workload)
    return "Pod" if isinstance(args, PodArgs) else "Deployment", args.manifest(workload.name)
