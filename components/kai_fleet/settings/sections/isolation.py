"""What keeps a team from others: how strict, what it may have, whom it reaches; and its guard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import ip_network
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from kai_fleet.releases.keys import NO_GPU_CLASSES
from kai_fleet.settings.sections.kubernetes import (
    ObjectName,
    cpu_millicores,
    memory_megabytes,
    quantity,
)
from kai_fleet.settings.sections.models import Strict, like, refuse

Level = Literal["baseline", "restricted", "off"]
OutsideQueues = Literal["deny", "warn", "allow"]
# The name of a device that nodes advertise: nvidia.com/mig-1g.10gb, amd.com/gpu.
Device = Annotated[str, like(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[-A-Za-z0-9_.]+$")]


def _is_no_network(value: str) -> bool:
    try:
        ip_network(value, strict=False)
    except ValueError:
        return True
    return False


Cidr = Annotated[
    str,
    like(r"^[0-9a-fA-F.:]+/[0-9]{1,3}$"),
    refuse(
        _is_no_network,
        "is {value}, which is no network; write one such as 10.20.0.0/16 or fd00:1::/32",
    ),
]


def _amount(read: Callable[[Any], object], examples: str) -> tuple[object, ...]:
    """A quantity as it is written, once it is one of its kind; none is unlimited here."""

    def checked(value: Any) -> str:
        quantity(value, examples)
        read(value)
        return str(value)

    schema = {"type": ["string", "integer"], "description": examples}
    return BeforeValidator(checked), WithJsonSchema(schema)


Cpus = Annotated[str, *_amount(cpu_millicores, "200, 500m")]
Memory = Annotated[str, *_amount(memory_megabytes, "512Gi, 2Ti")]
Storage = Annotated[str, *_amount(memory_megabytes, "10Ti, 500Gi")]
Scratch = Annotated[str, *_amount(memory_megabytes, "200Gi, 50Gi")]
Volume = Annotated[str, *_amount(memory_megabytes, "5Gi, 20Gi")]
# A kind of volume as a pod's spec has it; hostPath is Pod Security's to deny.
VolumeKind = Annotated[str, like(r"^[a-z][A-Za-z]+$")]
Port = Annotated[int, Field(ge=1, le=65535)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]


class Bounds(Strict):
    """The most of each that a team may have on the host, its vCluster included."""

    cpu: Cpus | None = None
    """CPU requests; every pod then has to say its own."""
    memory: Memory | None = None
    """Memory requests; every pod then has to say its own."""
    storage: Storage | None = None
    """Sum of all volume claims."""
    pods: Count = 2000
    """Pods."""
    volumes: Count = 500
    """Volume claims; as many snapshots."""
    load_balancers: Count = 10
    """Services of type LoadBalancer; as many Gateways."""
    node_ports: Count = 50
    """Node ports of all services."""
    objects: Count = 5000
    """Of each kind in the host's etcd: services, secrets, roles, pods with ended ones."""
    ephemeral_storage: Scratch | None = None
    """Requests of ephemeral storage; every pod then has to say its own."""
    grace_seconds: Annotated[int, Field(ge=30, le=86_400)] = 3600
    """The longest that a pod may take to end: terminationGracePeriodSeconds."""


class Network(Strict):
    """Who reaches whom. Pods of one team always reach each other and their vCluster's API."""

    enabled: bool = True
    """NetworkPolicies on the host."""
    internet: bool = True
    """Pods reach public addresses."""
    private: list[Cidr] = Field(default_factory=list)
    """Public addresses that are no internet: your nodes', or IPv6 pods'."""
    cidrs: list[Cidr] = Field(default_factory=list)
    """More addresses that pods reach, such as 10.20.0.0/16."""
    namespaces: list[ObjectName] = Field(default_factory=list)
    """Namespaces of the host that pods reach."""
    attachments: bool = False
    """Pods may join other networks by Multus, which no NetworkPolicy is about."""
    endpoints: bool = False
    """Services without a selector may lead to addresses that are not public."""
    api_ports: list[Port] = Field(default_factory=lambda: [443, 6443], min_length=1)
    """Ports of the host's API server and of its Service: 443 and 6443 unless said."""
    api_cidrs: list[Cidr] = Field(default_factory=list)
    """Addresses of the host's API server and its Service; every address at its ports unless set."""
    ingress_from: list[ObjectName] = Field(default_factory=list)
    """Namespaces of the host that reach the team's pods."""
    ingress_cidrs: list[Cidr] = Field(default_factory=list)
    """Addresses that reach the team's pods; 0.0.0.0/0 for its LoadBalancers."""


class Isolation(Strict):
    """How a team is kept from the others, and what it may ask the host for."""

    level: Level = "baseline"
    """Pod Security of the team's pods. off: nothing on the host but the GPU quota."""
    devices: dict[Device, Count] = Field(default_factory=dict)
    """Devices besides gpus: by the name that nodes advertise, how many."""
    device_classes: dict[ObjectName, Count] = Field(default_factory=dict)
    """DRA device classes, and how many devices of each."""
    priority_classes: list[ObjectName] = Field(default_factory=list)
    """Priority classes of the host besides KAI's that pods may name."""
    runtime_classes: list[ObjectName] = Field(default_factory=lambda: list(NO_GPU_CLASSES))
    """Runtime classes of the host that show no GPU, so that any pod may name them."""
    annotations: list[ObjectName] = Field(default_factory=list)
    """Domains of annotations that runtimes or plugins read and pods may have: memory-qos.nri.io."""
    volumes: list[VolumeKind] = Field(default_factory=list)
    """Kinds of volumes besides those of Pod Security's restricted: nfs, iscsi."""
    bounds: Bounds = Field(default_factory=Bounds)
    network: Network = Field(default_factory=Network)

    @property
    def on(self) -> bool:
        """Whether anything stands on the host besides the quota of GPUs."""
        return self.level != "off"


class Guard(Strict):
    """The admission guard of every team that KAI schedules."""

    mode: Literal["deny", "audit", "off"] = "deny"
    """audit: such pods pass, with a warning, for roll-out. off: no guard."""
    outside_queues: OutsideQueues = "deny"
    """Pods of a team with queues that ask for GPUs without KAI."""

    def outside(self, queues: Sequence[str]) -> OutsideQueues:
        """What becomes of such pods inside the vCluster of a team with these leaf queues.

        Without queues there is nothing to be beside, and in mode audit nothing is denied.
        """
        if not queues:
            return "allow"
        in_audit = self.mode == "audit" and self.outside_queues == "deny"
        return "warn" if in_audit else self.outside_queues
