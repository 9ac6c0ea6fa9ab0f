"""What keeps a team from others: how strict, what it may have, whom it reaches; and its guard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import Field

from kai_fleet.releases.keys import NO_GPU_CLASSES
from kai_fleet.settings.sections.kubernetes import Bytes, Cidr, Cpus, LabelKey, ObjectName, Port
from kai_fleet.settings.sections.models import Grants, Rising, Strict, like

Count = Annotated[int, Field(ge=0, le=1_000_000)]
_DEVICE: Final = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[-A-Za-z0-9_.]+$"  # nvidia.com/mig-1g.10gb


class Bounds(Strict):
    """The most of each that a team may have on the host, its vCluster included."""

    cpu: Annotated[Cpus | None, Grants.MOST_UNSET] = None
    """CPU requests; every pod then has to say its own."""
    memory: Annotated[Bytes | None, Grants.MOST_UNSET] = None
    """Memory requests; every pod then has to say its own."""
    storage: Annotated[Bytes | None, Grants.MOST_UNSET] = None
    """Sum of all volume claims."""
    pods: Count = 2000
    """Pods."""
    volumes: Count = 500
    """Volume claims; as many snapshots."""
    load_balancers: Count = 10
    """Services of type LoadBalancer; as many Gateways."""
    node_ports: Count = 50
    """Node ports of all services."""
    services: Count = 500
    """Services, each of which has an address of the host's."""
    huge_pages: Bytes | None = None
    """Huge pages, of each size; unless set, none on nodes that teams share."""
    objects: Count = 5000
    """Of each kind in the host's etcd: secrets, roles, pods with ended ones."""
    ephemeral_storage: Annotated[Bytes | None, Grants.MOST_UNSET] = None
    """Requests of ephemeral storage; every pod then has to say its own."""
    grace_seconds: Annotated[int, Field(ge=30, le=86_400)] = 3600
    """The longest that a pod may take to end: terminationGracePeriodSeconds."""


class Network(Strict):
    """Who reaches whom. Pods of one team always reach each other and their vCluster's API."""

    enabled: Annotated[bool, Grants.LESS] = True
    """NetworkPolicies on the host."""
    internet: bool = True
    """Pods reach public addresses."""
    private: Annotated[list[Cidr], Grants.LESS] = Field(default_factory=list)
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
    api_cidrs: Annotated[list[Cidr], Grants.MOST_UNSET] = Field(default_factory=list)
    """Addresses of the host's API server and its Service; every address at its ports unless set."""
    ingress_from: list[ObjectName] = Field(default_factory=list)
    """Namespaces of the host that reach the team's pods."""
    ingress_cidrs: list[Cidr] = Field(default_factory=list)
    """Addresses that reach the team's pods; 0.0.0.0/0 for its LoadBalancers."""


class Isolation(Strict):
    """How a team is kept from the others, and what it may ask the host for."""

    level: Annotated[
        Literal["baseline", "restricted", "off"], Rising(("restricted", "baseline", "off"))
    ] = "baseline"
    """Pod Security of the team's pods. off: nothing on the host but the GPU quota."""
    devices: dict[Annotated[str, like(_DEVICE)], Count] = Field(default_factory=dict)
    """Devices besides gpus: by the name that nodes advertise, how many."""
    device_classes: dict[ObjectName, Count] = Field(default_factory=dict)
    """DRA device classes, and how many devices of each."""
    priority_classes: list[ObjectName] = Field(default_factory=list)
    """Priority classes of the host besides KAI's that pods may name."""
    runtime_classes: list[ObjectName] = Field(default_factory=lambda: list(NO_GPU_CLASSES))
    """Runtime classes of the host that show no GPU, so that any pod may name them."""
    annotations: list[LabelKey] = Field(default_factory=list)
    """Domains or keys of more annotations that its pods, Secrets and ConfigMaps may have."""
    volumes: list[Annotated[str, like(r"^[a-z][A-Za-z]+$")]] = Field(default_factory=list)
    """Kinds of volumes besides those of Pod Security's restricted: nfs, iscsi."""
    volume_classes: list[ObjectName] = Field(default_factory=list)
    """StorageClasses and VolumeAttributesClasses that claims may name, besides the host's default
    class and that of kai-fleet:vcluster.
    """
    bounds: Bounds = Field(default_factory=Bounds)
    network: Network = Field(default_factory=Network)

    @property
    def on(self) -> bool:
        """Whether anything stands on the host besides the quota of GPUs."""
        return self.level != "off"


class Guard(Strict):
    """The admission guard of every team that KAI schedules."""

    mode: Annotated[Literal["deny", "audit", "off"], Rising(("deny", "audit", "off"))] = "deny"
    """audit: such pods pass, with a warning, for roll-out. off: no guard."""
    outside_queues: Annotated[
        Literal["deny", "warn", "allow"], Rising(("deny", "warn", "allow"))
    ] = "deny"
    """Pods of a team with queues that ask for GPUs without KAI."""

    def outside(self, queues: Sequence[str]) -> str:
        """What becomes of such pods in a vCluster with these leaf queues."""
        if not queues:
            return "allow"
        in_audit = self.mode == "audit" and self.outside_queues == "deny"
        return "warn" if in_audit else self.outside_queues
