"""Who reaches whom: the NetworkPolicies of a team's namespace, from NetworkArgs."""

from collections.abc import Mapping
from ipaddress import IPv6Address, ip_network
from typing import Any, Final

from kai_fleet.guards.bounds import Args, closes_network, network
from kai_fleet.guards.policies import NAME_LABEL

# What is no public address: nodes, pods, services and the host's neighbours.
_PRIVATE: Final = (
    *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"),
    *("198.18.0.0/15", "240.0.0.0/4"),  # some clouds' pods
)
# Where clouds give out credentials; the second is Azure's, which is no private address.
_CREDENTIALS: Final = ("169.254.0.0/16", "168.63.129.16/32")
_PRIVATE_V6: Final = ("fc00::/7", "fe80::/10")
_NAT64: Final = IPv6Address("64:ff9b::")
_DNS: Final = [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]
_API: Final = 8443  # of a vCluster's pod
_HOST_API: Final = (443, 6443)
Network = Mapping[str, Any]


def network_policies(team: str, args: Args) -> dict[str, dict[str, Any]]:
    """The network policies of a team with these TeamNamespaceArgs by name: each its spec."""
    if not closes_network(args):
        return {}
    return {
        "kai-fleet-pods": _of_pods(network(args)),
        "kai-fleet-control-plane": _of_control_plane(team, network(args)),
    }


def _of_pods(network: Network) -> dict[str, Any]:
    """Everything in the namespace: each other, DNS, and what the arguments say."""
    own: dict[str, Any] = {"pod_selector": {}}
    inside = _inside(network)
    egress: list[dict[str, Any]] = [
        {"to": [own]},
        # A node's own server too: a vCluster's DNS asks it for names from outside, and clouds have
        # it at the address of their credentials. At this port there are none.
        {"to": [_namespace("kube-system"), *map(_block, inside)], "ports": _DNS},
    ]
    if network.get("internet", True):
        v4 = [cidr for cidr in inside if ":" not in cidr]
        v6 = [cidr for cidr in inside if ":" in cidr]
        egress.append({"to": [_block("0.0.0.0/0", *v4), _block("::/0", *v6, *map(_nat64, v4))]})
    ingress: list[dict[str, Any]] = [{"from": [own]}]
    if reached := _peers(network, "cidrs", "namespaces"):
        egress.append({"to": reached})
    if allowed := _peers(network, "ingress_cidrs", "ingress_from"):
        ingress.append({"from": allowed})
    return {
        "pod_selector": {},
        "policy_types": ["Ingress", "Egress"],
        "ingress": ingress,
        "egress": egress,
    }


def _of_control_plane(team: str, network: Network) -> dict[str, Any]:
    """The vCluster itself: reached at its API, and reaching the host's."""
    ports = network.get("api_ports", _HOST_API)
    host: dict[str, Any] = {"ports": [{"port": port, "protocol": "TCP"} for port in ports]}
    if network.get("api_cidrs"):
        host["to"] = [_block(cidr) for cidr in network["api_cidrs"]]
    return {
        "pod_selector": {"match_labels": {"app": "vcluster", "release": team}},
        "policy_types": ["Ingress", "Egress"],
        # Teams do not get here from their pods: their own egress ends before.
        "ingress": [{"ports": [{"port": _API, "protocol": "TCP"}]}],
        "egress": [host],
    }


def _peers(network: Network, cidrs: str, namespaces: str) -> list[dict[str, Any]]:
    return [
        *map(_block, network.get(cidrs, ())),
        *map(_namespace, network.get(namespaces, ())),
    ]


def _nat64(cidr: str) -> str:
    """An IPv4 network as IPv6 pods reach it through NAT64 (RFC 6052)."""
    v4 = ip_network(cidr, strict=False)
    return f"{_NAT64 + int(v4.network_address)}/{96 + v4.prefixlen}"


def _inside(network: Network) -> list[str]:
    """What is no internet."""
    return [*_PRIVATE, *_CREDENTIALS, *_PRIVATE_V6, *network.get("private", ())]


def _namespace(name: str) -> dict[str, Any]:
    return {"namespace_selector": {"match_labels": {NAME_LABEL: name}}}


def _block(cidr: str, *without: str) -> dict[str, Any]:
    return {"ip_block": {"cidr": cidr} | ({"except": list(without)} if without else {})}
