"""Who reaches whom: the NetworkPolicies of a team's namespace."""

from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, Final

from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.guards.policies import NAME_LABEL
from kai_fleet.settings.sections.isolation import Network

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


def of_team(team: DeclaredTeam) -> dict[str, Any]:
    """The network policies of a team's namespace by name: each its spec."""
    if team.isolation is None or not team.isolation.network.enabled:
        return {}
    network = team.isolation.network
    return {
        "kai-fleet-pods": _of_pods(network),
        "kai-fleet-control-plane": _of_control_plane(team.name, network),
    }


def _of_pods(network: Network) -> dict[str, Any]:
    """Everything in the namespace: each other, DNS, and what the configuration says."""
    own: dict[str, Any] = {"pod_selector": {}}
    egress: list[dict[str, Any]] = [
        {"to": [own]},
        # A node's own server too: a vCluster's DNS asks it for names from outside, and clouds have
        # it at the address of their credentials. At this port there are none.
        {"to": [_namespace("kube-system"), *map(_block, _inside(network))], "ports": _DNS},
    ]
    if network.internet:
        inside = _inside(network)
        v4, v6 = ([it for it in inside if (":" in it) == new] for new in (False, True))
        egress.append({"to": [_block("0.0.0.0/0", *v4), _block("::/0", *v6, *map(_nat64, v4))]})
    more = [*map(_block, network.cidrs), *map(_namespace, network.namespaces)]
    if more:
        egress.append({"to": more})
    ingress: list[dict[str, Any]] = [{"from": [own]}]
    let_in = [*map(_block, network.ingress_cidrs), *map(_namespace, network.ingress_from)]
    if let_in:
        ingress.append({"from": let_in})
    return {
        "pod_selector": {},
        "policy_types": ["Ingress", "Egress"],
        "ingress": ingress,
        "egress": egress,
    }


def _of_control_plane(team: str, network: Network) -> dict[str, Any]:
    """The vCluster itself: reached at its API, and reaching the host's."""
    host: dict[str, Any] = {
        "ports": [{"port": port, "protocol": "TCP"} for port in network.api_ports]
    }
    if network.api_cidrs:
        host["to"] = [_block(cidr) for cidr in network.api_cidrs]
    return {
        "pod_selector": {"match_labels": {"app": "vcluster", "release": team}},
        "policy_types": ["Ingress", "Egress"],
        # Teams do not get here from their pods: their own egress ends before.
        "ingress": [{"ports": [{"port": _API, "protocol": "TCP"}]}],
        "egress": [host],
    }


def _nat64(cidr: str) -> str:
    """An IPv4 network as IPv6 pods reach it through NAT64 (RFC 6052)."""
    v4 = ip_network(cidr, strict=False)
    return f"{_NAT64 + int(v4.network_address)}/{96 + v4.prefixlen}"


def is_internet(address: str, network: Network) -> bool:
    """Whether pods reach an address because it counts as a public one."""
    found = ip_address(address)
    nets = (ip_network(cidr, strict=False) for cidr in _inside(network))
    return network.internet and not any(found in it for it in nets if it.version == found.version)


def _inside(network: Network) -> list[str]:
    """What is no internet."""
    return [*_PRIVATE, *_CREDENTIALS, *_PRIVATE_V6, *network.private]


def _namespace(name: str) -> dict[str, Any]:
    return {"namespace_selector": {"match_labels": {NAME_LABEL: name}}}


def _block(cidr: str, *without: str) -> dict[str, Any]:
    return {"ip_block": {"cidr": cidr} | ({"except": list(without)} if without else {})}
