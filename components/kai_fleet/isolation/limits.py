"""The ResourceQuotas and NetworkPolicies of a team's namespace, with the tables of limits.yaml."""

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv6Address, ip_network

import pulumi

from kai_fleet.isolation.bounds import (
    GPU_RESOURCE,
    Text,
    amount,
    closes_network,
    isolation,
    isolation_level,
    network,
    shares_nodes,
)
from kai_fleet.isolation.namespace_args import NetworkArgs, TeamNamespaceArgs
from kai_fleet.isolation.policies import NAME_LABEL, SYSTEM_SCOPE, content
from kai_usage.keys import GPU_RESOURCES

Spec = dict[str, object]
Quantity = pulumi.Input[float | str]
Amounts = dict[str, Text]  # by the resource of a quota

_DEVICES = "deviceclass.resource.k8s.io/devices"
_NAT64 = IPv6Address("64:ff9b::")
_DNS = [
    {"port": 53, "protocol": "UDP"},
    {"port": 53, "protocol": "TCP"},
]
_VCLUSTER_API = [{"port": 8443, "protocol": "TCP"}]  # of the vCluster's pod
_HOST_API_PORTS = [443, 6443]
_SAME_NAMESPACE: Spec = {"pod_selector": {}}


def quotas(args: TeamNamespaceArgs) -> dict[str, Spec]:
    """The specs of the team's ResourceQuotas, by name.

    With isolation `off` only `gpus`. Otherwise also `pods`, `objects`, and `system-priority`, which
    admits no pod of Kubernetes' own priority classes.
    """
    # A scheduler inside the vCluster sees every GPU of the team's nodes; the quota is what stops it
    # (V1, V7).
    gpu_resource = args.get("gpu_resource", GPU_RESOURCE)
    granted_gpus = {gpu_resource: args.get("gpus", 0), **args.get("slices", {})}
    if isolation_level(args) == "off":
        return {"gpus": {"hard": _requests(granted_gpus)}}
    tables = content("limits")
    bounds = tables["defaults"] | isolation(args).get("bounds", {})
    specs: dict[str, Spec] = {
        "gpus": {"hard": _device_amounts(args, granted_gpus, bounds["objects"])}
    }
    for name, bound_by_resource in tables["quotas"].items():
        amounts = _bounded_amounts(bound_by_resource, bounds)
        if name == "pods":
            amounts |= _huge_pages(args, bounds.get("huge_pages"))
        specs[name] = {"hard": amounts}
    specs["system-priority"] = {"hard": {"pods": "0"}, "scope_selector": SYSTEM_SCOPE}
    return specs


def _device_amounts(
    args: TeamNamespaceArgs,
    granted_gpus: Mapping[str, pulumi.Input[float]],
    max_claims: pulumi.Input[float],
) -> Amounts:
    """The quota of devices and of ResourceClaims.

    Entire GPUs of NVIDIA and AMD are 0 unless granted, and so are ResourceClaims and their
    templates. With a DeviceClass granted, `max_claims` bounds the number of each. Any other device
    that is not granted has no quota: the guard `devices` judges it.
    """
    amounts = _requests(dict.fromkeys(GPU_RESOURCES, 0))
    amounts |= _requests(granted_gpus)
    amounts |= _requests(args.get("devices", {}))
    classes = args.get("device_classes", {})
    for name, count in classes.items():
        amounts[f"{name}.{_DEVICES}"] = amount(count)
    for resource in content("limits")["claims"]:
        amounts[f"count/{resource}"] = amount(max_claims if classes else 0)
    return amounts


def _bounded_amounts(
    bound_by_resource: Mapping[str, str],
    bounds: Mapping[str, Quantity | None],
) -> Amounts:
    """The quota of resources, each by its field of BoundsArgs.

    Without the resources whose bound is absent or None.
    """
    amounts: Amounts = {}
    for resource, field in bound_by_resource.items():
        bound = bounds.get(field)
        if bound is not None:
            amounts[resource] = amount(bound)
    return amounts


def _huge_pages(args: TeamNamespaceArgs, bound: Text | None) -> Amounts:
    """The quota of huge pages, for each size. Without a bound: 0 on shared nodes, else no quota."""
    if bound is None and not shares_nodes(args):
        return {}
    most = "0" if bound is None else bound
    sizes = content("limits")["huge_pages"]
    return _requests({f"hugepages-{size}": most for size in sizes})


def network_policies(team: str, args: TeamNamespaceArgs) -> dict[str, Spec]:
    """The specs of the team's NetworkPolicies, by name: none if the arguments switch them off.

    One is for all pods of the namespace, the other adds rules for the vCluster's control plane.
    Raises ValueError as `_pods_policy` does.
    """
    if not closes_network(args):
        return {}
    rules = network(args)
    return {
        "kai-fleet-pods": _pods_policy(rules),
        "kai-fleet-control-plane": _control_plane_policy(team, rules),
    }


def _pods_policy(rules: NetworkArgs) -> Spec:
    """All pods of the namespace reach each other, DNS, and what the arguments allow.

    Raises ValueError, if they reach the internet, for a `private` text without a colon that is no
    network. Other texts are not checked.
    """
    internal = [*content("limits")["inside"], *rules.get("private", [])]
    # A node's address too: a vCluster's DNS asks the node's server for names from outside, and some
    # clouds serve it at the address of their credentials, which they do not serve at port 53.
    dns_servers = _peers(internal, ["kube-system"])
    allowed_sources = _peers(rules.get("ingress_cidrs", []), rules.get("ingress_from", []))
    allowed_destinations = _peers(rules.get("cidrs", []), rules.get("namespaces", []))
    ingress: list[Spec] = [{"from": [_SAME_NAMESPACE]}]
    egress: list[Spec] = [
        {"to": [_SAME_NAMESPACE]},
        {"to": dns_servers, "ports": _DNS},
    ]
    # A rule without peers would allow every address.
    if allowed_sources:
        ingress.append({"from": allowed_sources})
    if rules.get("internet", True):
        egress.append({"to": _internet(internal)})
    if allowed_destinations:
        egress.append({"to": allowed_destinations})
    return {
        "policy_types": ["Ingress", "Egress"],
        "pod_selector": {},
        "ingress": ingress,
        "egress": egress,
    }


def _control_plane_policy(team: str, rules: NetworkArgs) -> Spec:
    """The vCluster's control plane is reached at its API, and reaches the host's.

    `api_ports` are not empty: that would allow every port. Ingress is from any address. Pods of
    other teams do not reach it all the same: the egress rules of their own namespace do not let
    them.
    """
    ports = rules.get("api_ports", _HOST_API_PORTS)
    egress: Spec = {"ports": [{"port": port, "protocol": "TCP"} for port in ports]}
    host_api = _peers(rules.get("api_cidrs", []))
    if host_api:  # by default every address
        egress["to"] = host_api
    return {
        "policy_types": ["Ingress", "Egress"],
        "pod_selector": {"match_labels": {"app": "vcluster", "release": team}},
        "ingress": [{"ports": _VCLUSTER_API}],
        "egress": [egress],
    }


def _internet(internal: Sequence[str]) -> list[Spec]:
    """Peers for all addresses but the internal networks, also behind NAT64.

    Raises ValueError as `_nat64` does.
    """
    ipv4 = [cidr for cidr in internal if ":" not in cidr]
    ipv6 = [cidr for cidr in internal if ":" in cidr]
    behind_nat64 = [_nat64(cidr) for cidr in ipv4]
    return [
        _block("0.0.0.0/0", ipv4),
        _block("::/0", ipv6 + behind_nat64),
    ]


def _requests(quantities: Mapping[str, Quantity]) -> Amounts:
    """The quota of requests of some resources."""
    return {f"requests.{name}": amount(quantity) for name, quantity in quantities.items()}


def _peers(cidrs: Iterable[str], namespaces: Iterable[str] = ()) -> list[Spec]:
    """Peers of a rule: networks, and all pods of namespaces.

    A rule with an empty list of peers allows every address: leave such a rule out.
    """
    peers = [_block(cidr) for cidr in cidrs]
    for name in namespaces:
        peers.append({"namespace_selector": {"match_labels": {NAME_LABEL: name}}})
    return peers


def _block(cidr: str, excluded: Sequence[str] = ()) -> Spec:
    """The peer for a network without the excluded ones."""
    ip_block: Spec = {"cidr": cidr}
    if excluded:
        ip_block["except"] = list(excluded)
    return {"ip_block": ip_block}


def _nat64(cidr: str) -> str:
    """An IPv4 network as IPv6 pods reach it through NAT64 (RFC 6052).

    Raises ValueError for what is no network.
    """
    ipv4 = ip_network(cidr, strict=False)
    return f"{_NAT64 + int(ipv4.network_address)}/{96 + ipv4.prefixlen}"
