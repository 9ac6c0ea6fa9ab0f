"""How a team is isolated from others: Pod Security, quotas, networks; and the admission guard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import Field

from kai_fleet.releases.keys import NO_GPU_CLASSES
from kai_fleet_stack.settings.sections.kubernetes import (
    Bytes,
    Cidr,
    Cpus,
    LabelKey,
    ObjectName,
    Port,
)
from kai_fleet_stack.settings.sections.models import Grants, Rising, Strict, like

Count = Annotated[int, Field(ge=0, le=1_000_000)]
_DEVICE: Final = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[-A-Za-z0-9_.]+$"  # nvidia.com/mig-1g.10gb
DeviceName = Annotated[str, like(_DEVICE)]
GraceSeconds = Annotated[int, Field(ge=30, le=86_400)]
VolumeType = Annotated[str, like(r"^[a-z][A-Za-z]+$")]
Level = Annotated[
    Literal["baseline", "restricted", "off"],
    Rising(("restricted", "baseline", "off")),
]
GuardMode = Annotated[
    Literal["deny", "audit", "off"],
    Rising(("deny", "audit", "off")),
]
OutsideQueues = Annotated[
    Literal["deny", "warn", "allow"],
    Rising(("deny", "warn", "allow")),
]


class Bounds(Strict):
    """The most that a team's namespace on the host may have, its vCluster's own pods included."""

    cpu: Annotated[Cpus | None, Grants.MOST_UNSET] = None
    """Sum of CPU requests, in cores. If set, every pod has to request CPU. Default: no bound."""
    memory: Annotated[Bytes | None, Grants.MOST_UNSET] = None
    """Sum of memory requests, in bytes. If set, every pod has to request memory. Default: no bound.
    """
    storage: Annotated[Bytes | None, Grants.MOST_UNSET] = None
    """Sum of the sizes of all volume claims, in bytes. Default: no bound."""
    pods: Count = 2000
    """Number of pods."""
    volumes: Count = 500
    """Number of volume claims. The same number bounds volume snapshots."""
    load_balancers: Count = 10
    """Number of Services of type LoadBalancer. The same number bounds Gateways."""
    node_ports: Count = 50
    """Number of node ports of all Services."""
    services: Count = 500
    """Number of Services. Each takes a cluster address of the host."""
    huge_pages: Bytes | None = None
    """Sum of requests of huge pages, in bytes, for each page size. Default: 0 on nodes that teams
    share, no bound on nodes of the team's own.
    """
    objects: Count = 5000
    """Number of objects of each other kind in the host's etcd, such as Secrets and roles, and of
    pods that run or ended.
    """
    ephemeral_storage: Annotated[Bytes | None, Grants.MOST_UNSET] = None
    """Sum of requests of ephemeral storage, in bytes. If set, every pod has to request some.
    Default: no bound.
    """
    grace_seconds: GraceSeconds = 3600
    """Longest terminationGracePeriodSeconds of a pod, in seconds."""


class Network(Strict):
    """NetworkPolicies. Pods of a team always reach each other and the API of their vCluster."""

    enabled: Annotated[bool, Grants.LESS] = True
    """Declare NetworkPolicies on the host."""
    internet: bool = True
    """Pods reach public addresses."""
    private: Annotated[list[Cidr], Grants.LESS] = Field(default_factory=list)
    """Public CIDRs to treat as private, such as those of nodes or of IPv6 pods. Default: none."""
    cidrs: list[Cidr] = Field(default_factory=list)
    """More CIDRs that pods reach, such as 10.20.0.0/16. Default: none."""
    namespaces: list[ObjectName] = Field(default_factory=list)
    """Namespaces of the host that pods reach. Default: none."""
    attachments: bool = False
    """Pods may join more networks with Multus. NetworkPolicies do not apply to those."""
    endpoints: bool = False
    """Services without a selector may have endpoints with private addresses."""
    api_ports: list[Port] = Field(default_factory=lambda: [443, 6443], min_length=1)
    """Ports of the host's API server and of its Service. Default: 443 and 6443."""
    api_cidrs: Annotated[list[Cidr], Grants.MOST_UNSET] = Field(default_factory=list)
    """CIDRs of the host's API server and of its Service. Default: any address, at `apiPorts`."""
    ingress_from: list[ObjectName] = Field(default_factory=list)
    """Namespaces of the host that reach the team's pods. Default: none."""
    ingress_cidrs: list[Cidr] = Field(default_factory=list)
    """CIDRs that reach the team's pods. Load balancers need 0.0.0.0/0. Default: none."""


class Isolation(Strict):
    """How a team is isolated from the others, and the exceptions for its pods on the host."""

    level: Level = "baseline"
    """Pod Security level of the team's pods. off: on the host only the GPU quota is left."""
    devices: dict[DeviceName, Count] = Field(default_factory=dict)
    """Number of devices other than GPUs, by the resource that nodes advertise, such as rdma/hca.
    Default: none.
    """
    device_classes: dict[ObjectName, Count] = Field(default_factory=dict)
    """Number of devices that ResourceClaims may request, by DeviceClass. Default: none."""
    priority_classes: list[ObjectName] = Field(default_factory=list)
    """PriorityClasses of the host, besides KAI's, that pods may name. Default: none."""
    runtime_classes: list[ObjectName] = Field(default_factory=lambda: list(NO_GPU_CLASSES))
    """RuntimeClasses of the host that give no GPUs, so that any pod may name them. Default: those
    of runc, crun, youki, gVisor and Kata.
    """
    annotations: list[LabelKey] = Field(default_factory=list)
    """More annotations that pods, Secrets and ConfigMaps may have, as keys or domains of keys.
    Default: none.
    """
    volumes: list[VolumeType] = Field(default_factory=list)
    """Volume types besides those of Pod Security's restricted, such as nfs. Default: none."""
    volume_classes: list[ObjectName] = Field(default_factory=list)
    """StorageClasses and VolumeAttributesClasses that claims may name, besides the host's default
    class and kai-fleet:vcluster.storageClass. Default: none.
    """
    bounds: Bounds = Field(default_factory=Bounds)
    """ResourceQuotas of the team's namespace."""
    network: Network = Field(default_factory=Network)
    """NetworkPolicies of the team's namespace."""

    @property
    def on(self) -> bool:
        """Whether the host enforces anything for the team besides its GPU quota."""
        return self.level != "off"


class Guard(Strict):
    """The admission guard for pods of teams with KAI."""

    mode: GuardMode = "deny"
    """deny: refuse pods that break a rule. audit: admit them with a warning. off: no guard."""
    outside_queues: OutsideQueues = "deny"
    """What happens to pods that request GPUs without KAI, in a team that has queues."""

    def outside(self, queues: Sequence[str]) -> str:
        """`deny`, `warn` or `allow` for pods that request GPUs without KAI.

        Without queues it is `allow`. Mode `audit` turns `deny` into `warn`.
        """
        if not queues:
            return "allow"
        if self.mode == "audit" and self.outside_queues == "deny":
            return "warn"
        return self.outside_queues
