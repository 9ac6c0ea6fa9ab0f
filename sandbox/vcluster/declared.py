"""The configuration of a vCluster's chart, and the endpoint that its Service asks for."""

import base64
import binascii
import functools
import ipaddress
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from kai_fleet.values import value_at
from sandbox.control_plane.ports import Ports, free


@dataclass(frozen=True)
class VclusterConfig:
    """The keys that matter here; the rest of vCluster's configuration has no effect.

    `config_maps` are those that its pod mounts, by the folder. `problem` is why a real vCluster
    would not start with it, or None.
    """

    node_labels: Mapping[str, str]
    scheduler: bool = False
    runtime_classes: bool = False
    extra_names: tuple[str, ...] = ()
    server: str = ""
    context: str = ""
    set_owner: bool = True
    api_server_args: tuple[str, ...] = ()
    config_maps: Mapping[str, str] = field(default_factory=dict, hash=False)
    problem: str | None = None


def read(secret: Mapping[str, Any]) -> VclusterConfig:
    """The configuration in a Secret as the API serves it; what does not parse is its problem."""
    try:
        return _read(str(secret["data"]["config.yaml"]))
    except (KeyError, TypeError) as why:
        return VclusterConfig({}, problem=f"its key config.yaml cannot be read: {why}")


# It is read in each round, and parsing took a quarter of a round.
@functools.lru_cache(maxsize=256)
def _read(encoded: str) -> VclusterConfig:
    try:
        values = yaml.safe_load(base64.b64decode(encoded, validate=True))
    except (binascii.Error, yaml.YAMLError) as why:
        return VclusterConfig({}, problem=f"its key config.yaml cannot be read: {why}")
    return parse(values if isinstance(values, dict) else {})


def parse(values: Mapping[str, Any]) -> VclusterConfig:
    """The configuration from the chart's merged values."""
    everything = _on(values, "sync.fromHost.nodes.selector.all")
    labels = value_at(values, "sync.fromHost.nodes.selector.labels")
    extra = value_at(values, "controlPlane.proxy.extraSANs")
    return VclusterConfig(
        node_labels=dict(labels) if isinstance(labels, dict) and not everything else {},
        scheduler=_has_scheduler(values),
        runtime_classes=_on(values, "sync.fromHost.runtimeClasses.enabled"),
        extra_names=tuple(str(name) for name in extra) if isinstance(extra, list) else (),
        server=str(value_at(values, "exportKubeConfig.server") or "https://localhost:8443"),
        context=str(value_at(values, "exportKubeConfig.context") or "my-vcluster"),
        set_owner=value_at(values, "experimental.syncSettings.setOwner") is not False,
        api_server_args=tuple(
            value_at(values, "controlPlane.distro.k8s.apiServer.extraArgs") or ()
        ),
        config_maps=_config_maps(value_at(values, "controlPlane.statefulSet.persistence") or {}),
        problem=_problem(values),
    )


def _config_maps(persistence: Mapping[str, Any]) -> dict[str, str]:
    volumes = {volume["name"]: volume for volume in persistence.get("addVolumes") or []}
    mounts = persistence.get("addVolumeMounts") or []
    mounted = {mount["mountPath"]: volumes[mount["name"]] for mount in mounts}
    names = {path: volume.get("configMap", {}).get("name") for path, volume in mounted.items()}
    return {path: name for path, name in names.items() if name}


def _problem(values: Mapping[str, Any]) -> str | None:
    if _has_scheduler(values) and not _on(values, "sync.fromHost.nodes.enabled"):
        return (
            "sync.fromHost.nodes.enabled is false, but a virtual scheduler needs it: set it to true"
        )
    resources = value_at(values, "sync.fromHost.customResources")
    for name, resource in (resources if isinstance(resources, dict) else {}).items():
        if not isinstance(resource, dict) or resource.get("scope") != "Namespaced":
            continue
        if resource.get("enabled") and not value_at(resource, "mappings.byName"):
            return (
                f"sync.fromHost.customResources[{name!r}] has scope Namespaced, which needs "
                "mappings.byName: add it, or take the entry out"
            )
    return None


def _has_scheduler(values: Mapping[str, Any]) -> bool:
    keys = ("distro.k8s.scheduler", "advanced.virtualScheduler")
    return any(_on(values, f"controlPlane.{key}.enabled") for key in keys)


def _on(values: Mapping[str, Any], path: str) -> bool:
    return value_at(values, path) is True


@dataclass(frozen=True)
class Endpoint:
    """An address of this machine. `problem` says what the Service asked for and did not get."""

    address: str
    port: int
    problem: str | None = field(default=None, compare=False)


def choose_endpoint(
    service: Mapping[str, Any], ports: Ports, taken: Collection[Endpoint], remembered: Path
) -> Endpoint:
    """The endpoint for a Service.

    NodePort: its node port. LoadBalancer: a loopback address of its own, port 443. Otherwise a
    free port. Both of the latter are kept in the file `remembered`. `taken` are the others'.
    """
    spec = service.get("spec", {})
    if spec.get("type") == "NodePort" and (port := _node_port(spec)):
        return Endpoint("127.0.0.1", port)
    before, problem = _remembered(remembered), None
    if spec.get("type") == "LoadBalancer":
        if before is not None and before.port == 443:
            return before
        candidates = (Endpoint(f"{ports.loopback_prefix}{host}", 443) for host in range(1, 255))
        endpoint = next(each for each in candidates if each not in taken)
        if free(443, endpoint.address):
            return _remember(endpoint, remembered)
        problem = (
            f"port 443 of {endpoint.address} cannot be listened on (it takes root, and on macOS "
            "an alias of lo0): use a Service of type NodePort in the sandbox"
        )
    if before is not None and before.port in ports.inner:
        return replace(before, problem=problem)
    for port in ports.inner:
        endpoint = Endpoint("127.0.0.1", port, problem)
        if endpoint not in taken and free(port):
            return _remember(endpoint, remembered)
    raise RuntimeError(f"all of the sandbox's ports {ports.inner} for vClusters are in use")


def _node_port(spec: Mapping[str, Any]) -> int | None:
    entries = spec.get("ports", [])
    https = [entry for entry in entries if entry.get("name") == "https"] or entries
    return https[0].get("nodePort") if https else None


def _remembered(path: Path) -> Endpoint | None:
    try:
        address, port = path.read_text().split()
        return Endpoint(str(ipaddress.ip_address(address)), int(port))
    except (OSError, ValueError):
        return None


def _remember(endpoint: Endpoint, path: Path) -> Endpoint:
    path.write_text(f"{endpoint.address} {endpoint.port}\n")
    return endpoint
