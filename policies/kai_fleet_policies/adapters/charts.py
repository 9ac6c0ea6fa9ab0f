"""What a declared Helm release installs, read from its chart and values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kai_fleet.releases import GPU_CHARTS, has_sharing_modes
from kai_fleet.releases.sharing import mode_in, of_switch
from kai_fleet.values import UNKNOWN, flag, get, mapping, pairs, text, value_at
from kai_fleet.vcluster_stores import store_of
from kai_fleet_policies.model.cluster import Kai, Team

KAI, VCLUSTER = "kai-scheduler", "vcluster"
DEVICE_PLUGINS = GPU_CHARTS

# What the program declares has passed its own gate, which knows the stack's sources and levels.
_OWN: Final = "kai-fleet:index:"
_PACKAGE: Final = re.compile(r"(?P<name>.+?)[-_](?P<version>v?\d+\.\d+\.\d+[^/]*)\.t(ar\.)?gz")
_COMMENT: Final = re.compile(r"#.*?(\\n|$)", re.MULTILINE)
_VIRTUAL: Final = (
    "controlPlane.distro.k8s.scheduler.enabled",
    "controlPlane.advanced.virtualScheduler.enabled",
)
_OWNER: Final = "experimental.syncSettings.setOwner"


@dataclass(frozen=True)
class Named:
    """The name of a chart and its version, None where the newest is taken."""

    name: str
    version: str | None


def chart_of(props: Mapping[str, Any]) -> Any:
    """The chart of a release: a name, an OCI reference, a package's URL or a local path."""
    chart, version = text(props.get("chart")), text(props.get("version"))
    if chart is UNKNOWN:
        return UNKNOWN
    last = (chart or "").rstrip("/").rpartition("/")[2].partition("?")[0]
    package = _PACKAGE.fullmatch(last)
    if package:
        return Named(package["name"], package["version"])
    name, colon, tag = last.partition(":")
    return Named(name, version or (tag if colon else None))


def _written(props: Mapping[str, object], urn: str) -> Any:
    """The values that were written by hand."""
    return {} if _OWN in urn else mapping(props.get("values"))


def _sharing(version: str | None, values: Any) -> Any:
    """How pods share GPUs: through v0.17 only if switched on, then unless switched off."""
    switch = value_at(values, "global.gpuSharing")
    modes: Any = UNKNOWN  # any version may come
    if isinstance(version, str):
        modes, mode = has_sharing_modes(version), mode_in(version, values)
        if mode and (modes or flag(switch, unset=False)):
            return mode  # it wins over the older switch
    on = flag(switch, unset=modes)
    return UNKNOWN if on is UNKNOWN else of_switch(on)


def kai_release(chart: Named, props: Mapping[str, object], path: str) -> Kai:
    """The KAI that a release of its chart installs."""
    return Kai(
        chart.version,
        _sharing(chart.version, props.get("values")),
        _written(props, path),
        namespace=text(props.get("namespace")),
        path=path,
        untested=f"{_OWN}KaiScheduler$" in path,
    )


def virtual_cluster(chart: Named, props: Mapping[str, object], name: str, path: str) -> Team:
    """The vCluster that a release of its chart makes.

    Its mode follows the values: a scheduler of its own means virtual, pods without owners mean that
    the host's KAI schedules them.
    """
    values, version = props.get("values"), chart.version
    own = [flag(value_at(values, key), unset=False) for key in _VIRTUAL]
    owner = flag(value_at(values, _OWNER), unset=True)
    mode: Any = "virtual" if True in own else "default" if owner else "host"
    if mode != "virtual" and UNKNOWN in (*own, owner):
        mode = UNKNOWN
    of_component = f"{_OWN}VirtualCluster$" in path
    pool = mapping(value_at(values, "sync.fromHost.nodes.selector.labels"))
    if pool is not UNKNOWN:
        pool = {key: text(value) or "" for key, value in pool.items()}
    if isinstance(version, str) and version:
        version = f"v{version.removeprefix('v')}"  # the chart's have none
    image = value_at(values, "controlPlane.statefulSet.image.repository")
    return Team(
        name=name,
        namespace=text(props.get("namespace")) or "",
        version=version,
        node_pool=pool,
        mode=mode,
        path=path,
        values=_written(props, path),
        chart_values=mapping(values),
        store=store_of(values),
        untested=of_component,
        # Without a licence the component writes the open source image.
        licensed=of_component and image is None,
    )


def device_sharing(chart_name: str, values: object) -> Any:
    """How a device plugin chart's values share GPUs: by time-slicing, by MPS or ("") not at all.

    A config that only names a ConfigMap of the cluster is UNKNOWN.
    """
    above = () if chart_name == "nvidia-device-plugin" else ("devicePlugin",)
    config = get(values, *above, "config")
    elsewhere = pairs(config).get("name") and not (get(config, "data") or get(config, "map"))
    return UNKNOWN if elsewhere else sharing_in(config)


def sharing_in(config: Any) -> Any:
    """The sharing that a device plugin's config asks for, also where it is YAML text: both ways
    list resources; `mps` without them has a daemon's settings.
    """
    written = _COMMENT.sub("", str(config))
    for key, way in (("timeSlicing", "time-slicing"), ("mps", "MPS")):
        if key in written and "resources" in written:
            return way
    return UNKNOWN if str(UNKNOWN) in written else ""
