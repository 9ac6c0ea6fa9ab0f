"""A vLLM server of one model, that keeps to its share of the GPU."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pulumi
import pulumi_kubernetes as kubernetes

from kai_fleet.options import after, child_of
from kai_fleet.settings.sections.gpu_share import plain
from kai_fleet.settings.sections.workloads import MEMORY_FLAG
from kai_fleet.workloads.pods import SKIP_AWAIT, GpuDeploymentArgs, PodArgs, spec

# Pinned: `latest` would be another server after a restart.
IMAGE: Final = "vllm/vllm-openai:v0.11.0"
PORT: Final = 8000
SERVICE_PORT: Final = 80
# An image of 10 GB, a model of many more, and its compilation.
READY_SECONDS: Final = 1800
_EVERY: Final = 10  # seconds between two questions of a probe
_TOKEN_KEY: Final = "token"


@dataclass
class VllmServerArgs:
    """`pod.gpu` is devices or a fraction; `--gpu-memory-utilization` comes from it (W7).

    `pod.args` are further flags. `hugging_face_token` is for gated models: it is kept in a Secret,
    and never on a command line. Raises ValueError for a share that vLLM cannot keep to.
    """

    pod: PodArgs
    model: str
    replicas: int = 1
    hugging_face_token: pulumi.Input[str] | None = None

    def __post_init__(self) -> None:
        """vLLM takes a part of a GPU, and no number of MiB says which part that is."""
        gpu = self.pod.gpu
        if gpu is None or gpu.memory is not None:
            raise ValueError("vLLM needs a GPU; write gpu with devices or a fraction")

    def manifest(self, name: str, token_secret: pulumi.Input[str] | None = None) -> dict[str, Any]:
        """The Deployment as it is declared."""
        pod = replace(self.pod, command=["vllm", "serve"], args=[*_flags(self), *self.pod.args])
        own = spec(name, pod, _container(self, token_secret))
        # A Service called vllm would otherwise set VLLM_PORT to something that vLLM cannot read.
        own["enableServiceLinks"] = False
        if _parallel(self) > 1:
            # Its workers talk through shared memory, of which a container has 64 MiB.
            own["containers"][0]["volumeMounts"] = [{"name": "shm", "mountPath": "/dev/shm"}]
            own["volumes"] = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
        return GpuDeploymentArgs(pod, self.replicas).manifest(name, READY_SECONDS, own)


def _flags(args: VllmServerArgs) -> list[str]:
    gpu = args.pod.gpu
    flags = [args.model, f"--port={PORT}"]
    if gpu and gpu.fraction is not None:
        flags.append(f"{MEMORY_FLAG}={plain(gpu.fraction)}")
    if _parallel(args) > 1:
        flags.append(f"--tensor-parallel-size={_parallel(args)}")
    return flags


def _parallel(args: VllmServerArgs) -> int:
    """On how many GPUs one server runs."""
    gpu = args.pod.gpu
    return (gpu.devices or gpu.on_devices or 1) if gpu else 1


def _container(args: VllmServerArgs, token_secret: pulumi.Input[str] | None) -> Mapping[str, Any]:
    seconds = max(args.pod.ready_seconds or 0, READY_SECONDS)
    health = {"httpGet": {"path": "/health", "port": PORT}, "periodSeconds": _EVERY}
    env: list[dict[str, Any]] = [{"name": k, "value": v} for k, v in args.pod.env.items()]
    if token_secret is not None:
        source = {"secretKeyRef": {"name": token_secret, "key": _TOKEN_KEY}}
        env.append({"name": "HF_TOKEN", "valueFrom": source})
    return {
        "env": env,
        "ports": [{"name": "http", "containerPort": PORT}],
        # Loading takes as long as it takes; only then does an unanswered question restart it.
        "startupProbe": {**health, "failureThreshold": -(-seconds // _EVERY)},
        "readinessProbe": {**health, "timeoutSeconds": 5},
        "livenessProbe": {**health, "timeoutSeconds": 5, "failureThreshold": 6},
    }


class VllmServer(pulumi.ComponentResource):
    """A Deployment and a Service of that name: `http://NAME.NAMESPACE/v1` inside the vCluster."""

    url: str

    def __init__(
        self, name: str, args: VllmServerArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:VllmServer", name, None, opts)
        child = child_of(self, opts)
        namespace = args.pod.namespace
        secret = None
        if args.hugging_face_token is not None:
            # Named by the engine: a new token is a new Secret, and so new pods.
            secret = kubernetes.core.v1.Secret(
                f"{name}-hugging-face",
                metadata={"namespace": namespace},
                immutable=True,
                string_data={_TOKEN_KEY: pulumi.Output.secret(args.hugging_face_token)},
                opts=child,
            ).metadata.name
        self.deployment = kubernetes.apps.v1.Deployment(
            f"{name}-deployment", **args.manifest(name, secret), opts=child
        )
        # After its pods: the engine waits until a Service has an endpoint, where it can have one.
        waits = args.replicas > 0 and args.pod.ready_seconds != 0
        kubernetes.core.v1.Service(
            f"{name}-service",
            metadata={
                "name": name,
                "namespace": namespace,
                "labels": {"app": name},
                **({} if waits else {"annotations": {SKIP_AWAIT: "true"}}),
            },
            spec={
                "selector": {"app": name},
                "ports": [{"name": "http", "port": SERVICE_PORT, "target_port": PORT}],
            },
            opts=after(child, self.deployment),
        )
        self.url = f"http://{name}.{namespace}/v1"
        self.register_outputs({"url": self.url})
