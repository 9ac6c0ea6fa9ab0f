"""One pod, with or without a GPU."""

from typing import Any, Final

import pulumi
import pulumi_kubernetes as kubernetes

from kai_fleet.options import child_of
from kai_fleet.workloads import pod_template
from kai_fleet.workloads.pod_template import PodArgs

READY_SECONDS: Final = 600


def manifest(name: str, args: PodArgs) -> dict[str, Any]:
    """The Pod as it is declared."""
    own = pod_template.object_metadata(name, args, READY_SECONDS)
    annotations = pod_template.metadata(name, args).get("annotations", {})
    return {
        "metadata": {**own, "annotations": {**own["annotations"], **annotations}},
        # A program that ends well, such as nvidia-smi, is done; only a failed one starts again.
        "spec": {**pod_template.spec(name, args), "restartPolicy": "OnFailure"},
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
            f"{name}-pod", **manifest(name, args), opts=child_of(self, opts)
        )
        self.register_outputs({"namespace": args.namespace})
