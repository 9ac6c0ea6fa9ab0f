"""How a team is isolated from others: Pod Security, quotas, networks; and the admission guard."""

from collections.abc import Sequence
from typing import Annotated, Literal

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
from kai_fleet_stack.settings.sections.models import (
    NO_ENTRIES,
    NO_KEYS,
    Grants,
    Rising,
    Strict,
    like,
)

Count = Annotated[int, Field(ge=0, le=1_000_000)]
_DEVICE = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[-A-Za-z0-9_.]+$"  # nvidia.com/mig-1g.10gb
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

    described_by = ("isolation.namespace_args.BoundsArgs",)

    cpu: Annotated[Cpus | None, Grants.MOST_UNSET] = None
    memory: Annotated[Bytes | None, Grants.MOST_UNSET] = None
    storage: Annotated[Bytes | None, Grants.MOST_UNSET] = None
    pods: Count = 2000
    volumes: Count = 500
    load_balancers: Count = 10
    node_ports: Count = 50
    services: Count = 500
    huge_pages: Bytes | None = None
    objects: Count = 5000
    ephemeral_storage: Annotated[Bytes | None, Grants.MOST_UNSET] = None
    grace_seconds: GraceSeconds = 3600


class Network(Strict):
    """NetworkPolicies. Pods of a team always reach each other and the API of their vCluster."""

    described_by = ("isolation.namespace_args.NetworkArgs",)

    enabled: Annotated[bool, Grants.LESS] = True
    internet: bool = True
    private: Annotated[list[Cidr], Grants.LESS] = NO_ENTRIES
    cidrs: list[Cidr] = NO_ENTRIES
    namespaces: list[ObjectName] = NO_ENTRIES
    attachments: bool = False
    endpoints: bool = False
    api_ports: list[Port] = Field(default_factory=lambda: [443, 6443], min_length=1)
    api_cidrs: Annotated[list[Cidr], Grants.MOST_UNSET] = NO_ENTRIES
    ingress_from: list[ObjectName] = NO_ENTRIES
    ingress_cidrs: list[Cidr] = NO_ENTRIES


class Isolation(Strict):
    """How a team is isolated from the others, and the exceptions for its pods on the host."""

    described_by = (
        "isolation.namespace_args.IsolationArgs",
        "isolation.namespace_args.TeamNamespaceArgs",
    )

    level: Level = "baseline"
    devices: dict[DeviceName, Count] = NO_KEYS
    device_classes: dict[ObjectName, Count] = NO_KEYS
    priority_classes: list[ObjectName] = NO_ENTRIES
    runtime_classes: list[ObjectName] = Field(default_factory=lambda: list(NO_GPU_CLASSES))
    annotations: list[LabelKey] = NO_ENTRIES
    volumes: list[VolumeType] = NO_ENTRIES
    volume_classes: list[ObjectName] = NO_ENTRIES
    """StorageClasses and VolumeAttributesClasses that claims may name, besides the host's default
    class and kai-fleet:vcluster.storageClass. Default: none.
    """
    bounds: Bounds = Field(default_factory=Bounds)
    network: Network = Field(default_factory=Network)

    @property
    def is_on(self) -> bool:
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

        Without `queues`, the names of a team's own, it is `allow`. Mode `audit` turns `deny` into
        `warn`. Mode `off` changes nothing: its guard is not there.
        """
        if not queues:
            return "allow"
        if self.mode == "audit" and self.outside_queues == "deny":
            return "warn"
        return self.outside_queues
