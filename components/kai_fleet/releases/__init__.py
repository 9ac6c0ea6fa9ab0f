"""What each supported version of KAI and vCluster needs, and each GPU stack, from YAML tables.

Functions find a version in the tables, say what to write in place of an unknown one, how long a
version gets fixes, and which step from one version to another is possible.

Dates of KAI are those of its support list (SUPPORT.md): the last day of the month that it names.
Dates of vCluster are the ends of life on its page of supported versions.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeVar

import yaml

VCLUSTER_REPOSITORY = "https://charts.loft.sh"
# The version of a vCluster whose stack file names none: the newest that was run with this program.
DEFAULT_VCLUSTER = "v0.36.1"
RETRACTED = "v0.20.1"  # the highest tag of KAI
DISABLED: Literal["Disabled"] = "Disabled"  # the mode of KAI that shares no GPUs


@dataclass(frozen=True, kw_only=True)
class Release:
    """One version of KAI or vCluster."""

    version: str
    support_end: date | None = None
    """The last day on which its line gets fixes; None: no support list names the line."""
    caveat: str = ""
    """Why no advice leads to it; "" if nothing speaks against it."""

    @property
    def line(self) -> str:
        """The minor line, for example `v0.9`."""
        return ".".join(self.version.split(".")[:2])


@dataclass(frozen=True, kw_only=True)
class KaiRelease(Release):
    """One KAI version: where its chart is, and what that version needs."""

    deployments: Sequence[str]
    """Its Deployments, which have to be rolled out before queues and pods are declared."""
    kubernetes: str
    """The newest minor version of Kubernetes that its line was validated with, such as `v1.36`."""
    # The chart moved with the project: v0.9.16, v0.12.18, v0.13.1 and everything from v0.14 on
    # are published only under the new name (K2).
    chart: str = "oci://ghcr.io/kai-scheduler/kai-scheduler/kai-scheduler"
    runtime_class_key: str | None = "binder.runtimeClassName"
    """The dotted value for the RuntimeClass of reservation pods; None: the chart has none."""
    ready_conditions: Sequence[str] = ()
    """Objects with a condition that says when the version is up, as `RESOURCE.GROUP/NAME`."""
    # Operators v0.9.0-v0.9.20 and v0.10 watch ClusterPolicy and crash-loop without its CRD (K3).
    needs_cluster_policy_crd: bool = False
    # From v0.9; before it the chart declares every Deployment itself. Uninstalling leaves the
    # operator's kai-config and its webhooks, which refuse all pods: failurePolicy Fail (K10).
    has_operator: bool = True
    operator_makes_binder: bool = True  # not in v0.9.0, v0.9.1 and v0.9.4-v0.9.20 (K8)
    # A hook deletes kai-config at each upgrade and creates it anew, and the API server answers the
    # scheduler 401 for about 48 minutes; fixed in v0.12.22, v0.14.6 and v0.16.0 (K12).
    recreates_config: bool = False
    max_queue_depth: int | None = None
    """Levels of the queue tree that it schedules: two through v0.12 (Q6); None: any number."""
    container_name_annotation: bool = True  # gpu-fraction-container-name, from v0.10 (W3)
    # global.nodeSelector and imagePullSecrets do not reach the operands in v0.9-v0.12 (K17).
    operands_get_node_selector: bool = True
    # From v0.10 the operator runs a scheduler for each SchedulingShard, which has a field for usage
    # over time. Before, a shard is a second scheduler beside the chart's own.
    has_shards: bool = True
    has_topologies: bool = True  # from v0.12; before, KAI reads Kueue's Topology objects
    prometheus_values: bool = False  # the chart has values for Prometheus from v0.15
    hides_gpus: bool = False  # global.blockNvidiaVisibleDevices, from v0.16
    # All pods of a Deployment created from then on are one PodGroup (#2109). Its minMember is 1, so
    # that each still starts alone; preemptMinRuntime and the like count for all of them.
    groups_deployments: bool = False
    # The chart reads podgrouper.resources; not in v0.9 to v0.12.
    sizes_podgrouper: bool = True
    values: Mapping[str, Any] = field(default_factory=dict)
    """Values of the chart that this version needs."""

    def resources_key(self, deployment: str) -> str:
        """The dotted chart value for the resources of a Deployment of KAI.

        "" if the name is "", or for the podgrouper if the chart has none for it. Whether KAI has
        such a Deployment is not checked.
        """
        name = deployment
        if deployment.startswith("kai-scheduler"):  # of a shard: kai-scheduler-default
            name = "scheduler"
        component = name.removeprefix("kai-").replace("-", "")
        if component == "podgrouper" and not self.sizes_podgrouper:
            return ""
        return f"{component}.resources" if component else ""

    @property
    def images(self) -> str:
        """The registry path of its images, which is that of its chart: `ghcr.io/nvidia/…`."""
        return self.chart.removeprefix("oci://").rpartition("/")[0]


@dataclass(frozen=True, kw_only=True)
class VclusterRelease(Release):
    """One vCluster version. Upgrades go one line at a time."""

    kubernetes: str
    """Its default version of Kubernetes, which is the newest that it has."""
    etcd_after: str = ""
    """A version that has to run before it in a vCluster of store `etcd`; "": none."""
    not_ready_below: str = ""
    """On a host of this Kubernetes or newer, pods of an older one inside stay NotReady.

    "": they become Ready.
    """
    renews: bool = True
    """When it starts, it renews certificates that end within 90 days: from v0.31
    (pkg/certs/ensure.go).
    """
    splits_authorities: bool = True
    """It issues certificates by one authority for its clients and another for its server: from
    v0.33.4 (ensureKubeConfigsTrustServerCA in pkg/certs/ensure.go).
    """

    @property
    def chart_version(self) -> str:
        """The version as the chart repository spells it: without the `v`."""
        return self.version.removeprefix("v")


@dataclass(frozen=True)
class GpuProvider:
    """A chart whose DaemonSets advertise GPUs, and the keys of the values that GpuStack sets.

    Keys of values are dotted. Namespace and release have the name of the chart. `chart` is "" where
    nodes advertise their GPUs already, or have none.
    """

    chart: str = ""
    repository: str = ""
    version: str = ""
    runtime_class: str = ""
    """The RuntimeClass that the stack declares because the chart does not."""
    cluster_policy: bool = False
    """The chart has the CRD of NVIDIA's ClusterPolicy, for which KAI v0.9 and v0.10 wait."""
    rival: str = ""
    """API path of the object that a second installation on the cluster would collide with."""
    tolerations: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    """Keys of lists of tolerations, with the chart's defaults, which our list would replace."""
    pull_names: Sequence[str] = ()
    """Keys of lists of image pull Secrets, by name."""
    pull_objects: Sequence[str] = ()
    """Keys of lists of image pull Secrets, as objects `{name: …}`."""
    images: Mapping[str, str] = field(default_factory=dict)
    """Keys of image repositories, with the registry path that a mirror has to copy."""
    in_kind: Mapping[str, Any] = field(default_factory=dict)
    """Values for a kind cluster."""


@cache
def table(name: str, package: str = __package__) -> Any:
    """The YAML file `name`.yaml of a package, parsed. Do not change it: it is cached.

    Raises FileNotFoundError.
    """
    return yaml.load((files(package) / f"{name}.yaml").read_bytes(), yaml.CSafeLoader)


_VERSIONS = table("versions")
KAI = {
    version: KaiRelease(version=version, **fields) for version, fields in _VERSIONS["kai"].items()
}
VCLUSTER = {
    version: VclusterRelease(version=version, **fields)
    for version, fields in _VERSIONS["vcluster"].items()
}
KUBERNETES: Sequence[str] = _VERSIONS["kubernetes"]
GPU_PROVIDERS = {
    name: GpuProvider(**fields) for name, fields in table("gpu_providers")["providers"].items()
}
# The value of vCluster's chart for the resources of an etcd beside the control plane.
ETCD_RESOURCES = "controlPlane.backingStore.etcd.deploy.statefulSet.resources"
# Names of the charts of GPU stacks, which are also those of their namespaces.
GPU_CHARTS = frozenset(provider.chart for provider in GPU_PROVIDERS.values() if provider.chart)
# What ran together on real nodes: `vcluster`, `kubernetes` (the one inside) and a list of `kai`.
TRIED: Sequence[Mapping[str, Any]] = _VERSIONS["tried"]
AnyRelease = TypeVar("AnyRelease", bound=Release)


class UnknownVersionError(LookupError):
    """A version that is not in the table; the message says what to write."""


def version_key(version: str) -> tuple[tuple[int, ...], bool, list[str]]:
    """What to compare versions by, in semver's order; a text without numbers is the lowest.

    `v0.16.0-rc.1` is below `v0.16.0`, and what follows a `+` does not count. A line such as `v0.16`
    is below all its versions.
    """
    suffix = version.partition("+")[0].partition("-")[2]
    # With zeros in front of them numbers sort as numbers, and below texts.
    parts = [part.zfill(20) if part.isdecimal() else part for part in suffix.split(".")]
    return numbers_of(version), not suffix, parts


def numbers_of(version: str) -> tuple[int, ...]:
    """The numbers in a version, without those of a suffix; empty for a text without numbers."""
    numbers, *_ = re.split("[-+]", version)
    return tuple(int(number) for number in re.findall(r"\d+", numbers))


def takes_external_pod_groups(version: str) -> bool:
    """Whether a KAI takes a pod's queue from a PodGroup that it did not create itself.

    False for the version "", which stands for no KAI.
    """
    return minor_line(version) >= (0, 15)


def has_sharing_modes(version: str) -> bool:
    """Whether the chart of a KAI has `global.gpuSharingMode` in place of `global.gpuSharing`.

    Such a KAI shares GPUs unless the mode says otherwise.
    """
    return minor_line(version) >= (0, 18)


def instead(releases: Mapping[str, Release], version: str) -> str:
    """What to write in place of a version that the table lacks, after the word "write".

    The first of these: the version with the `v` that it lacks, the newest of its line, the
    recommended one, the newest of all. None but the first may have a caveat. For a version that is
    newer than the known ones the text offers `untested: true` as well. `releases` are in ascending
    order, as in the table. Raises IndexError if all of them have a caveat.
    """
    if f"v{version}" in releases:
        return f"v{version}"
    without_caveat = [known for known, release in releases.items() if not release.caveat]
    same_line = [known for known in without_caveat if minor_line(known) == minor_line(version)]
    replacement = advised(releases) or without_caveat[-1]
    if same_line:
        replacement = same_line[-1]
    if taken_for(releases, version):
        return f"{replacement}, or add untested: true beside it to try it"
    return replacement


def taken_for(releases: Mapping[str, object], version: str) -> str | None:
    """The known version whose entry serves for a newer one that was not tried here.

    That is the newest of its line, or of all if the line is unknown. None for a version that is
    known, retracted, or not newer than that one. `releases` are in ascending order, as in the
    table.
    """
    if version in releases or version == RETRACTED:
        return None
    same_line = [known for known in releases if minor_line(known) == minor_line(version)]
    newest = (same_line or list(releases))[-1]
    return newest if version_key(version) > version_key(newest) else None


def _entry(
    product: str,
    releases: Mapping[str, AnyRelease],
    version: str,
    *,
    untested: bool,
) -> AnyRelease:
    """The entry of a version such as `v0.16.8`.

    With `untested` a version that is newer than the known ones has the entry of `taken_for`, with
    this version, no support end and no caveat.

    Raises:
        UnknownVersionError: the table does not have the version.
    """
    if version in releases:
        return releases[version]
    known = taken_for(releases, version)
    if untested and known is not None:
        return replace(releases[known], version=version, support_end=None, caveat="")
    hint = " (it is retracted: its chart equals v0.10.2)" if version == RETRACTED else ""
    raise UnknownVersionError(
        f"{product} {version} is not a version this program knows{hint}; write"
        f" {instead(releases, version)} (all: {', '.join(releases)})"
    )


def kai(version: str, *, untested: bool = False) -> KaiRelease:
    """The entry of a KAI version. `untested` and what it raises are as of `_entry`."""
    return _entry("KAI", KAI, version, untested=untested)


def vcluster(version: str, *, untested: bool = False) -> VclusterRelease:
    """The entry of a vCluster version. `untested` and what it raises are as of `_entry`."""
    return _entry("vCluster", VCLUSTER, version, untested=untested)


def unknown_version(entry: Callable[..., Release], args: Mapping[str, object]) -> list[str]:
    """The mistake in `version` of a component's arguments, if there is one: a list of at most one.

    `entry` is `kai` or `vcluster`, which finds the version. A version that is absent is no mistake.
    """
    if "version" not in args:
        return []
    try:
        entry(args["version"], untested=bool(args.get("untested")))
    except UnknownVersionError as error:
        return [f"version: {error}"]
    return []


@dataclass(frozen=True)
class Support:
    """Whether a version gets fixes, and words that say so after its number."""

    maintained: bool
    words: str


def support(releases: Mapping[str, Release], version: str) -> Support:
    """The support of a version of KAI or vCluster today; the last day counts as supported.

    A version outside the table is not maintained, nor is a line without published dates. A caveat
    does not count: see `standing`.
    """
    release = releases.get(version)
    if release is None:
        if version == RETRACTED:
            return Support(False, "retracted: its chart is that of v0.10.2")
        if taken_for(releases, version):
            return Support(False, "not tried with this program")
        return Support(False, "not supported here")
    if release.support_end is None:
        return Support(False, f"no support dates are published for line {release.line}")
    if release.support_end < date.today():
        return Support(False, f"line {release.line} is out of support since {release.support_end}")
    return Support(True, f"supported until {release.support_end}")


def advised(releases: Mapping[str, Release], version: str = "") -> str | None:
    """The recommended version: the newest of those with the latest end of support.

    Only a version without a caveat that gets fixes today is recommended. None if there is none, or
    if it is not newer than `version`.
    """
    maintained = [
        known
        for known, release in releases.items()
        if not release.caveat and support(releases, known).maintained
    ]
    maintained.sort(key=lambda known: (str(releases[known].support_end), version_key(known)))
    if not maintained or version_key(maintained[-1]) <= version_key(version):
        return None
    return maintained[-1]


def standing(releases: Mapping[str, Release], version: str) -> Support:
    """The support of a version today.

    A version with a caveat counts as not maintained.
    """
    supported = support(releases, version)
    release = releases.get(version)
    if release is None or not release.caveat:
        return supported
    return Support(False, f"{supported.words}; not advised: {release.caveat}")


def advice(releases: Mapping[str, Release], version: str) -> str:
    """What to do today about a version that is not advised: a clause after a semicolon.

    The first of these: go up to the recommended version; if the version has a caveat, write the
    recommended one although it is older; else stay.
    """
    newer = advised(releases, version)
    if newer is not None:
        step = "go up one line at a time," if releases is VCLUSTER else "move"
        return f"{step} to {newer} ({support(releases, newer).words})"
    older = advised(releases)
    release = releases.get(version)
    if older is None or release is None or not release.caveat:
        return "nothing newer here gets fixes: stay, and look for a newer kai-fleet"
    # A vCluster cannot be downgraded.
    limit = " for a new one; one that runs it stays" if releases is VCLUSTER else ""
    return f"write {older} ({support(releases, older).words}){limit}"


def why_replaced(before: KaiRelease, after: KaiRelease) -> str:
    """Why a KAI release is replaced on the way to another version; "" if Helm upgrades it.

    A replaced release is uninstalled, cleaned up and installed. Queues, CRDs and running pods stay
    either way, and it takes no longer than an upgrade in place (43.0 s against 42.4 s from v0.9.3
    to v0.16.8). The first reason counts.
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


def was_tried(kubernetes: str, kai: str = "", vcluster: str = "") -> bool:
    """Whether these versions ran together on real nodes; one that is left out, "", may be any.

    Of `kubernetes`, that inside a vCluster, only the minor line counts.
    """
    return any(
        minor_line(trial["kubernetes"]) == minor_line(kubernetes)
        and kai in ("", *trial["kai"])
        and vcluster in ("", trial["vcluster"])
        for trial in TRIED
    )


def minor_line(version: str) -> tuple[int, ...]:
    """The major and minor number of a version; fewer numbers if it has fewer."""
    return numbers_of(version)[:2]
