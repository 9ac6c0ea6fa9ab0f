"""The quotas and NetworkPolicies of a team's namespace, with the constants of limits.yaml."""

from collections.abc import Iterable, Mapping
from ipaddress import IPv6Address, ip_network
from typing import Any, Final

import pulumi

from kai_fleet.guards.bounds import (
    GPU_RESOURCE,
    Args,
    closes_network,
    isolation,
    level,
    network,
    shares_nodes,
)
from kai_fleet.guards.policies import NAME_LABEL, SYSTEM_SCOPE, content
from kai_fleet.inputs import resolved
from kai_fleet.releases.keys import GPU_RESOURCES

_DEVICES: Final = "deviceclass.resource.k8s.io/devices"
_NAT64: Final = IPv6Address("64:ff9b::")
_DNS: Final = [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]
_API: Final = [{"port": 8443, "protocol": "TCP"}]  # of a vCluster's pod
_HOST_API: Final = (443, 6443)
Peer = dict[str, Any]


def quotas(args: Args) -> dict[str, dict[str, Any]]:
    """The quotas of a team with these TeamNamespaceArgs by name: each its spec."""
    # A scheduler inside sees every GPU of its nodes; this is the bound that holds (V1, V7).
    granted = {args.get("gpu_resource", GPU_RESOURCE): args.get("gpus", 0)}
    granted |= args.get("slices", {})
    if level(args) == "off":
        return {"gpus": {"hard": _requests(granted)}}
    read, classes = content("limits"), args.get("device_classes", {})
    bounds = read["defaults"] | isolation(args).get("bounds", {})
    # Devices by name; GPUs of another vendor and DRA claims none, unless granted.
    devices = _requests(dict.fromkeys(GPU_RESOURCES, 0) | granted | args.get("devices", {}))
    devices |= {f"{name}.{_DEVICES}": _amount(count) for name, count in classes.items()}
    claims = bounds["objects"] if classes else 0
    hard = {"gpus": devices | {f"count/{kind}": _amount(claims) for kind in read["claims"]}}
    for name, rows in read["quotas"].items():
        known = {key: bounds[bound] for key, bound in rows.items() if bounds.get(bound) is not None}
        hard[name] = {resource: _amount(bound) for resource, bound in known.items()}
    huge_pages = bounds.get("huge_pages")
    if huge_pages is None and shares_nodes(args):
        huge_pages = "0"
    if huge_pages is not None:
        sizes = [f"hugepages-{size}" for size in read["huge_pages"]]
        hard["pods"] |= _requests(dict.fromkeys(sizes, huge_pages))
    specs = {name: {"hard": amounts} for name, amounts in hard.items()}
    return {**specs, "system-priority": {"hard": {"pods": "0"}, "scope_selector": SYSTEM_SCOPE}}


def network_policies(team: str, args: Args) -> dict[str, dict[str, Any]]:
    """The NetworkPolicies of a team with these TeamNamespaceArgs by name: each its spec."""
    if not closes_network(args):
        return {}
    own = network(args)
    itself: Peer = {"pod_selector": {}}
    inside = [*content("limits")["inside"], *own.get("private", ())]
    v4 = [cidr for cidr in inside if ":" not in cidr]
    v6 = [cidr for cidr in inside if ":" in cidr]
    internet = [_block("0.0.0.0/0", v4), _block("::/0", [*v6, *map(_nat64, v4)])]
    to = [
        internet if own.get("internet", True) else [],
        _peers(own.get("cidrs", ()), own.get("namespaces", ())),
    ]
    reached_by = _peers(own.get("ingress_cidrs", ()), own.get("ingress_from", ()))
    ports = [{"port": port, "protocol": "TCP"} for port in own.get("api_ports", _HOST_API)]
    addresses = _peers(own.get("api_cidrs", ()))
    both = {"policy_types": ["Ingress", "Egress"]}
    return {
        # Everything in the namespace: each other, DNS, and what the arguments say. A rule without
        # peers would allow all of them.
        "kai-fleet-pods": {
            **both,
            "pod_selector": {},
            "ingress": [{"from": peers} for peers in ([itself], reached_by) if peers],
            "egress": [
                {"to": [itself]},
                # A node's own server too: a vCluster's DNS asks it for names from outside, and
                # clouds have it at the address of their credentials. At this port there are none.
                {"to": _peers(inside, ["kube-system"]), "ports": _DNS},
                *({"to": peers} for peers in to if peers),
            ],
        },
        # The vCluster itself: reached at its API, and reaching the host's. Teams do not get here
        # from their pods: their own egress ends before.
        "kai-fleet-control-plane": {
            **both,
            "pod_selector": {"match_labels": {"app": "vcluster", "release": team}},
            "ingress": [{"ports": _API}],
            "egress": [{"ports": ports, **({"to": addresses} if addresses else {})}],
        },
    }


def _requests(counts: Mapping[str, Any]) -> dict[str, pulumi.Input[str]]:
    return {f"requests.{name}": _amount(count) for name, count in counts.items()}


def _amount(bound: pulumi.Input[float | str]) -> pulumi.Input[str]:
    """A text, or a number as one; other languages send every number as a fraction."""
    return resolved(lambda known: known if isinstance(known, str) else str(int(known)), bound)


def _peers(cidrs: Iterable[str], namespaces: Iterable[str] = ()) -> list[Peer]:
    named = [{"match_labels": {NAME_LABEL: namespace}} for namespace in namespaces]
    return [*map(_block, cidrs), *({"namespace_selector": selector} for selector in named)]


def _block(cidr: str, without: Iterable[str] = ()) -> Peer:
    return {"ip_block": {"cidr": cidr} | ({"except": list(without)} if without else {})}


def _nat64(cidr: str) -> str:
    """An IPv4 network as IPv6 pods reach it through NAT64 (RFC 6052)."""
    v4 = ip_network(cidr, strict=False)
    return f"{_NAT64 + int(v4.network_address)}/{96 + v4.prefixlen}"
