"""The address of a vCluster's API, from its Service on the host."""

import ipaddress
import re
from collections.abc import Mapping
from typing import Any, Final

_DNS_NAME: Final = re.compile(
    r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*)?)*"
)


def address_of(service: Mapping[str, Any], access: str, host: str | None) -> str | None:
    """`host:port` of a vCluster's Service for this type of access, IPv6 addresses in brackets; None
    while it has none. `host` overrides the address of a load balancer; behind an Ingress or a
    Gateway it is the complete result.

    A load balancer's address has to be a DNS name or a unicast address that is not link-local,
    where clouds have their metadata; others are ignored.
    """
    if access in ("Ingress", "Gateway"):
        return host
    metadata, written = service["metadata"], (service.get("spec") or {}).get("ports") or [{}]
    port = written[0].get("nodePort" if access == "NodePort" else "port")
    where = f"{metadata['name']}.{metadata['namespace']}.svc"
    if access == "NodePort":
        where = _bracketed(host or "")
    elif access == "LoadBalancer":
        ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
        name = next((entry.get("hostname") or entry.get("ip") for entry in ingress), None)
        balancer = _balancer(str(name)) if name else ""
        where = _bracketed(host) if host and balancer else balancer
    known = isinstance(port, int) and 0 < port < 1 << 16 and where
    return f"{where}:{port}" if known else None


def _bracketed(host: str) -> str:
    """A host as in a URL: IPv6 addresses in brackets."""
    return f"[{host}]" if ":" in host else host


def _balancer(name: str) -> str:
    """A load balancer's name or address as in a URL; "" for an invalid one."""
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        # Some resolvers read a number such as 2852039166 as an address.
        is_name = _DNS_NAME.fullmatch(name) and not name.rpartition(".")[2].isdigit()
        return name if is_name else ""
    address = getattr(address, "ipv4_mapped", None) or address
    odd = address.is_link_local or address.is_multicast or address.is_unspecified
    return "" if odd else _bracketed(str(address))
