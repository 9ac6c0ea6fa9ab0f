"""Everything that differs by version of KAI and of vCluster, from `versions.yaml`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

import yaml

# The chart moved with the project: v0.9.16, v0.12.18, v0.13.1 and everything from v0.14 on
# are published only under the new name (K2).
NVIDIA_CHART: Final = "oci://ghcr.io/nvidia/kai-scheduler/kai-scheduler"
KAI_CHART: Final = "oci://ghcr.io/kai-scheduler/kai-scheduler/kai-scheduler"
VCLUSTER_REPOSITORY: Final = "https://charts.loft.sh"

# What a stack gets that names no vCluster version: the newest that was run with this program.
DEFAULT_VCLUSTER: Final = "v0.36.1"


@dataclass(frozen=True, kw_only=True)
class Release:
    """One version: the last day on which its line gets fixes, None for one in no support list;
    `caveat` says why no advice leads to it.
    """

    version: str
    support_end: date | None = None
    caveat: str = ""

    @property
    def line(self) -> str:
        """The minor line, for example `v0.9`."""
        return ".".join(self.version.split(".")[:2])


@dataclass(frozen=True, kw_only=True)
class KaiRelease(Release):
    """One KAI version: where its chart is and what that version needs.

    `runtime_class_key` is the dotted value that sets the RuntimeClass of reservation pods; it has
    five names or none, by version. `max_queue_depth` counts levels of the queue tree; None is no
    bound.
    """

    deployments: tuple[str, ...]
    chart: str = KAI_CHART
    runtime_class_key: str | None = "binder.runtimeClassName"
    ready_conditions: tuple[str, ...] = ()
    # Operators v0.9.0-v0.9.20 and v0.10 watch ClusterPolicy and crash-loop without its CRD (K3).
    needs_cluster_policy_crd: bool = False
    # Uninstalling leaves kai-config and its Fail webhooks, which stop pod creation (K10).
    clean_up_config: bool = True
    has_operator: bool = True  # from v0.9; before it the chart made every part itself
    operator_makes_binder: bool = True  # not in v0.9.0, v0.9.1 and v0.9.4-v0.9.20 (K8)
    # A hook deletes and makes kai-config anew at each upgrade, and the scheduler is answered 401
    # for about 48 minutes; fixed in v0.12.22, v0.14.6 and v0.16.0 (K12).
    recreates_config: bool = False
    top_level_queues_schedule: bool = True  # not through v0.12 (Q6)
    max_queue_depth: int | None = None  # two levels through v0.12 (Q6)
    container_name_annotation: bool = True  # gpu-fraction-container-name, from v0.10 (W3)
    # global.nodeSelector and imagePullSecrets do not reach the operands in v0.9-v0.12 (K17).
    operands_get_node_selector: bool = True
    # A shard makes the scheduler, and usage over time is a field of it, from v0.10; before, a shard
    # is a second scheduler beside the chart's own.
    has_shards: bool = True
    has_topologies: bool = True  # from v0.12; before, KAI read Kueue's objects of that kind
    # The scheduler turns the node label nvidia.com/gpu.memory from MiB into 10^6 bytes, and a pod's
    # gpu-memory not; no more in v0.8.5 (getNodeGpuMemory in node_info.go).
    gpu_memory_in_megabytes: bool = False
    prometheus_values: bool = False  # the chart has values for it from v0.15
    hides_gpus: bool = False  # global.blockNvidiaVisibleDevices, from v0.16
    # The pods of a Deployment made from then on are one PodGroup (#2109): with a minMember of 1, so
    # each still starts alone, and preemptMinRuntime and the like count for all of them.
    groups_deployments: bool = False
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class VclusterRelease(Release):
    """One vCluster version: its default Kubernetes; support as on vCluster's page of supported
    versions. Upgrades go one line at a time.

    `renews`: when it starts it makes the certificates anew that end within 90 days
    (pkg/certs/ensure.go).
    """

    kubernetes: str
    renews: bool = True  # from v0.31
    # The key changed in v0.26 (V2); every version here knows the new one.
    virtual_scheduler_key: str = "controlPlane.distro.k8s.scheduler.enabled"

    @property
    def chart_version(self) -> str:
        """The version as the chart repository spells it: without the `v`."""
        return self.version.removeprefix("v")


def table(name: str) -> Mapping[str, Any]:
    """A YAML file of this folder."""
    text = (files(__package__) / f"{name}.yaml").read_text(encoding="utf-8")
    content: Mapping[str, Any] = yaml.load(text, yaml.CSafeLoader)
    return content


_READ: Final = table("versions")
_LISTS: Final = ("deployments", "ready_conditions")


def _kai(version: str, row: Mapping[str, Any]) -> KaiRelease:
    return KaiRelease(version=version, **{**row, **{key: tuple(row[key]) for key in _LISTS}})


KAI: Final = MappingProxyType(
    {version: _kai(version, row) for version, row in _READ["kai"].items()}
)
VCLUSTER: Final = MappingProxyType(
    {version: VclusterRelease(version=version, **row) for version, row in _READ["vcluster"].items()}
)
