"""Everything that differs by KAI or vCluster version, in one table each.

A value that is odd carries its reason. Trap numbers (K1 …) are those of the README's
section "Traps"; sizes and names were read from the projects' tagged sources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from types import MappingProxyType
from typing import Any, Final, TypeVar

T = TypeVar("T")

# The chart moved with the project: v0.9.16, v0.12.18, v0.13.1 and everything from v0.14 on
# are published only under the new name (K2).
NVIDIA_CHART: Final = "oci://ghcr.io/nvidia/kai-scheduler/kai-scheduler"
KAI_CHART: Final = "oci://ghcr.io/kai-scheduler/kai-scheduler/kai-scheduler"

VCLUSTER_REPOSITORY: Final = "https://charts.loft.sh"
GPU_OPERATOR_REPOSITORY: Final = "https://helm.ngc.nvidia.com/nvidia"
DEVICE_PLUGIN_REPOSITORY: Final = "https://nvidia.github.io/k8s-device-plugin"
GPU_OPERATOR_VERSION: Final = "v26.7.0"
DEVICE_PLUGIN_VERSION: Final = "0.20.0"

# Deployments that must be rolled out before a Queue or a pod may come (K16).
_V07 = ("scheduler", "binder", "podgrouper", "podgroup-controller", "queuecontroller")
_V09 = (
    "kai-operator",
    "scheduler",
    "binder",
    "admission",
    "pod-grouper",
    "podgroup-controller",
    "queue-controller",
)
# From v0.12 a SchedulingShard makes the scheduler, named after the shard.
_V12 = ("kai-scheduler-default", *(name for name in _V09 if name != "scheduler"))
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
_NO_DEFAULT_QUEUES: dict[str, Any] = {"defaultQueue": {"createDefaultQueue": False}}  # K4
# The topology hook applies an API version that its CRD does not serve (K13); the clean-up
# hook ignores tolerations and hangs on tainted nodes (K14), so we clean up ourselves.
_NO_HOOKS: dict[str, Any] = {
    "topologyMigration": {"enabled": False},
    "postCleanup": {"enabled": False},
}
_V12_VALUES = _NO_DEFAULT_QUEUES | _NO_HOOKS


class UnknownVersion(LookupError):  # noqa: N818 - reads better where it is raised
    """A version that is not in the table; its text names the nearest ones that are."""


@dataclass(frozen=True)
class KaiRelease:
    """One KAI version: where its chart is and what that version needs.

    `runtime_class_key` is the dotted value that sets the RuntimeClass of reservation pods; it has
    five names or none, by version (K5). `support_end` is None for a line in no support list.
    `max_queue_depth` counts levels of the queue tree; None is no bound.
    """

    version: str
    deployments: tuple[str, ...]
    chart: str = KAI_CHART
    support_end: date | None = None
    runtime_class_key: str | None = "binder.runtimeClassName"
    ready_conditions: tuple[str, ...] = _READY
    # Operators v0.9.0-v0.9.20 and v0.10 watch ClusterPolicy and crash-loop without its CRD (K3).
    needs_cluster_policy_crd: bool = False
    # Uninstalling leaves kai-config and its Fail webhooks, which stop pod creation (K10).
    clean_up_config: bool = True
    top_level_queues_schedule: bool = True  # not through v0.12 (Q6)
    max_queue_depth: int | None = None  # two levels through v0.12 (Q6)
    container_name_annotation: bool = True  # gpu-fraction-container-name, from v0.10 (W3)
    operands_get_node_selector: bool = True  # not in v0.9-v0.12 (K17)
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """The minor line, for example `v0.9`."""
        return ".".join(self.version.split(".")[:2])


def _v09(version: str, *, chart: str = NVIDIA_CHART, **odd: Any) -> KaiRelease:
    return KaiRelease(
        version,
        _V09,
        chart=chart,
        support_end=date(2026, 9, 30),
        needs_cluster_policy_crd=True,
        top_level_queues_schedule=False,
        max_queue_depth=2,
        container_name_annotation=False,
        operands_get_node_selector=False,
        **odd,
    )


_KAI = (
    KaiRelease(
        "v0.7.11",
        _V07,
        chart=NVIDIA_CHART,
        runtime_class_key=None,  # reservation pods get no RuntimeClass in this version
        ready_conditions=(),
        clean_up_config=False,  # no operator, no Config
        top_level_queues_schedule=False,
        max_queue_depth=2,
        container_name_annotation=False,
        values=_SMALL_REQUESTS,
    ),
    # Cut from main, not from the v0.9 branch: its binder is made by the operator, and its
    # reservation pods get `nvidia`, hard-coded; no status conditions (those came with v0.9.9).
    _v09("v0.9.3", runtime_class_key=None, ready_conditions=()),
    # Empty unless set, and then reservation pods find no GPU.
    _v09(
        "v0.9.8",
        runtime_class_key="global.resourceReservation.runtimeClassName",
        ready_conditions=(),
    ),
    KaiRelease(
        "v0.12.23",
        _V12,
        support_end=date(2026, 12, 31),
        top_level_queues_schedule=False,
        max_queue_depth=2,
        operands_get_node_selector=False,
        values=_V12_VALUES,
    ),
    KaiRelease("v0.14.7", _V12, support_end=date(2027, 3, 31), values=_V12_VALUES),
    KaiRelease("v0.16.8", _V12, support_end=date(2027, 6, 30), values=_V12_VALUES),
)


@dataclass(frozen=True)
class VclusterRelease:
    """One vCluster version: the key of its virtual scheduler and its default Kubernetes.

    The key changed in v0.26 (V2); every version here knows the new one.
    """

    version: str
    kubernetes: str
    virtual_scheduler_key: str = "controlPlane.distro.k8s.scheduler.enabled"

    @property
    def line(self) -> str:
        """The minor line, for example `v0.36`; upgrades go one line at a time (V12)."""
        return ".".join(self.version.split(".")[:2])

    @property
    def chart_version(self) -> str:
        """The version as the chart repository spells it: without the `v`."""
        return self.version.removeprefix("v")


_VCLUSTER = (
    VclusterRelease("v0.27.3", kubernetes="v1.33.4"),
    VclusterRelease("v0.30.5", kubernetes="v1.34.0"),
    VclusterRelease("v0.34.7", kubernetes="v1.35.0"),
    VclusterRelease("v0.36.1", kubernetes="v1.36.0"),
)

KAI: Final[Mapping[str, KaiRelease]] = MappingProxyType({r.version: r for r in _KAI})
VCLUSTER: Final[Mapping[str, VclusterRelease]] = MappingProxyType({r.version: r for r in _VCLUSTER})


# What a stack gets that names no vCluster version.
DEFAULT_VCLUSTER: Final = _VCLUSTER[-1].version


def version_key(version: str) -> tuple[int, ...]:
    """Order of versions by their numbers; text that has none sorts first."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def nearest(table: Mapping[str, Any], version: str, count: int = 2) -> list[str]:
    """The supported versions closest to `version`, nearest first."""
    wanted = (*version_key(version), 0, 0, 0)[:3]

    def distance(known: str) -> tuple[int, ...]:
        return tuple(abs(a - b) for a, b in zip(version_key(known), wanted, strict=True))

    return sorted(table, key=distance)[:count]


def nearest_kai(version: str) -> list[str]:
    """The two supported KAI versions closest to `version`."""
    return nearest(KAI, version)


def kai(version: str) -> KaiRelease:
    """The table's entry for a KAI version such as `v0.9.3`.

    Raises UnknownVersion for anything else, also for what is newer: the highest tag, v0.20.1,
    is a retracted one (K1).
    """
    return _find("KAI", KAI, version)


def vcluster(version: str) -> VclusterRelease:
    """The table's entry for a vCluster version such as `v0.36.1`; raises UnknownVersion."""
    return _find("vCluster", VCLUSTER, version)


def _find(what: str, table: Mapping[str, T], version: str) -> T:
    if version in table:
        return table[version]
    near = " or ".join(nearest(table, version))
    hint = " (it is retracted: its chart equals v0.10.2)" if version == "v0.20.1" else ""
    raise UnknownVersion(
        f"{what} {version} is not a version this program knows{hint}; write {near}"
        f" (all: {', '.join(table)})"
    )
