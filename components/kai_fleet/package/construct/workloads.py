"""Pods, deployments and vLLM servers alone, on any cluster with a KAI."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.package.construct.clusters import NEWEST
from kai_fleet.package.construct.request import CLUSTER, Request, Result
from kai_fleet.workloads.gpu_deployment import GpuDeployment, GpuDeploymentArgs
from kai_fleet.workloads.gpu_pod import GpuPod
from kai_fleet.workloads.placement import arguments
from kai_fleet.workloads.pod_template import PodArgs
from kai_fleet.workloads.vllm_server import VllmServer, VllmServerArgs

# Whose it is, where only the workload is somebody's.
_TEAM: Final = "anybody"
_NOT_OF_IT: Final = ("cluster", "shard", "gpuResource", "namespace")


def workload(asked: Request) -> Result:
    """The component of the asked kind."""
    asked.arguments()
    args = _arguments(asked)
    opts = asked.on_cluster()
    match args:
        case PodArgs():
            made: Any = GpuPod(asked.name, args, opts)
            pod = args
        case GpuDeploymentArgs():
            made, pod = GpuDeployment(asked.name, args, opts), args.pod
        case VllmServerArgs():
            made, pod = VllmServer(asked.name, args, opts), args.pod
    found: dict[str, Any] = {"namespace": pod.namespace}
    return made, {**found, "url": made.url} if isinstance(made, VllmServer) else found


def _arguments(asked: Request) -> PodArgs | GpuDeploymentArgs | VllmServerArgs:
    """As a stack file's workload has them, with outputs in their places."""
    raw, name = asked.given.raw, asked.name
    kind = {"GpuPod": "pod", "GpuDeployment": "deployment", "VllmServer": "vllm"}[asked.kind]
    own = {key: value for key, value in raw.items() if key not in _NOT_OF_IT}
    stack = {
        "cluster": CLUSTER,
        "gpu": {"resource": raw.get("gpuResource", "nvidia.com/gpu")},
        "teams": {_TEAM: _team(raw.get("queue"))},
        "workloads": {name: {"team": _TEAM, "kind": kind, **own}},
    }
    settings = asked.settings(stack, {f"workloads.{name}": ""}, rules=())
    args = arguments(fleet_of(settings).workloads[name])
    given, pod = asked.given, args if isinstance(args, PodArgs) else args.pod
    pod = replace(
        pod,
        namespace=given.input("namespace") or pod.namespace,
        shard=raw.get("shard"),
        image=given.input("image") or pod.image,
        env={key: given.input("env", key) for key in pod.env},
    )
    match args:
        case PodArgs():
            return pod
        case VllmServerArgs():
            return replace(args, pod=pod, hugging_face_token=given.input("huggingFaceToken"))
        case GpuDeploymentArgs():
            return replace(args, pod=pod)


def _team(queue: str | None) -> Mapping[str, Any]:
    if queue is None:
        return {"scheduler": {"mode": "default"}, "gpus": 1_000_000}
    scheduler = {"mode": "virtual", "version": NEWEST}
    return {"scheduler": scheduler, "gpus": 1_000_000, "queues": {queue: {}}}
