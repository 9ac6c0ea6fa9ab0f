"""Where a vCluster's API listens: what the Service of its chart promises, on loopback."""

import ipaddress
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sandbox.control_plane.ports import Ports, free


@dataclass(frozen=True)
class Endpoint:
    """An address of this machine. `problem` says what the Service asked for and did not get."""

    address: str
    port: int
    problem: str | None = field(default=None, compare=False)


def choose(
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
        own = (Endpoint(f"{ports.loopback_prefix}{host}", 443) for host in range(1, 255))
        endpoint = next(it for it in own if it not in taken)
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
    https = [it for it in entries if it.get("name") == "https"] or entries
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
