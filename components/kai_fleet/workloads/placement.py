"""The workloads of a stack file, placed in their teams' vClusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pulumi
import pulumi_kubernetes as kubernetes

from kai_fleet.settings import Settings
from kai_fleet.settings.sections.workloads import Workload
from kai_fleet.vcluster.virtual_cluster import MOVED
from kai_fleet.workloads import gpu_deployment, gpu_pod, vllm_server
from kai_fleet.workloads.gpu_deployment import GpuDeployment, GpuDeploymentArgs
from kai_fleet.workloads.gpu_pod import GpuPod
from kai_fleet.workloads.pod_template import PodArgs
from kai_fleet.workloads.vllm_server import IMAGE, VllmServer, VllmServerArgs

if TYPE_CHECKING:
    from kai_fleet.team import Team

NVIDIA: Final = "nvidia"
# What every Kubernetes has from the start.
_PRESENT: Final = ("default",)


def place(settings: Settings, teams: Mapping[str, Team]) -> dict[str, dict[str, Any]]:
    """Declare the workloads of these teams once each can run its own; what to say of each."""
    namespaces: dict[tuple[str, str], pulumi.Resource] = {}
    return {
        name: _placed(settings, name, teams[workload.team], namespaces)
        for name, workload in settings.workloads.items()
        if workload.team in teams
    }


def _placed(
    settings: Settings, name: str, team: Team, namespaces: dict[tuple[str, str], pulumi.Resource]
) -> dict[str, Any]:
    workload = settings.workloads[name]
    inside = pulumi.ResourceOptions(
        parent=team,
        provider=team.vcluster.provider,
        deleted_with=team.vcluster.provider,
        aliases=MOVED,
    )
    where = (workload.team, workload.namespace)
    if workload.namespace not in _PRESENT and where not in namespaces:
        namespaces[where] = kubernetes.core.v1.Namespace(
            f"{workload.team}-{workload.namespace}",
            metadata={"name": workload.namespace},
            opts=inside,
        )
    before = [*team.ready, *([namespaces[where]] if where in namespaces else [])]
    opts = pulumi.ResourceOptions.merge(inside, pulumi.ResourceOptions(depends_on=before))
    summary = {
        "team": workload.team,
        "kind": workload.kind,
        "namespace": workload.namespace,
        "queue": workload.queue_of(settings.teams[workload.team]),
        "gpu": workload.gpu.in_words() if workload.gpu else None,
    }
    match arguments(settings, name):
        case PodArgs() as args:
            GpuPod(name, args, opts)
        case GpuDeploymentArgs() as args:
            GpuDeployment(name, args, opts)
        case VllmServerArgs() as args:
            summary["url"] = VllmServer(name, args, opts).url
    return summary


def arguments(settings: Settings, name: str) -> PodArgs | GpuDeploymentArgs | VllmServerArgs:
    """What the component of a workload gets. Raises ValueError as those arguments do."""
    workload = settings.workloads[name]
    queue = workload.queue_of(settings.teams[workload.team])
    pod = PodArgs(
        image=workload.image or IMAGE,
        queue=queue,
        shard=settings.shard_of(workload.team, queue),
        namespace=workload.namespace,
        command=workload.command,
        args=workload.args,
        env=workload.env,
        gpu=workload.gpu,
        cpu=workload.cpu,
        memory=workload.memory,
        runtime_class=workload.runtime_class or _runtime_class(settings, workload),
        priority_class=workload.priority_class,
        topology=workload.topology,
        gpu_resource=settings.gpu.resource,
        ready_seconds=workload.ready_seconds,
    )
    if workload.kind == "pod":
        return pod
    if workload.kind == "deployment":
        return GpuDeploymentArgs(pod, workload.replicas)
    token = workload.hugging_face_token
    return VllmServerArgs(
        pod,
        workload.model or "",
        workload.replicas,
        token.get_secret_value() if token else None,
    )


def manifest(settings: Settings, name: str) -> tuple[str, dict[str, Any]]:
    """Kind and content of the object that carries a workload's pods, as it is declared.

    Raises ValueError as its arguments do.
    """
    match arguments(settings, name):
        case PodArgs() as args:
            return "Pod", gpu_pod.manifest(name, args)
        case GpuDeploymentArgs() as args:
            return "Deployment", gpu_deployment.manifest(name, args)
        case VllmServerArgs() as args:
            return "Deployment", vllm_server.manifest(name, args)


def _runtime_class(settings: Settings, workload: Workload) -> str | None:
    """`nvidia` where the GPU stack makes that class and the workload has a GPU."""
    return NVIDIA if workload.gpu is not None and settings.gpu.provider != "none" else None
