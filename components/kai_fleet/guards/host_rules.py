"""What one team may have on the host: the bounds that the guards' policies read, and the bindings
that keep it off the nodes of others.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any, Final, Literal

from kai_fleet.guards.policies import Object, binding, policy_name

# Where the KAI is that shares GPUs among the team's pods.
KaiPlace = Literal["inside", "host", "none"]

KAI_PRIORITIES: Final = ("train", "build-preemptible", "build", "inference")
# As a quota selects pods of Kubernetes' own classes: each makes room for itself on any node.
SYSTEM_SCOPE: Final[Any] = {
    "match_expressions": [
        {
            "operator": "In",
            "scope_name": "PriorityClass",
            "values": ["system-node-critical", "system-cluster-critical"],
        }
    ]
}
CONTROL_PLANES: Final = ("vcluster", "vcluster-etcd")
GRACE_SECONDS: Final = 3600
_OF_V1: Final = {"apiGroups": [""], "apiVersions": ["v1"]}
# What comes with its node.
_PLACED: Final = [
    {**_OF_V1, "operations": ["CREATE"], "resources": ["pods"]},
    {**_OF_V1, "operations": ["CREATE", "UPDATE"], "resources": ["persistentvolumeclaims"]},
]
_GPU_NAME: Final = re.compile(
    r"^(([^/]*[.])?(nvidia|amd|habana)[.](com|ai)|gpu[.]intel[.]com"
    r"|deviceclass[.]resource[.]kubernetes[.]io)/|/.*(gpu|mig-)"
)
# Never an address of the internet, whatever a stack says: this host, loopback, link-local and its
# metadata servers, private and shared networks, documentation, multicast, reserved.
_NEVER_PUBLIC: Final = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
    *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15"),
    *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3", "168.63.129.16/32"),
)


@dataclass(frozen=True)
class HostRules:
    """What one team's pods may have on the host.

    `pool` are the labels of its nodes, `control_pool` those of its control plane's, and
    `foreign_pools` those of others, which a team without a pool keeps off. `names_nodes`: its pods
    come with a node (a scheduler inside chose it). `shared_nodes`: other teams' pods may be on the
    same nodes. `devices` are the names of all devices that it is granted, the GPU's first;
    `device_classes` are those of DRA. `priorities` are the classes that its pods may name,
    `runtime_classes` those that give no GPU. `queues_only`: GPUs are for pods that KAI schedules.
    `platform_images` begin the names of KAI's images. `beside_kai`: the host has a KAI, of which
    the team may use the `queues`, and those that begin with `queue_prefix` and are none of, or
    below, `foreign_queues`. `attachments`: its pods may join other networks; `endpoints`: its
    Services may name addresses that are not public, and `private` networks (CIDRs) count as such.
    `annotations` are domains of annotations that runtimes and plugins read and the team may write,
    `volumes` kinds of volumes beyond those of Pod Security's `restricted`. `grace_seconds` is the
    longest that a pod may take to end. `tolerations` (`key=value:effect`) are those of taints by
    which nodes of others are kept free, too. `nv_fractions`: pods may ask for GPU memory as a KAI
    in that mode reads it; the GPU itself only KAI writes.
    """

    team: str
    devices: Sequence[str]
    pool: Mapping[str, str] = field(default_factory=dict)
    control_pool: Mapping[str, str] = field(default_factory=dict)
    foreign_pools: Sequence[Mapping[str, str]] = ()
    names_nodes: bool = False
    shared_nodes: bool = True
    kai: KaiPlace = "none"
    device_classes: Sequence[str] = ()
    priorities: Sequence[str] = ()
    runtime_classes: Sequence[str] = ()
    queues_only: bool = False
    restricted: bool = False
    platform_images: Sequence[str] = ()
    beside_kai: bool = False
    queues: Sequence[str] = ()
    queue_prefix: str | None = None
    foreign_queues: Sequence[str] = ()
    attachments: bool = False
    endpoints: bool = False
    private: Sequence[str] = ()
    annotations: Sequence[str] = ()
    volumes: Sequence[str] = ()
    grace_seconds: int = GRACE_SECONDS
    tolerations: Sequence[str] = ()
    nv_fractions: bool = False

    def gpus(self) -> list[str]:
        """The devices that are GPUs, of those that the team is granted."""
        first, *others = self.devices
        return [first, *sorted(name for name in others if _GPU_NAME.search(name))]

    def parameters(self) -> dict[str, str]:
        """The team's bounds. A bound that is not there grants nothing."""
        bounds: dict[str, str] = {
            "team": self.team,
            "kai": self.kai,
            "devices": ",".join([self.devices[0], *sorted(self.devices[1:])]),
            "gpus": ",".join(self.gpus()),
            "deviceClasses": ",".join(sorted(self.device_classes)),
            "runtimeClasses": ",".join(sorted(self.runtime_classes)),
            "sharedNodes": _flag(self.shared_nodes) or "false",
            "queuesOnly": _flag(self.queues_only),
            "pool": _labels(self.pool),
            "controlPool": _labels(self.control_pool),
            "foreignPools": ",".join(_labels(pool, "&") for pool in self.foreign_pools),
            "namesNodes": _flag(self.names_nodes),
            "priorities": ",".join(self.priorities),
            "besideKai": _flag(self.beside_kai),
            "queues": ",".join(self.queues),
            "queuePrefix": self.queue_prefix or "",
            "foreignQueues": ",".join(sorted(self.foreign_queues)),
            "attachments": _flag(self.attachments),
            "endpoints": _flag(self.endpoints),
            "privateRanges": ",".join(_ranges(self.private)),
            "privateV6": _flag(any(":" in cidr for cidr in self.private)),
            "annotations": ",".join(sorted(self.annotations)),
            "volumes": ",".join(sorted(self.volumes)),
            "graceSeconds": str(self.grace_seconds),
            "tolerations": ",".join(sorted(self.tolerations)),
            "nvFractions": _flag(self.nv_fractions),
            "restricted": _flag(self.restricted),
            "kaiImages": ",".join(self.platform_images) if self.restricted else "",
        }
        return {key: value for key, value in bounds.items() if value}


def _flag(on: bool) -> str:
    return "true" if on else ""


def _labels(pool: Mapping[str, str], between: str = ",") -> str:
    return between.join(f"{key}={value}" for key, value in sorted(pool.items()))


def _ranges(private: Iterable[str]) -> list[str]:
    """The first and last address of each IPv4 network, as numbers: every version of Kubernetes that
    has policies can compare those, and functions for networks came later.
    """
    networks = (
        ip_network(cidr, strict=False) for cidr in (*_NEVER_PUBLIC, *private) if ":" not in cidr
    )
    return [f"{int(net.network_address)}-{int(net.broadcast_address)}" for net in networks]


def node_bindings(rules: HostRules, namespace: Any, suffix: str = "") -> dict[str, Object]:
    """What keeps the team's pods off nodes of others, by the last part of the resources' names.

    `suffix` is that of the policy which they put to work.
    """
    bindings = {}
    for number, selector in enumerate(foreign_nodes(rules)):
        nth = f".{number}" if number else ""
        bindings[f"nodes-binding{nth}"] = binding(
            f"kai-fleet-nodes-{rules.team}{nth}",
            policy_name("nodes", suffix),
            namespace=namespace,
            # Pods of a pool are bound to it by their node selector, their control plane to its own.
            match={"resourceRules": _PLACED} if rules.pool else None,
            # Where no such node is, there is none to keep off.
            param_ref={"selector": selector, "parameterNotFoundAction": "Allow"},
        )
    return bindings


def foreign_nodes(rules: HostRules) -> list[Object]:
    """Selectors of the nodes that are not the team's.

    Of a team with a pool whose pods name their nodes: whatever lacks any label of the pool. Of a
    team without: the pools of others. Pods of other teams are held to their pool by its labels.
    """
    if rules.pool:
        own = sorted(rules.pool.items()) if rules.names_nodes else ()
        return [_selecting(key, "NotIn", [value]) for key, value in own]
    # One selector for all pools that differ in the value of one label, one for each other pool.
    values: dict[str, set[str]] = defaultdict(set)
    for pool in rules.foreign_pools:
        if len(pool) == 1:
            [(key, value)] = pool.items()
            values[key].add(value)
    several = [
        {"matchLabels": dict(sorted(pool.items()))} for pool in rules.foreign_pools if len(pool) > 1
    ]
    return [*(_selecting(key, "In", among) for key, among in sorted(values.items())), *several]


def _selecting(key: str, operator: str, values: Iterable[str]) -> Object:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": sorted(values)}]}
