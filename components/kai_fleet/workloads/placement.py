"""The workloads of a stack file, placed in their teams' vClusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import pulumi
import pulumi_kubernetes as kubernetes

from kai_fleet.fleet.model import DeclaredWorkload, Fleet
from kai_fleet.options import after
from kai_fleet.workloads.pods import GpuDeployment, GpuDeploymentArgs, GpuPod, PodArgs
from kai_fleet.workloads.vllm_server import IMAGE, VllmServer, VllmServerArgs

if TYPE_CHECKING:
    from kai_fleet.team import Team

WorkloadArgs: TypeAlias = PodArgs | GpuDeploymentArgs | VllmServerArgs


def place(fleet: Fleet, teams: Mapping[str, Team]) -> dict[str, dict[str, Any]]:
    """Declare the workloads of these teams once each can run its own; what to say of each.

    Raises pulumi.RunError for two namespaces whose resources would have one name.
    """
    _refuse_one_name(fleet)
    namespaces: dict[str, pulumi.Resource] = {}
    told = {}
    for name, workload in fleet.workloads.items():
        if workload.team not in teams:
            continue
        own, team = workload.own, teams[workload.team]
        inside, before = team.vcluster.within(team), [*team.ready]
        if own.namespace != "default":
            resource = f"{workload.team}-{own.namespace}"
            if resource not in namespaces:
                namespaces[resource] = kubernetes.core.v1.Namespace(
                    resource, metadata={"name": own.namespace}, opts=inside
                )
            before.append(namespaces[resource])
        _, more = declare(name, arguments(workload), after(inside, *before))
        told[name] = {
            "team": workload.team,
            "kind": own.kind,
            "namespace": own.namespace,
            "queue": workload.queue,
            "gpu": own.gpu.in_words() if own.gpu else None,
            **more,
        }
    return told


def _refuse_one_name(fleet: Fleet) -> None:
    first: dict[str, DeclaredWorkload] = {}
    for name, workload in fleet.workloads.items():
        team, namespace = workload.team, workload.own.namespace
        if namespace == "default":  # it is there
            continue
        other = first.setdefault(f"{team}-{namespace}", workload)
        if other.team != team:
            raise pulumi.RunError(
                f"kai-fleet:workloads.{name}.namespace: {namespace} of team {team} and"
                f" {other.own.namespace} of team {other.team} would both be the resource"
                f" {team}-{namespace}; give one of the two another name"
            )


def declare(
    name: str, args: WorkloadArgs, opts: pulumi.ResourceOptions
) -> tuple[pulumi.ComponentResource, dict[str, str]]:
    """The component that has these arguments, and its `url` where it serves one."""
    match args:
        case PodArgs():
            return GpuPod(name, args, opts), {}
        case GpuDeploymentArgs():
            return GpuDeployment(name, args, opts), {}
        case VllmServerArgs():
            server = VllmServer(name, args, opts)
            return server, {"url": server.url}


def arguments(workload: DeclaredWorkload) -> WorkloadArgs:
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
