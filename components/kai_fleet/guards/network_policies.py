"""Who reaches whom: the NetworkPolicies of a team's namespace, from NetworkArgs."""

from collections.abc import Iterable
from ipaddress import IPv6Address, ip_network
from typing import Any, Final

from kai_fleet.guards.bounds import Args, closes_network, network
from kai_fleet.guards.policies import NAME_LABEL

# What is no public address: nodes, pods, services and the host's neighbours, some clouds' pods, and
# where clouds give out credentials; the last is Azure's, which is no private address.
_INSIDE: Final = (
    *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"),
    *("198.18.0.0/15", "240.0.0.0/4", "169.254.0.0/16", "168.63.129.16/32"),
)
_INSIDE_V6: Final = ("fc00::/7", "fe80::/10")
_NAT64: Final = IPv6Address("64:ff9b::")
_DNS: Final = [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]
_API: Final = [{"port": 8443, "protocol": "TCP"}]  # of a vCluster's pod
_HOST_API: Final = (443, 6443)
Peer = dict[str, Any]


def network_policies(team: str, args: Args) -> dict[str, dict[str, Any]]:
    """The network policies of a team with these TeamNamespaceArgs by name: each its spec."""
    if not closes_network(args):
        return {}
    own = network(args)
    itself: Peer = {"pod_selector": {}}
    inside = [*_INSIDE, *_INSIDE_V6, *own.get("private", ())]
    v4 = [cidr for cidr in inside if ":" not in cidr]
    v6 = [cidr for cidr in inside if ":" in cidr]
    internet = [_block("0.0.0.0/0", v4), _block("::/0", [*v6, *map(_nat64, v4)])]
    egress: list[dict[str, Any]] = [
        {"to": [itself]},
        # A node's own server too: a vCluster's DNS asks it for names from outside, and clouds have
        # it at the address of their credentials. At this port there are none.
        {"to": _peers(inside, ["kube-system"]), "ports": _DNS},
    ]
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
            "egress": [*egress, *({"to": peers} for peers in to if peers)],
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


def _peers(cidrs: Iterable[str], namespaces: Iterable[str] = ()) -> list[Peer]:
    named = [{"match_labels": {NAME_LABEL: namespace}} for namespace in namespaces]
    return [*map(_block, cidrs), *({"namespace_selector": selector} for selector in named)]


def _block(cidr: str, without: Iterable[str] = ()) -> Peer:
    return {"ip_block": {"cidr": cidr} | ({"except": list(without)} if without else {})}


def _nat64(cidr: str) -> str:
    """An IPv4 network as IPv6 pods reach it through NAT64 (RFC 6052)."""
    v4 = ip_network(cidr, strict=False)
    return f"{_NAT64 + int(v4.network_address)}/{96 + v4.prefixlen}"
