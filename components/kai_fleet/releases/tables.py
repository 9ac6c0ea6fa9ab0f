"""Everything that differs by version of KAI and of vCluster; each odd value with its reason.

KAI's is read from the project's tagged sources, chart by chart, and from its support list. Trap
numbers (K1 …) are explained in docs/traps.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from types import MappingProxyType
from typing import Any, Final

# The chart moved with the project: v0.9.16, v0.12.18, v0.13.1 and everything from v0.14 on
# are published only under the new name (K2).
NVIDIA_CHART: Final = "oci://ghcr.io/nvidia/kai-scheduler/kai-scheduler"
KAI_CHART: Final = "oci://ghcr.io/kai-scheduler/kai-scheduler/kai-scheduler"
VCLUSTER_REPOSITORY: Final = "https://charts.loft.sh"

# The newest Kubernetes that v0.16 to v0.18 are validated on: v1.28.13 to v1.36.1 (their README).
KUBERNETES: Final = "v1.36"

# Deployments that must be rolled out before a Queue or a pod may come (K16).
_V07 = ("scheduler", "binder", "podgrouper", "podgroup-controller", "queuecontroller")
# From v0.7.13 a deployment of its own answers for admission, in place of the binder.
_V08 = (*_V07, "kai-admission")
_V09 = (
    "kai-operator",
    "scheduler",
    "binder",
    "admission",
    "pod-grouper",
    "podgroup-controller",
    "queue-controller",
)
# From v0.10 a SchedulingShard makes the scheduler, named after the shard.
_V10 = ("kai-scheduler-default", *(name for name in _V09 if name != "scheduler"))
# How a version says that it is up; v0.9.9, v0.12.16 and v0.13.0 were the first that do.
_READY = ("configs.kai.scheduler/kai-config", "schedulingshards.kai.scheduler/default")

# v0.7 asks 250m CPU for each deployment and hook job, more than a full node has left, and
# helm then hangs its whole timeout on the Pending hook job (K19).
_SMALL_REQUESTS: dict[str, Any] = {
    part: {"resources": {"requests": {"cpu": "50m", "memory": "64Mi"}}}
    for part in (
        "binder",
        "podgroupcontroller",
        "podgrouper",
        "queuecontroller",
        "scheduler",
        "webhookmanager",
    )
}
_SMALL_ADMISSION = {"admission": _SMALL_REQUESTS["binder"]}
_NO_DEFAULT_QUEUES: dict[str, Any] = {"defaultQueue": {"createDefaultQueue": False}}  # K4
# Through v0.17 the topology hook applies an API version that its CRD does not serve (K13); the
# clean-up hook ignores tolerations and hangs on tainted nodes (K14), so we clean up ourselves.
_NO_HOOKS: dict[str, Any] = {
    "topologyMigration": {"enabled": False},
    "postCleanup": {"enabled": False},
}
_V12_VALUES = _NO_DEFAULT_QUEUES | _NO_HOOKS


@dataclass(frozen=True)
class KaiRelease:
    """One KAI version: where its chart is and what that version needs.

    `runtime_class_key` is the dotted value that sets the RuntimeClass of reservation pods; it has
    five names or none, by version (K5). `support_end` is None for a line in no support list.
    `max_queue_depth` counts levels of the queue tree; None is no bound. `caveat` says why no
    advice leads to a version.
    """

    version: str
    deployments: tuple[str, ...] = _V10
    chart: str = KAI_CHART
    support_end: date | None = None
    caveat: str = ""
    runtime_class_key: str | None = "binder.runtimeClassName"
    ready_conditions: tuple[str, ...] = _READY
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

    @property
    def line(self) -> str:
        """The minor line, for example `v0.9`."""
        return ".".join(self.version.split(".")[:2])


def _v09(version: str, *, chart: str = NVIDIA_CHART, **odd: Any) -> KaiRelease:
    common: dict[str, Any] = {
        "deployments": _V09,
        "support_end": date(2026, 9, 30),
        "needs_cluster_policy_crd": True,
        "operator_makes_binder": False,
        "recreates_config": True,
        # Empty unless set, and then reservation pods find no GPU.
        "runtime_class_key": "global.resourceReservation.runtimeClassName",
        "top_level_queues_schedule": False,
        "max_queue_depth": 2,
        "container_name_annotation": False,
        "operands_get_node_selector": False,
        "has_shards": False,
        "has_topologies": False,
    }
    return KaiRelease(version, chart=chart, **(common | odd))


def _v07(version: str, **odd: Any) -> KaiRelease:
    common: dict[str, Any] = {
        "deployments": _V08,
        "runtime_class_key": None,  # reservation pods get no RuntimeClass in these versions
        "ready_conditions": (),
        "clean_up_config": False,  # no operator, no Config
        "has_operator": False,
        "operator_makes_binder": False,
        "top_level_queues_schedule": False,
        "max_queue_depth": 2,
        "container_name_annotation": False,
        "has_shards": False,
        "has_topologies": False,
        "gpu_memory_in_megabytes": True,
        "values": _SMALL_REQUESTS | _SMALL_ADMISSION,
    }
    return KaiRelease(version, chart=NVIDIA_CHART, **(common | odd))


def _v16(version: str, support_end: date = date(2027, 6, 30), **odd: Any) -> KaiRelease:
    common: dict[str, Any] = {"prometheus_values": True, "hides_gpus": True, "values": _V12_VALUES}
    return KaiRelease(version, support_end=support_end, **common, **odd)


_KAI = (
    _v07("v0.7.11", deployments=_V07, values=_SMALL_REQUESTS),
    _v07("v0.7.13"),
    _v07("v0.8.5", gpu_memory_in_megabytes=False),
    # Cut from main, not from the v0.9 branch: here the operator makes the binder, kai-config is a
    # plain object, and reservation pods get `nvidia`, hard-coded.
    _v09(
        "v0.9.3",
        operator_makes_binder=True,
        recreates_config=False,
        runtime_class_key=None,
        ready_conditions=(),
    ),
    _v09("v0.9.8", ready_conditions=()),
    # Its chart brings the scheduler, and so no shard.
    _v09("v0.9.20", chart=KAI_CHART, ready_conditions=_READY[:1]),
    KaiRelease(
        "v0.10.5",
        chart=NVIDIA_CHART,
        support_end=date(2025, 12, 31),
        ready_conditions=(),
        needs_cluster_policy_crd=True,
        recreates_config=True,
        top_level_queues_schedule=False,
        max_queue_depth=2,
        operands_get_node_selector=False,
        has_topologies=False,
        values=_NO_DEFAULT_QUEUES,  # it has no switch for its clean-up job
    ),
    KaiRelease(
        "v0.12.23",
        support_end=date(2026, 12, 31),
        top_level_queues_schedule=False,
        max_queue_depth=2,
        operands_get_node_selector=False,
        values=_V12_VALUES,
    ),
    KaiRelease("v0.13.4", support_end=date(2026, 3, 31), recreates_config=True, values=_V12_VALUES),
    KaiRelease("v0.14.7", support_end=date(2027, 3, 31), values=_V12_VALUES),
    KaiRelease(
        "v0.15.3", support_end=date(2026, 6, 30), prometheus_values=True, values=_V12_VALUES
    ),
    _v16("v0.16.7"),
    _v16("v0.16.8"),
    # Its chart is that of v0.16.8: of the branch v0.16, where only the CRD of PodGroups changed.
    _v16("v0.16.9"),
    # An odd line is supported until the next one is out, v0.18.0 on 2026-09-23 (CHANGELOG.md).
    _v16("v0.17.0", date(2026, 9, 23)),
    # From its notes, and the chart as it was in the week before and the one after. No chart of
    # v0.18.1 to v0.18.6 could be read.
    _v16(
        "v0.18.0",
        date(2027, 9, 30),
        caveat="v0.18.1 mends vulnerabilities of it",
        groups_deployments=True,
    ),
)

KAI: Final[Mapping[str, KaiRelease]] = MappingProxyType({r.version: r for r in _KAI})


@dataclass(frozen=True)
class VclusterRelease:
    """One vCluster version: the key of its virtual scheduler and its default Kubernetes.

    The key changed in v0.26 (V2); every version here knows the new one. `support_end` is the last
    day of its line's security fixes, from vCluster's page of supported versions. `renews`: when it
    starts it makes the certificates anew that end within 90 days (pkg/certs/ensure.go).
    """

    version: str
    kubernetes: str
    support_end: date | None = None
    caveat: str = ""  # why no advice leads to it
    virtual_scheduler_key: str = "controlPlane.distro.k8s.scheduler.enabled"
    renews: bool = True
    tls_route: bool = True  # the chart makes TLSRoutes from v0.34 on

    @property
    def line(self) -> str:
        """The minor line, for example `v0.36`; upgrades go one line at a time (V12)."""
        return ".".join(self.version.split(".")[:2])

    @property
    def chart_version(self) -> str:
        """The version as the chart repository spells it: without the `v`."""
        return self.version.removeprefix("v")


_VCLUSTER = (
    VclusterRelease(
        "v0.27.3",
        kubernetes="v1.33.4",
        support_end=date(2026, 2, 12),
        renews=False,
        tls_route=False,
    ),
    VclusterRelease(
        "v0.28.1", kubernetes="v1.33.4", support_end=date(2026, 3, 8), renews=False, tls_route=False
    ),
    VclusterRelease(
        "v0.29.3", kubernetes="v1.33.4", support_end=date(2026, 4, 1), renews=False, tls_route=False
    ),
    VclusterRelease(
        "v0.30.5",
        kubernetes="v1.34.0",
        support_end=date(2026, 4, 28),
        renews=False,
        tls_route=False,
    ),
    VclusterRelease(
        "v0.31.3", kubernetes="v1.34.0", support_end=date(2026, 7, 29), tls_route=False
    ),
    VclusterRelease(
        "v0.32.3", kubernetes="v1.35.0", support_end=date(2026, 8, 18), tls_route=False
    ),
    VclusterRelease(
        "v0.33.4", kubernetes="v1.35.0", support_end=date(2026, 9, 13), tls_route=False
    ),
    VclusterRelease("v0.34.7", kubernetes="v1.35.0", support_end=date(2026, 10, 29)),
    VclusterRelease("v0.35.3", kubernetes="v1.36.0", support_end=date(2026, 12, 16)),
    VclusterRelease("v0.36.1", kubernetes="v1.36.0", support_end=date(2027, 1, 22)),
    # From its chart as it was 18 days before, v0.37.0-rc.1. No later chart could be read.
    VclusterRelease(
        "v0.37.0",
        kubernetes="v1.36.0",
        support_end=date(2027, 3, 1),
        caveat="never run with this program",
    ),
)

VCLUSTER: Final[Mapping[str, VclusterRelease]] = MappingProxyType({r.version: r for r in _VCLUSTER})

# What a stack gets that names no vCluster version: the newest that was run with this program.
DEFAULT_VCLUSTER: Final = "v0.36.1"
