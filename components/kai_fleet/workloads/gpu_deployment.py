"""A number of alike pods, with or without a GPU each."""

from dataclasses import dataclass
from typing import Any, Final

import pulumi
import pulumi_kubernetes as kubernetes

from kai_fleet.options import child_of
from kai_fleet.workloads import pod_template
from kai_fleet.workloads.pod_template import PodArgs

READY_SECONDS: Final = 600


@dataclass
class GpuDeploymentArgs:
    """`pod` is what each of the `replicas` is."""

    pod: PodArgs
    replicas: int = 1


def manifest(
    name: str,
    args: GpuDeploymentArgs,
    ready_seconds: int = READY_SECONDS,
    spec: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The Deployment as it is declared; `spec` is its pods', where that is not the usual one."""
    pod = args.pod
    body: dict[str, Any] = {
        "replicas": args.replicas,
        # After this the engine calls an update failed, however long it was told to wait.
        "progressDeadlineSeconds": max(600, pod.ready_seconds or ready_seconds),
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": pod_template.metadata(name, pod),
            "spec": spec or pod_template.spec(name, pod),
        },
    }
    if pod.gpu is not None:
        # A surge would ask for more GPUs than the workload has, and wait for them for good.
        rolling = {"maxSurge": 0, "maxUnavailable": 1}
        body["strategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
    return {"metadata": pod_template.object_metadata(name, pod, ready_seconds), "spec": body}


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
            f"{name}-deployment", **manifest(name, args), opts=child_of(self, opts)
        )
        self.register_outputs({"namespace": args.pod.namespace})
