"""What runs on a team's GPUs: a pod, a deployment, a vLLM server."""

from kai_fleet.workloads.pods import GpuDeployment, GpuDeploymentArgs, GpuPod, PodArgs
from kai_fleet.workloads.vllm_server import VllmServer, VllmServerArgs

__all__ = [
    "GpuDeployment",
    "GpuDeploymentArgs",
    "GpuPod",
    "PodArgs",
    "VllmServer",
    "VllmServerArgs",
]
