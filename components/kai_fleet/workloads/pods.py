"""Pods that KAI, or Kubernetes' own scheduler, places: a single one, or a Deployment's.

Each is plain data first, so that the rules look at exactly what is declared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi
import pulumi_kubernetes as kubernetes

from kai_fleet.options import child_of
from kai_fleet.releases.keys import QUEUE_LABEL, SCHEDULER
from kai_fleet.settings.sections.gpu_share import GpuShare, share_mistakes
from kai_fleet.settings.sections.queues import shard_labels
from kai_fleet.settings.sections.workloads import Amount, TopologyPlacement

READY_SECONDS: Final = 600
_TOPOLOGY: Final = "kai.scheduler/topology"
SKIP_AWAIT: Final = "pulumi.com/skipAwait"


@dataclass
class PodArgs:
    """One container, and what it asks for.

    `queue` is a leaf of the team's queues: with it KAI places the pod, without it Kubernetes' own
    scheduler does, which knows whole GPUs only. `shard` serves that queue, where it is not the
    default one: a pod without the shard's label is never placed. `gpu` None is a pod without a
    GPU. `gpu_resource` is the name under which nodes advertise GPUs. `ready_seconds` bounds how
    long an update waits for it; 0 is not at all. Raises ValueError for a share of a GPU that
    no node could provide.
    """

    image: str
    queue: str | None = None
    shard: str | None = None
    namespace: str = "default"
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    gpu: GpuShare | None = None
    cpu: Amount = field(default_factory=Amount)
    memory: Amount = field(default_factory=Amount)
    runtime_class: str | None = None
    priority_class: str | None = None
    topology: TopologyPlacement | None = None
    gpu_resource: str = "nvidia.com/gpu"
    ready_seconds: int | None = None

    def __post_init__(self) -> None:
        """Refuse what would never be placed, or placed without its GPU (W3, W6)."""
        problems = [f"{key} {why}" for key, why in share_mistakes(self.gpu)] if self.gpu else []
        if self.gpu and self.gpu.shared and not self.queue:
            problems.append("gpu takes a part of a GPU, which only KAI gives; write a queue")
        if self.topology and not self.queue:
            problems.append("topology is read by KAI only; write a queue")
        if problems:
            raise ValueError("; ".join(problems))

    def manifest(self, name: str) -> dict[str, Any]:
        """The Pod as it is declared."""
        own = object_metadata(name, self, READY_SECONDS)
        annotations = metadata(name, self).get("annotations", {})
        return {
            "metadata": {**own, "annotations": {**own["annotations"], **annotations}},
            # A program that ends well, such as nvidia-smi, is done; only a failed one starts again.
            "spec": {**spec(name, self), "restartPolicy": "OnFailure"},
        }


class GpuPod(pulumi.ComponentResource):
    """A pod of that name. Nothing makes it anew when its node goes: use GpuDeployment to serve.

    A change of anything but its image replaces it, old one first.
    """

    def __init__(
        self, name: str, args: PodArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:GpuPod", name, None, opts)
        self.pod = kubernetes.core.v1.Pod(
            f"{name}-pod", **args.manifest(name), opts=child_of(self, opts)
        )
        self.register_outputs({"namespace": args.namespace})


@dataclass
class GpuDeploymentArgs:
    """`pod` is what each of the `replicas` is."""

    pod: PodArgs
    replicas: int = 1

    def manifest(
        self,
        name: str,
        ready_seconds: int = READY_SECONDS,
        pod_spec: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The Deployment as it is declared; `pod_spec` where that is not the usual one."""
        pod = self.pod
        body: dict[str, Any] = {
            "replicas": self.replicas,
            # After this the engine calls an update failed, however long it was told to wait.
            "progressDeadlineSeconds": max(600, pod.ready_seconds or ready_seconds),
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": metadata(name, pod), "spec": pod_spec or spec(name, pod)},
        }
        if pod.gpu is not None:
            # A surge would ask for more GPUs than the workload has, and wait for them for good.
            rolling = {"maxSurge": 0, "maxUnavailable": 1}
            body["strategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
        return {"metadata": object_metadata(name, pod, ready_seconds), "spec": body}


class GpuDeployment(pulumi.ComponentResource):
    """A Deployment of that name. An update of it never holds more GPUs than it has replicas for.

    KAI takes pods of Deployments for `inference`, which is not preemptible: its queue's quota,
    and those above it, must not be 0 unless `priority_class` says `train` (Q8).
    """

    def __init__(
        self, name: str, args: GpuDeploymentArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:GpuDeployment", name, None, opts)
        self.deployment = kubernetes.apps.v1.Deployment(
            f"{name}-deployment", **args.manifest(name), opts=child_of(self, opts)
        )
        self.register_outputs({"namespace": args.pod.namespace})


def metadata(name: str, args: PodArgs) -> dict[str, Any]:
    """A pod's own metadata; the queue label always comes with the scheduler's name (W6)."""
    labels = {"app": name}
    if args.queue:
        labels |= {QUEUE_LABEL: args.queue, **shard_labels(args.shard)}
    annotations = {**(args.gpu.annotations() if args.gpu else {}), **_placement(args.topology)}
    return {"labels": labels, **({"annotations": annotations} if annotations else {})}


def object_metadata(name: str, args: PodArgs, default_seconds: int) -> dict[str, Any]:
    """The metadata of the object itself, with how long the engine waits for it."""
    labels = metadata(name, args)["labels"]
    seconds = default_seconds if args.ready_seconds is None else args.ready_seconds
    wait = {"pulumi.com/timeoutSeconds": str(seconds)} if seconds else {SKIP_AWAIT: "true"}
    # KAI's pod-grouper reads the topology of the top owner, not of its pods' template.
    annotations = {**wait, **_placement(args.topology)}
    return {"name": name, "namespace": args.namespace, "labels": labels, "annotations": annotations}


def spec(name: str, args: PodArgs, container: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A pod's spec; `container` adds fields to its one container."""
    main: dict[str, Any] = {
        "name": name,
        "image": args.image,
        "command": list(args.command),
        "args": list(args.args),
        "env": [{"name": key, "value": value} for key, value in args.env.items()],
        "resources": _resources(args),
        **(container or {}),
    }
    pod = {
        "schedulerName": SCHEDULER if args.queue else None,
        "runtimeClassName": args.runtime_class,
        "priorityClassName": args.priority_class,
    }
    filled = {key: value for key, value in main.items() if value}
    return {"containers": [filled], **{key: value for key, value in pod.items() if value}}


def _resources(args: PodArgs) -> dict[str, Any]:
    amounts = {"cpu": args.cpu, "memory": args.memory}
    requests = {name: it.request for name, it in amounts.items() if it.request is not None}
    limits = {name: it.limit for name, it in amounts.items() if it.limit is not None}
    if args.gpu and args.gpu.devices:
        # Kubernetes wants both alike for what cannot be over-committed.
        requests[args.gpu_resource] = limits[args.gpu_resource] = str(args.gpu.devices)
    return {key: part for key, part in (("requests", requests), ("limits", limits)) if part}


def _placement(topology: TopologyPlacement | None) -> dict[str, str]:
    if topology is None:
        return {}
    annotations = {
        _TOPOLOGY: topology.name,
        f"{_TOPOLOGY}-required-placement": topology.required,
        f"{_TOPOLOGY}-preferred-placement": topology.preferred,
    }
    return {key: value for key, value in annotations.items() if value}
