"""GPU providers: one record for each GPU stack that a cluster can have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kai_fleet.releases.sources import (
    DEVICE_PLUGIN_REPOSITORY,
    DEVICE_PLUGIN_VERSION,
    GPU_OPERATOR_REPOSITORY,
    GPU_OPERATOR_VERSION,
)

Toleration = Mapping[str, str]

_GPU_TAINT: Final = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
_CRITICAL: Final = {"key": "CriticalAddonsOnly", "operator": "Exists"}
_CONTROL_PLANE: Final = {
    "key": "node-role.kubernetes.io/control-plane",
    "operator": "Exists",
    "effect": "NoSchedule",
}


@dataclass(frozen=True)
class GpuProvider:
    """A chart whose DaemonSets advertise GPUs, and the keys of the values that GpuStack sets.

    Keys of values are dotted. Namespace and release have the name of the chart.
    """

    chart: str = ""  # none: nodes advertise their GPUs already, or have none
    repository: str = ""
    version: str = ""
    # The RuntimeClass that the stack declares, because the chart does not.
    runtime_class: str = ""
    # The chart has the CRD of NVIDIA's ClusterPolicy, for which KAI v0.9 and v0.10 wait.
    cluster_policy: bool = False
    # API path of the singleton that a second installation on the cluster would collide with.
    rival: str = ""
    # Lists of tolerations, with the chart's defaults, which a list of ours would replace.
    tolerations: Mapping[str, Sequence[Toleration]] = field(default_factory=dict)
    # Lists of image pull Secrets: of names, and of objects `{name: …}`.
    pull_names: Sequence[str] = ()
    pull_objects: Sequence[str] = ()
    # Values for a kind cluster.
    in_kind: Mapping[str, Any] = field(default_factory=dict)


_NODE_DISCOVERY: Final = "node-feature-discovery"
# Each component of the operator has its own list of pull Secrets.
_OPERATOR_PARTS: Final = (
    *("operator", "validator", "driver", "toolkit", "devicePlugin", "dcgm", "dcgmExporter", "gfd"),
    *("migManager", "nodeStatusExporter", "gds", "gdrcopy", "vgpuManager", "vgpuDeviceManager"),
    *("vfioManager", "sandboxDevicePlugin", "kataManager", "ccManager"),
)

GPU_PROVIDERS: Final[Mapping[str, GpuProvider]] = {
    "operator": GpuProvider(
        "gpu-operator",
        GPU_OPERATOR_REPOSITORY,
        GPU_OPERATOR_VERSION,
        cluster_policy=True,
        rival="/apis/nvidia.com/v1/clusterpolicies/cluster-policy",
        tolerations={
            "daemonsets.tolerations": [_GPU_TAINT],
            f"{_NODE_DISCOVERY}.worker.tolerations": [_CONTROL_PLANE, _GPU_TAINT],
        },
        pull_names=[f"{part}.imagePullSecrets" for part in _OPERATOR_PARTS],
        pull_objects=[f"{_NODE_DISCOVERY}.imagePullSecrets"],
    ),
    "device-plugin": GpuProvider(
        "nvidia-device-plugin",
        DEVICE_PLUGIN_REPOSITORY,
        DEVICE_PLUGIN_VERSION,
        runtime_class="nvidia",
        tolerations={"tolerations": [_CRITICAL, _GPU_TAINT]},
        pull_objects=["imagePullSecrets", "nfd.imagePullSecrets"],
        # The plugin finds the driver only as the node does: on the node's network, with its rights,
        # its libraries, and in NVIDIA's runtime (guide 001).
        in_kind={
            "devicePlugin": {"enableHostNetwork": True},
            "securityContext": {"privileged": True},
            "nvidiaDriverRoot": "/",
            "runtimeClassName": "nvidia",
        },
    ),
    "none": GpuProvider(),
}
# Names of those charts, and of their namespaces.
GPU_CHARTS: Final = frozenset(each.chart for each in GPU_PROVIDERS.values() if each.chart)
