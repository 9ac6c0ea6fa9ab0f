"""What runs on a team's GPUs: a pod, a deployment, a vLLM server."""

from components.workloads.gpu_deployment import GpuDeployment, GpuDeploymentArgs
from components.workloads.gpu_pod import GpuPod
from components.workloads.pod_template import PodArgs
from components.workloads.vllm_server import VllmServer, VllmServerArgs

__all__ = [
    "GpuDeployment",
    "GpuDeploymentArgs",
    "GpuPod",
    "PodArgs",
    "VllmServer",
    "VllmServerArgs",
]
