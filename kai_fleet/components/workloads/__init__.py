"""What runs on a team's GPUs: a pod, a deployment, a vLLM server."""

from kai_fleet.components.workloads.gpu_deployment import GpuDeployment, GpuDeploymentArgs
from kai_fleet.components.workloads.gpu_pod import GpuPod
from kai_fleet.components.workloads.pod_template import PodArgs
from kai_fleet.components.workloads.vllm_server import VllmServer, VllmServerArgs

__all__ = [
    "GpuDeployment",
    "GpuDeploymentArgs",
    "GpuPod",
    "PodArgs",
    "VllmServer",
    "VllmServerArgs",
]
