"""The GPU stacks that a cluster can have, one record for each."""

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
    """A chart whose daemons make nodes advertise GPUs, and where its values have what we set.

    Keys of values are dotted. Its namespace and its release are called as the chart.
    """

    chart: str = ""  # none: nodes advertise their GPUs already, or have none
    repository: str = ""
    version: str = ""
    # The RuntimeClass that the stack declares, because the chart does not.
    runtime_class: str = ""
    # The chart has the CRD of NVIDIA's ClusterPolicy, for which KAI v0.9 and v0.10 wait.
    cluster_policy: bool = False
    # A path of the API where another one of its kind on the cluster has its object.
    rival: str = ""
    # Lists of tolerations, with what the daemons tolerate by themselves: ours take its place.
    tolerations: Mapping[str, Sequence[Toleration]] = field(default_factory=dict)
    # Lists of Secrets by which images are pulled: of names, and of objects with a name.
    pull_names: Sequence[str] = ()
    pull_objects: Sequence[str] = ()
    # In a kind cluster.
    in_kind: Mapping[str, Any] = field(default_factory=dict)


_NODE_DISCOVERY: Final = "node-feature-discovery"
# Each part of the operator reads a list of its own.
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
# Of those charts, whose namespaces are called as they are.
GPU_CHARTS: Final = frozenset(each.chart for each in GPU_PROVIDERS.values() if each.chart)
