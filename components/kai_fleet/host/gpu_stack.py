"""The GPU stack of a cluster: what makes its nodes advertise GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import pulumi
import pulumi_kubernetes as kubernetes

from kai_fleet.releases import (
    DEVICE_PLUGIN_REPOSITORY,
    DEVICE_PLUGIN_VERSION,
    GPU_OPERATOR_REPOSITORY,
    GPU_OPERATOR_VERSION,
)
from kai_fleet.releases.chart_source import chart_args
from kai_fleet.releases.chart_values import merged
from kai_fleet.settings.files.secret_values import hidden

# In a kind node the plugin finds the driver only as the node does: on the node's network, with
# its rights, its libraries, and in NVIDIA's runtime (guide 001).
IN_KIND: Final[Mapping[str, Any]] = {
    "devicePlugin": {"enableHostNetwork": True},
    "securityContext": {"privileged": True},
    "nvidiaDriverRoot": "/",
    "runtimeClassName": "nvidia",
}
# Its pods mount the node's files and devices, which clusters with a default of their own refuse.
_PRIVILEGED: Final[Mapping[str, str]] = {"pod-security.kubernetes.io/enforce": "privileged"}


@dataclass
class GpuStackArgs:
    """`operator`: NVIDIA's GPU operator. `device-plugin`: its device plugin alone, on nodes whose
    drivers and container runtime are set up. `none`: nodes that advertise GPUs already, or have
    none; KAI schedules CPU pods too. `in_kind`: the nodes are a kind cluster's.
    """

    provider: Literal["operator", "device-plugin", "none"] = "none"
    version: str | None = None
    chart: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    in_kind: bool = False


class GpuStack(pulumi.ComponentResource):
    """The NVIDIA GPU operator, the device plugin, or nothing.

    `brings_cluster_policy` tells whether the CRD that KAI v0.9 and v0.10 wait for is part of it;
    `version` and `namespace` are those of the chart, None where there is none.
    """

    brings_cluster_policy: bool
    version: str | None = None
    namespace: str | None = None

    def __init__(
        self, name: str, args: GpuStackArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:GpuStack", name, None, opts)
        self.brings_cluster_policy = args.provider == "operator"
        opts = opts or pulumi.ResourceOptions()
        child = pulumi.ResourceOptions(
            parent=self, depends_on=opts.depends_on, deleted_with=opts.deleted_with
        )
        if args.provider == "operator":
            chart, home, version = "gpu-operator", GPU_OPERATOR_REPOSITORY, GPU_OPERATOR_VERSION
        else:
            chart, home = "nvidia-device-plugin", DEVICE_PLUGIN_REPOSITORY
            version = DEVICE_PLUGIN_VERSION
        before: list[pulumi.Resource] = []
        if args.provider == "device-plugin":
            # The operator makes this class; fraction pods and vClusters need it (V8).
            before = [
                kubernetes.node.v1.RuntimeClass(
                    f"{name}-runtime-class",
                    metadata={"name": "nvidia"},
                    handler="nvidia",
                    # The API server changes no handler: one that somebody changed is made anew.
                    opts=pulumi.ResourceOptions.merge(
                        child,
                        pulumi.ResourceOptions(
                            replace_on_changes=["handler"], delete_before_replace=True
                        ),
                    ),
                )
            ]
        values = merged(IN_KIND, args.values) if args.in_kind and before else dict(args.values)
        if args.provider != "none":
            self.version, self.namespace = args.version or version, chart
            namespace = kubernetes.core.v1.Namespace(
                f"{name}-namespace", metadata={"name": chart, "labels": _PRIVILEGED}, opts=child
            )
            kubernetes.helm.v3.Release(
                f"{name}-release",
                **chart_args(chart, self.version, override=args.chart, repository=home),
                name=chart,
                namespace=chart,
                values=hidden(values),
                timeout=900,  # drivers are built on the nodes
                opts=pulumi.ResourceOptions.merge(
                    child, pulumi.ResourceOptions(depends_on=[namespace, *before])
                ),
            )
        self.register_outputs({"provider": args.provider})
