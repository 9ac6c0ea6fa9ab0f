"""What each supported version of KAI and vCluster needs, and each GPU stack, from YAML tables;
finding a version, what to write where it is not there, and how long it gets fixes.

The dates are those of KAI's support list (SUPPORT.md), the last day of the month that it names, and
the ends of life on vCluster's page of supported versions.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache, partial
from importlib.resources import files
from typing import Any, Final, TypeVar

import yaml

VCLUSTER_REPOSITORY: Final = "https://charts.loft.sh"
# What a stack gets that names no vCluster version: the newest that was run with this program.
DEFAULT_VCLUSTER: Final = "v0.36.1"
RETRACTED: Final = "v0.20.1"  # the highest tag of KAI
DISABLED: Final = "Disabled"  # the mode without sharing


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

    deployments: Sequence[str]
    # The chart moved with the project: v0.9.16, v0.12.18, v0.13.1 and everything from v0.14 on
    # are published only under the new name (K2).
    chart: str = "oci://ghcr.io/kai-scheduler/kai-scheduler/kai-scheduler"
    runtime_class_key: str | None = "binder.runtimeClassName"
    ready_conditions: Sequence[str] = ()
    # Operators v0.9.0-v0.9.20 and v0.10 watch ClusterPolicy and crash-loop without its CRD (K3).
    needs_cluster_policy_crd: bool = False
    # Uninstalling leaves kai-config and its Fail webhooks, which stop pod creation (K10).
    clean_up_config: bool = True
    has_operator: bool = True  # from v0.9; before it the chart made every part itself
    operator_makes_binder: bool = True  # not in v0.9.0, v0.9.1 and v0.9.4-v0.9.20 (K8)
    # A hook deletes and makes kai-config anew at each upgrade, and the scheduler is answered 401
    # for about 48 minutes; fixed in v0.12.22, v0.14.6 and v0.16.0 (K12).
    recreates_config: bool = False
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
    # The chart reads podgrouper.resources: not in v0.9 to v0.12.
    sizes_podgrouper: bool = True
    values: Mapping[str, Any] = field(default_factory=dict)

    def resources_key(self, deployment: str) -> str:
        """The chart's value for the memory of a part; "" where it reads none."""
        name = "scheduler" if deployment.startswith("kai-scheduler") else deployment
        part = name.removeprefix("kai-").replace("-", "")
        known = part and (part != "podgrouper" or self.sizes_podgrouper)
        return f"{part}.resources" if known else ""

    @property
    def images(self) -> str:
        """Where its images are: where its chart is."""
        return self.chart.removeprefix("oci://").rpartition("/")[0]


@dataclass(frozen=True, kw_only=True)
class VclusterRelease(Release):
    """One vCluster version: its default Kubernetes, which is the newest that it has; support as on
    vCluster's page of supported versions. Upgrades go one line at a time.

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


@dataclass(frozen=True)
class GpuProvider:
    """A chart whose DaemonSets advertise GPUs, and the keys of the values that GpuStack sets.

    Keys of values are dotted. Namespace and release have the name of the chart; without a chart,
    nodes advertise their GPUs already, or have none.
    """

    chart: str = ""
    repository: str = ""
    version: str = ""
    # The RuntimeClass that the stack declares, because the chart does not.
    runtime_class: str = ""
    # The chart has the CRD of NVIDIA's ClusterPolicy, for which KAI v0.9 and v0.10 wait.
    cluster_policy: bool = False
    # API path of the singleton that a second installation on the cluster would collide with.
    rival: str = ""
    # Lists of tolerations, with the chart's defaults, which a list of ours would replace.
    tolerations: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    # Lists of image pull Secrets: of names, and of objects `{name: …}`.
    pull_names: Sequence[str] = ()
    pull_objects: Sequence[str] = ()
    # Where the images of a key's component are: what a mirror has at the same path.
    images: Mapping[str, str] = field(default_factory=dict)
    in_kind: Mapping[str, Any] = field(default_factory=dict)  # values for a kind cluster


@cache
def table(name: str, package: str = __package__) -> Any:
    """A YAML file of a folder, by default of this one; not to be changed."""
    return yaml.load((files(package) / f"{name}.yaml").read_bytes(), yaml.CSafeLoader)


_READ: Final = table("versions")
KAI: Final = {version: KaiRelease(version=version, **row) for version, row in _READ["kai"].items()}
VCLUSTER: Final = {
    version: VclusterRelease(version=version, **row) for version, row in _READ["vcluster"].items()
}
KUBERNETES: Final[Sequence[str]] = _READ["kubernetes"]
GPU_PROVIDERS: Final = {
    name: GpuProvider(**row) for name, row in table("gpu_providers")["providers"].items()
}
# The value of vCluster's chart for the memory of an etcd beside the control plane.
ETCD_RESOURCES: Final = "controlPlane.backingStore.etcd.deploy.statefulSet.resources"
# Names of those charts, and of their namespaces.
GPU_CHARTS: Final = frozenset(each.chart for each in GPU_PROVIDERS.values() if each.chart)
R = TypeVar("R", bound=Release)


class UnknownVersionError(LookupError):
    """A version that is not in the table; its text says what to write."""


def version_key(version: str) -> tuple[int, ...]:
    """Order of versions by their numbers; text that has none sorts first."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def takes_external_pod_groups(version: str) -> bool:
    """Whether a KAI takes a pod's queue from a PodGroup that it did not make itself."""
    return version_key(version) >= (0, 15)


def has_sharing_modes(version: str) -> bool:
    """Whether the chart of a KAI takes `global.gpuSharingMode` in place of `global.gpuSharing`.

    It then shares GPUs where neither is set.
    """
    return version_key(version) >= (0, 18)


def instead(table: Mapping[str, Release], version: str) -> str:
    """What to write in place of a version that the table lacks: the one that only wants its `v`,
    the newest of its line, else the advised one. It follows "write".
    """
    if f"v{version}" in table:
        return f"v{version}"
    advisable = [known for known, release in table.items() if not release.caveat]
    line = [known for known in advisable if version_key(known)[:2] == version_key(version)[:2]]
    trial = ", or add untested: true beside it to try it" if taken_for(table, version) else ""
    return (line[-1] if line else advised(table) or advisable[-1]) + trial


def taken_for(table: Mapping[str, Any], version: str) -> str | None:
    """The known version that a newer one, which was not tried here, is taken for.

    None for a version that is known, and for one that is older than what is known of its line.
    """
    if version in table or version == RETRACTED:
        return None
    numbers = version_key(version)
    line = [known for known in table if version_key(known)[:2] == numbers[:2]]
    newest = (line or list(table))[-1]
    return newest if numbers > version_key(newest) else None


def _entry(what: str, table: Mapping[str, R], version: str, *, untested: bool = False) -> R:
    """The table's entry for a version such as `v0.9.3`.

    `untested` lets a version through that is newer than the newest known one of its line, or of
    all: it is taken for that one. Raises UnknownVersionError for anything else.
    """
    if version in table:
        return table[version]
    known = taken_for(table, version)
    if untested and known is not None:
        return replace(table[known], version=version, support_end=None, caveat="")
    hint = " (it is retracted: its chart equals v0.10.2)" if version == RETRACTED else ""
    raise UnknownVersionError(
        f"{what} {version} is not a version this program knows{hint}; write"
        f" {instead(table, version)} (all: {', '.join(table)})"
    )


kai: Final = partial(_entry, "KAI", KAI)
vcluster: Final = partial(_entry, "vCluster", VCLUSTER)


def unknown_version(entry: Callable[..., Release], args: Mapping[str, Any]) -> list[str]:
    """What is wrong with `version` of a component's arguments: no version of the table of `entry`,
    which is `kai` or `vcluster`.
    """
    try:
        if "version" in args:
            entry(args["version"], untested=bool(args.get("untested")))
    except UnknownVersionError as why:
        return [f"version: {why}"]
    return []


@dataclass(frozen=True)
class Support:
    """Whether a version gets fixes, and the words for it that follow its number."""

    maintained: bool
    words: str


def support(table: Mapping[str, Release], version: str, today: date | None = None) -> Support:
    """The support of a version of KAI or vCluster on a day."""
    known = table.get(version)
    if known is None:
        if version == RETRACTED:
            return Support(False, "retracted: its chart is that of v0.10.2")
        newer = taken_for(table, version) is not None
        return Support(False, "not tried with this program" if newer else "not supported here")
    if known.support_end is None:
        return Support(False, f"no support dates are published for line {known.line}")
    if known.support_end < (today or date.today()):
        return Support(False, f"line {known.line} is out of support since {known.support_end}")
    return Support(True, f"supported until {known.support_end}")


def advised(
    table: Mapping[str, Release], version: str = "", today: date | None = None
) -> str | None:
    """The version to move to, or to begin with: of those that may be advised and get fixes, the
    newest of those that get them longest. None where that is not newer than `version`.
    """
    kept = [
        known
        for known, release in table.items()
        if not release.caveat and support(table, known, today).maintained
    ]
    ends = {known: (str(table[known].support_end), version_key(known)) for known in kept}
    best = max(kept, key=ends.__getitem__, default="")
    return best if version_key(best) > version_key(version) else None


def standing(table: Mapping[str, Release], version: str, today: date | None = None) -> Support:
    """The support of a version, and what speaks against it: `maintained` is only one that may be
    advised.
    """
    kept, known = support(table, version, today), table.get(version)
    if known is None or not known.caveat:
        return kept
    return Support(False, f"{kept.words}; not advised: {known.caveat}")


def advice(table: Mapping[str, Release], version: str, today: date | None = None) -> str:
    """What to do where a version is not advised, as a clause that follows a semicolon."""
    if to := advised(table, version, today):
        up = "go up one line at a time," if table is VCLUSTER else "move"
        return f"{up} to {to} ({support(table, to, today).words})"
    older = advised(table, "", today)
    known = table.get(version)
    if older is None or known is None or not known.caveat:
        return "nothing newer here gets fixes: stay, and look for a newer kai-fleet"
    # A vCluster goes up only.
    new = " for a new one; one that runs it stays" if table is VCLUSTER else ""
    return f"write {older} ({support(table, older, today).words}){new}"


def why_replaced(before: KaiRelease, after: KaiRelease) -> str:
    """Why a KAI release is replaced on the way to another version; "" where helm upgrades it.

    A replaced release is uninstalled, cleaned up and installed. Queues, CRDs and running pods stay
    either way; it takes no longer than an upgrade in place (43.0 s against 42.4 s, v0.9.3 to
    v0.16.8).
    """
    if version_key(after.version) < version_key(before.version):
        return "helm cannot downgrade this chart"  # K9 of docs/traps.md
    if before.has_operator != after.has_operator:
        return "the new chart has kai-operator, whose CRD helm upgrade does not install"  # K7
    if not before.has_operator and before.deployments != after.deployments:
        return "admission moves from the binder into its own Deployment"
    if before.operator_makes_binder != after.operator_makes_binder:
        return "chart and operator both claim the binder's objects"  # K8
    if after.recreates_config:  # K12
        return (
            f"helm upgrade to {after.version} recreates kai-config, and its scheduler would not"
            " come up for most of an hour"
        )
    return ""


def vcluster_refusal(before: str, after: str) -> str | None:
    """Why a vCluster cannot go from one version to the other in one step; None where it can.

    Upgrades go one minor line at a time, and there is no way back: the state in the volume and
    Kubernetes' own storage versions are not undone.
    """
    old, new = version_key(before)[:2], version_key(after)[:2]
    if version_key(after) < version_key(before):
        return (
            f"{before} → {after} is a downgrade, which vCluster does not support; write {before},"
            " or remove the team and add it again"
        )
    if new[0] == old[0] and new[1] - old[1] <= 1:
        return None
    skipped = ", ".join(f"v{old[0]}.{minor}" for minor in range(old[1] + 1, new[1]))
    line = f"v{old[0]}.{old[1] + 1}"
    first = next((known for known in VCLUSTER if known.startswith(f"{line}.")), None)
    return (
        f"{before} → {after} skips {skipped}: vCluster goes one minor version at a time; write"
        f" {first or f'a version of {line}'} first, then up line by line"
    )


def kubernetes_refusal(version: str, before: str | None, newest: str | None) -> str | None:
    """Why a vCluster cannot run a version of Kubernetes, and what to write; None where it can.

    An API server does not read what a newer one wrote, and Kubernetes goes up one minor version at
    a time (its policy of version skew).

    Args:
        before: What it runs now, None where that is not known.
        newest: Of the versions that its vCluster has, None where that is not known.
    """
    wrote = f"is {version} after {before}"
    if before and version_key(version) < version_key(before):
        cause = "an older API server does not read what a newer one wrote"
        return f"{wrote}, and {cause}; write {before}"
    stays = before is not None and _minor(version) == _minor(before)
    if newest and _minor(version) > _minor(newest) and not stays:
        write = newest
        if before:
            write = _next(before) if _minor(before) < _minor(newest) else before
        return (
            f"is {version}, and its vCluster has none after {newest.rpartition('.')[0]}; write"
            f" {write}, or add untested: true beside it to try it"
        )
    if before and _minor(version) > _following(before):
        return (
            f"{wrote}, and Kubernetes goes up one minor version at a time; write"
            f" {_next(before)} first, then up one by one"
        )
    if _minor(version) < _minor(KUBERNETES[0]) and not before:
        return (
            f"is {version}, and no vCluster has one before {KUBERNETES[0]}, nor the guards inside"
            f" one before v1.30; write {newest or KUBERNETES[-1]}"
        )
    return None


def _minor(version: str) -> tuple[int, ...]:
    return version_key(version)[:2]


def _following(version: str) -> tuple[int, ...]:
    """The minor version after that of `version`."""
    major, minor = _minor(version)
    return major, minor + 1


def _next(version: str) -> str:
    """What to write for the minor version after that of `version`."""
    major, minor = following = _following(version)
    known = (each for each in KUBERNETES if _minor(each) == following)
    return next(known, f"one of v{major}.{minor}")
