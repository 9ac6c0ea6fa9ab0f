"""The workloads of the package, each with settings as a workload of a stack file has them."""

from dataclasses import replace
from typing import Final

from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.package.request import NEWEST_KAI, ComponentRequest, Result, by_types
from kai_fleet.settings.sections import platform
from kai_fleet.settings.sections.workloads import Workload
from kai_fleet.workloads import placement
from kai_fleet.workloads.pods import PodArgs
from kai_fleet.workloads.vllm_server import VllmServerArgs

_KINDS: Final = {"GpuPod": "pod", "GpuDeployment": "deployment", "VllmServer": "vllm"}
# The cluster and the team of a workload alone, which are judged with it and not made.
_SOME_CLUSTER: Final = {"name": "cluster", "context": "cluster"}
_SOME_TEAM: Final = "team"


def workload(request: ComponentRequest) -> Result:
    """A pod, a deployment or a vLLM server."""
    request.arguments()
    args, inputs, name = _arguments(request), request.inputs, request.name
    pod = args if isinstance(args, PodArgs) else args.pod
    # With outputs in their places.
    pod = replace(
        pod,
        namespace=inputs.at("namespace") or pod.namespace,
        shard=inputs.raw.get("shard"),
        image=inputs.at("image") or pod.image,
        env={key: inputs.at("env", key) for key in pod.env},
    )
    args = pod if isinstance(args, PodArgs) else replace(args, pod=pod)
    if isinstance(args, VllmServerArgs):
        args = replace(args, hugging_face_token=inputs.at("huggingFaceToken"))
    component, more = placement.declare(name, args, request.on_cluster())
    return component, {"namespace": pod.namespace, **more}


def _arguments(request: ComponentRequest) -> placement.WorkloadArgs:
    """Those of a stack file's workload with these inputs."""
    raw, name = request.inputs.raw, request.name
    own = request.part(of=Workload)
    own.pop("namespace", None)
    if queue := raw.get("queue"):
        scheduler = {"mode": "virtual", "version": NEWEST_KAI}
        some_team = {"scheduler": scheduler, "gpus": 1_000_000, "queues": {queue: {}}}
    else:
        some_team = {"scheduler": {"mode": "default"}, "gpus": 1_000_000}
    if kind := (own.get("gpu") or {}).get("slice"):
        some_team["isolation"] = {"devices": {kind: 1_000_000}}
    stack = {
        "cluster": _SOME_CLUSTER,
        "gpu": {"resource": raw.get("gpuResource", platform.NVIDIA)},
        "teams": {_SOME_TEAM: some_team},
        "workloads": {name: {"team": _SOME_TEAM, "kind": _KINDS[request.kind], **own}},
    }
    settings = request.settings(stack, {f"workloads.{name}": ""}, judge=by_types)
    return placement.arguments(fleet_of(settings).workloads[name])
