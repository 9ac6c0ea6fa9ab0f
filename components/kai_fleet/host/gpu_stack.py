"""The GPU stack of a cluster: what makes its nodes advertise GPUs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi
import pulumi_kubernetes as kubernetes

from kai_fleet.cluster.existing_objects import NONE, RUNTIME_CLASS, ExistingObjects
from kai_fleet.cluster.registry_secrets import registry_secret
from kai_fleet.fleet.deployed_state import NAMESPACE, RELEASE
from kai_fleet.guards.host_rules import SYSTEM_SCOPE
from kai_fleet.guards.policies import ENFORCED
from kai_fleet.options import after, chart_args, child_of, hidden
from kai_fleet.releases.chart_values import merged
from kai_fleet.releases.sources import (
    DEVICE_PLUGIN_REPOSITORY,
    DEVICE_PLUGIN_VERSION,
    GPU_OPERATOR_REPOSITORY,
    GPU_OPERATOR_VERSION,
)
from kai_fleet.settings.sections.access import OF_STACK, Registries
from kai_fleet.settings.sections.kubernetes import Toleration
from kai_fleet.settings.sections.platform import Gpu

# By provider: the chart, where it comes from, its version.
_CHARTS: Final = {
    "operator": ("gpu-operator", GPU_OPERATOR_REPOSITORY, GPU_OPERATOR_VERSION),
    "device-plugin": ("nvidia-device-plugin", DEVICE_PLUGIN_REPOSITORY, DEVICE_PLUGIN_VERSION),
}
# In a kind node the plugin finds the driver only as the node does: on the node's network, with
# its rights, its libraries, and in NVIDIA's runtime (guide 001).
IN_KIND: Final[Mapping[str, Any]] = {
    "devicePlugin": {"enableHostNetwork": True},
    "securityContext": {"privileged": True},
    "nvidiaDriverRoot": "/",
    "runtimeClassName": "nvidia",
}
# Its pods mount the node's files and devices, which clusters with a default of their own refuse.
_PRIVILEGED: Final[Mapping[str, str]] = {ENFORCED: "privileged"}

# What the charts' daemons tolerate by themselves: a list in their values takes the place of these.
_GPU_TAINT: Final = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
_CRITICAL: Final = {"key": "CriticalAddonsOnly", "operator": "Exists"}
_CONTROL_PLANE: Final = {
    "key": "node-role.kubernetes.io/control-plane",
    "operator": "Exists",
    "effect": "NoSchedule",
}

# As GKE has it in kube-system: it bounds nothing, and is the permission (gpu-operator#660).
_SYSTEM_PRIORITIES: Final[Any] = {"hard": {"pods": "1G"}, "scope_selector": SYSTEM_SCOPE}
# The one object by which a GPU operator works; its chart makes it under this name.
_CLUSTER_POLICY: Final = "/apis/nvidia.com/v1/clusterpolicies/cluster-policy"

# What each part of the operator reads by itself: a list of names.
_PARTS: Final = (
    *("operator", "validator", "driver", "toolkit", "devicePlugin", "dcgm", "dcgmExporter", "gfd"),
    *("migManager", "nodeStatusExporter", "gds", "gdrcopy", "vgpuManager", "vgpuDeviceManager"),
    *("vfioManager", "sandboxDevicePlugin", "kataManager", "ccManager"),
)


@dataclass
class GpuStackArgs:
    """`gpu` are the settings. `operator`: NVIDIA's GPU operator. `device-plugin`: its device plugin
    alone, on nodes whose drivers and container runtime are set up. `none`: nodes that advertise
    GPUs already, or have none; KAI schedules CPU pods too. `in_kind`: the nodes are a kind
    cluster's. `tolerations` are those of the teams, on whose nodes its daemons have to be.
    `registries` are credentials for its images. `existing` is what the cluster has already, which
    is used.
    """

    gpu: Gpu
    in_kind: bool = False
    tolerations: Sequence[Toleration] = ()
    registries: Registries = field(default_factory=dict)
    existing: ExistingObjects = NONE


class GpuStack(pulumi.ComponentResource):
    """The NVIDIA GPU operator, the device plugin, or nothing.

    `brings_cluster_policy` tells whether the CRD that KAI v0.9 and v0.10 wait for is part of it;
    `version` and `namespace` are those of the chart, None where there is none. Raises
    pulumi.RunError where what others made does not fit.
    """

    brings_cluster_policy: bool
    version: str | None = None
    namespace: str | None = None

    def __init__(
        self, name: str, args: GpuStackArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:GpuStack", name, None, opts)
        gpu = args.gpu
        self.brings_cluster_policy = gpu.provider == "operator"
        child = child_of(self, opts)
        _refuse_misfits(name, args)
        is_plugin = gpu.provider == "device-plugin"
        before: list[pulumi.Resource] = []
        # The operator makes this class, or uses one that is there; fraction pods and vClusters need
        # it (V8). Once made it stays: by then others may use it.
        own_class = f"{name}-runtime-class"
        if args.existing.holds(RUNTIME_CLASS, own_class) or (
            is_plugin and args.existing.find(RUNTIME_CLASS, "nvidia") is None
        ):
            before.append(
                kubernetes.node.v1.RuntimeClass(
                    own_class,
                    metadata={"name": "nvidia"},
                    handler="nvidia",
                    opts=child_of(self, opts, retain_on_delete=True),
                )
            )
        if gpu.provider != "none":
            chart, home, version = _CHARTS[gpu.provider]
            self.version, self.namespace = gpu.version or version, chart
            own = f"{name}-namespace"
            if args.existing.of_others(NAMESPACE, chart, own) is None:
                before.append(
                    kubernetes.core.v1.Namespace(
                        own, metadata={"name": chart, "labels": _PRIVILEGED}, opts=child
                    )
                )
            if args.registries:
                made = after(child, *before)
                before.append(registry_secret(name, OF_STACK, chart, args.registries, made))
            if gpu.system_priorities:  # GKE admits such pods nowhere else
                before.append(
                    kubernetes.core.v1.ResourceQuota(
                        f"{name}-system-priorities",
                        metadata={"name": "system-priorities", "namespace": chart},
                        spec=_SYSTEM_PRIORITIES,
                        opts=after(child, *before),
                    )
                )
            values = merged(
                IN_KIND if args.in_kind and is_plugin else {},
                _tolerating([it.spec for it in args.tolerations], is_plugin=is_plugin),
                _pulling(is_plugin=is_plugin) if args.registries else {},
                gpu.values,
            )
            kubernetes.helm.v3.Release(
                f"{name}-release",
                **chart_args(chart, self.version, override=gpu.chart, repository=home),
                name=chart,
                namespace=chart,
                values=hidden(values),
                timeout=900,  # drivers are built on the nodes
                opts=after(child, *before),
            )
        self.register_outputs({"provider": gpu.provider})


def _tolerating(specs: Sequence[Mapping[str, str]], *, is_plugin: bool) -> dict[str, Any]:
    """Without its daemons a node with a taint advertises no GPUs."""
    if not specs:
        return {}
    if is_plugin:
        return {"tolerations": [_CRITICAL, _GPU_TAINT, *specs]}
    return {
        "daemonsets": {"tolerations": [_GPU_TAINT, *specs]},
        "node-feature-discovery": {"worker": {"tolerations": [_CONTROL_PLANE, _GPU_TAINT, *specs]}},
    }


def _pulling(*, is_plugin: bool) -> dict[str, Any]:
    """The Secret by which its images are pulled."""
    named = {"imagePullSecrets": [{"name": OF_STACK}]}
    if is_plugin:
        return {**named, "nfd": named}
    parts = {part: {"imagePullSecrets": [OF_STACK]} for part in _PARTS}
    return {**parts, "node-feature-discovery": named}


def _refuse_misfits(name: str, args: GpuStackArgs) -> None:
    """Say what of others stands in the way, before anything is made."""
    provider = args.gpu.provider
    if provider == "device-plugin":
        found = args.existing.find(RUNTIME_CLASS, "nvidia")
        if found is not None and found["handler"] != "nvidia":
            raise pulumi.RunError(
                "kai-fleet:gpu.provider: device-plugin needs RuntimeClass nvidia with handler"
                f" nvidia, and this cluster's has handler {found['handler']}, which this stack did"
                " not write. Nothing was made. Write provider: none if the cluster's nodes"
                " advertise their GPUs already, or agree with the owner of the class on the"
                " handler nvidia; a handler cannot be changed, so the owner has to make it anew"
            )
    is_new = provider == "operator" and not args.existing.holds(RELEASE, f"{name}-release")
    if is_new and args.existing.at(_CLUSTER_POLICY) is not None:
        raise pulumi.RunError(
            "kai-fleet:gpu.provider: operator would install a second GPU operator: this cluster has"
            " one, with ClusterPolicy cluster-policy, which this stack did not make. Nothing was"
            " made. Write provider: none, which uses what is there"
        )
