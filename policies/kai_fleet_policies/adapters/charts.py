"""What a declared Helm release installs, read from its chart and values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from kai_fleet.fleet.chart_stores import store_of
from kai_fleet.fleet.cluster import Chart, Kai, Team
from kai_fleet.gpu_providers import GPU_CHARTS
from kai_fleet.releases import has_sharing_modes
from kai_fleet.releases.sharing import mode_in, of_switch
from kai_fleet.releases.sources import from_mirror
from kai_fleet.values import UNKNOWN, flag, get, items, mapping, text
from kai_fleet_policies.rules.rule import called

KAI, VCLUSTER = "kai-scheduler", "vcluster"
DEVICE_PLUGINS = GPU_CHARTS

# What the program declares has passed its own gate, which knows the stack's sources and levels.
_OWN: Final = "kai-fleet:index:"
_PACKAGE = re.compile(r"(?P<name>.+?)[-_](?P<version>v?\d+\.\d+\.\d+[^/]*)\.t(ar\.)?gz")


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


def of_host(props: Mapping[str, object], name: str, urn: str) -> Chart:
    """A release of the GPU stack."""
    return Chart(f"release {called(name)}", urn, _location(props, urn), _written(props, urn))


def _location(props: Mapping[str, object], urn: str) -> Any:
    """Where a chart is; None where the program's own components, or a local mirror, say so."""
    where = text(props.get("chart"))
    repository = text(get(props.get("repositoryOpts"), "repo"))
    if _OWN in urn or (isinstance(where, str) and from_mirror(where)):
        return None
    if UNKNOWN in (where, repository):
        return UNKNOWN
    # Helm looks a chart up in the repository; a path there stays a path of the repository's.
    return f"{str(repository).rstrip('/')}/{where}" if repository else where


def _written(props: Mapping[str, object], urn: str) -> Any:
    """The values that were written by hand."""
    if _OWN in urn:
        return {}
    return UNKNOWN if props.get("valueYamlFiles") else mapping(props.get("values"))


def _sharing(chart: Named, props: Mapping[str, object]) -> Any:
    """How pods share GPUs: through v0.17 only if switched on, then unless switched off."""
    values = props.get("values")
    settings = get(values, "global")
    if isinstance(chart.version, str):  # else any version may come
        modes = has_sharing_modes(chart.version)
        mode = mode_in(chart.version, values)
        if mode and (modes or flag(get(settings, "gpuSharing"), unset=False)):
            return mode  # it wins over the older switch
        unset = _unless_in_files(modes, props)
    else:
        unset = UNKNOWN
    on = flag(get(settings, "gpuSharing"), unset=unset)
    return UNKNOWN if on is UNKNOWN else of_switch(on)


def kai_release(chart: Named, props: Mapping[str, object], path: str) -> Kai:
    """The KAI that a release of its chart installs."""
    return Kai(
        chart.version,
        _sharing(chart, props),
        _written(props, path),
        namespace=text(props.get("namespace")),
        path=path,
        chart=_location(props, path),
        untested=f"{_OWN}KaiScheduler$" in path,
    )


def virtual_cluster(chart: Named, props: Mapping[str, object], name: str, path: str) -> Team:
    """The vCluster that a release of its chart makes.

    Its mode follows the values: a scheduler of its own means virtual, pods without owners mean that
    the host's KAI schedules them.
    """
    values, no = props.get("values"), _unless_in_files(False, props)
    own = _either(
        flag(get(values, "controlPlane", "distro", "k8s", "scheduler", "enabled"), unset=no),
        flag(get(values, "controlPlane", "advanced", "virtualScheduler", "enabled"), unset=no),
    )
    owner = flag(
        get(values, "experimental", "syncSettings", "setOwner"), unset=_unless_in_files(True, props)
    )
    mode: Any = "virtual" if own else "default" if owner else "host"
    if own is UNKNOWN or (own is False and owner is UNKNOWN):
        mode = UNKNOWN
    of_component = f"{_OWN}VirtualCluster$" in path
    image = get(values, "controlPlane", "statefulSet", "image", "repository")
    selector = get(values, "sync", "fromHost", "nodes", "selector", "labels")
    pool: Any = UNKNOWN if selector is None and no is UNKNOWN else mapping(selector)
    if pool is not UNKNOWN:
        pool = {key: text(value) or "" for key, value in pool.items()}
    return Team(
        name=name,
        namespace=text(props.get("namespace")) or "",
        version=_with_v(chart.version),
        node_pool=pool,
        mode=mode,
        path=path,
        chart=_location(props, path),
        values=_written(props, path),
        chart_values=mapping(values),
        store=store_of(values),
        untested=of_component,
        # Without a licence the component writes the open source image.
        licensed=of_component and image is None,
    )


def _with_v(version: str | None) -> str | None:
    """vCluster's chart versions have no `v`, its versions do."""
    return f"v{version.removeprefix('v')}" if isinstance(version, str) and version else version


def _unless_in_files(default: bool, props: Mapping[str, object]) -> bool:
    """A chart's default, unless a values file that only the engine reads may say otherwise."""
    return UNKNOWN if props.get("valueYamlFiles") else default


def _either(one: bool, other: bool) -> bool:
    if one is True or other is True:
        return True
    return UNKNOWN if UNKNOWN in (one, other) else False


def device_sharing(chart_name: str, values: object) -> Any:
    """How a device plugin chart's values share GPUs: by time-slicing, by MPS or ("") not at all.

    A config that only names a ConfigMap of the cluster is UNKNOWN.
    """
    config = "config" if chart_name == "nvidia-device-plugin" else "devicePlugin"
    section = get(values, config)
    found = sharing_in(section)
    named = section if config == "config" else get(section, "config")
    if found == "" and text(get(named, "name")) and not (get(named, "data") or get(named, "map")):
        return UNKNOWN
    return found


def sharing_in(value: Any) -> Any:
    """The sharing that a device plugin's config asks for, also where it is YAML text."""
    if isinstance(value, str) and ("timeSlicing" in value or "mps" in value):
        try:
            events = yaml.parse(value, yaml.SafeLoader)
            if any(isinstance(event, yaml.AliasEvent) for event in events):
                # It may stand for more than is written; a device plugin reads it all the same.
                return "time-slicing" if "timeSlicing" in value else "MPS"
            return _sharing_in([*yaml.safe_load_all(value)])
        # A day that is none, and what a tag makes of another text.
        except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return ""
    return _sharing_in(value)


def _sharing_in(value: Any) -> Any:
    if value is UNKNOWN:
        return UNKNOWN
    if isinstance(value, Mapping):
        if value.get("timeSlicing"):
            return "time-slicing"
        # `mps` also names a daemon's settings (root, nodeSelector); resources make it sharing.
        if get(value, "mps", "resources"):
            return "MPS"
        parts = [sharing_in(inner) for inner in value.values() if not isinstance(inner, bool)]
    elif isinstance(value, str):
        return ""
    else:
        parts = [sharing_in(inner) for inner in items(value)]
    for part in parts:
        if part and part is not UNKNOWN:
            return part
    return UNKNOWN if UNKNOWN in parts else ""
