"""What runs on a team's GPUs: a pod, a deployment, a vLLM server."""

from kai_fleet.workloads.gpu_deployment import GpuDeployment, GpuDeploymentArgs
from kai_fleet.workloads.gpu_pod import GpuPod
from kai_fleet.workloads.pod_template import PodArgs
from kai_fleet.workloads.vllm_server import VllmServer, VllmServerArgs

__all__ = [
    "GpuDeployment",
    "GpuDeploymentArgs",
    "GpuPod",
    "PodArgs",
    "VllmServer",
    "VllmServerArgs",
]
