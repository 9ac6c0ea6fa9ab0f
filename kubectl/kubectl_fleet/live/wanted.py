"""What a cluster and its team are to have, as far as why a pod waits depends on it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from kubectl_fleet.declared.queues import QueueIndex
from kubectl_fleet.releases import KaiRelease
from kubectl_fleet.releases.keys import GPU_RESOURCES
from kubectl_fleet.releases.sharing import NOT_ENFORCED, SharingMode
from kubectl_fleet.rules.judged import JudgedTeam


class WantedCluster(Protocol):
    """One API server, as a stack declares it or as a team knows it."""

    @property
    def declared(self) -> bool:
        """Whether it is known what it is to have."""

    @property
    def release(self) -> KaiRelease | None:
        """The KAI that it is to run."""

    @property
    def sharing(self) -> SharingMode:
        """How that lets pods share GPUs."""

    @property
    def queue_specs(self) -> Mapping[str, Mapping[str, Any]]:
        """The `spec` of each Queue that it is to have, by name."""

    @property
    def tree(self) -> QueueIndex:
        """Its queues as they are declared."""

    @property
    def pools(self) -> Mapping[str, int]:
        """The GPUs of each of several pools of its team, by shard."""

    @property
    def gpu_resource(self) -> str:
        """The resource of its GPUs."""

    @property
    def key(self) -> str:
        """Where its KAI is declared."""

    @property
    def queues_key(self) -> str:
        """Where its queues are declared."""


class WantedTeam(JudgedTeam, Protocol):
    """The team whose vCluster a cluster is."""

    @property
    def declared(self) -> bool:
        """Whether a stack file declares it."""

    @property
    def gpus(self) -> float | None:
        """The most GPUs that its pods may hold as KAI counts them; None without a bound."""

    @property
    def slices(self) -> Mapping[str, int]:
        """The slices of MIG among them, by the names of their resources."""

    @property
    def pools(self) -> Mapping[str, int | Mapping[str, int]]:
        """How many there are on each of several pools, by shard."""

    @property
    def gpus_path(self) -> str:
        """Where its GPUs are declared."""

    @property
    def node_pool(self) -> Mapping[str, str]:
        """The labels of its nodes."""


@dataclass(frozen=True)
class Wanted:
    """A cluster without a stack file: only what is wrong in itself can be said."""

    declared: bool = False
    release: KaiRelease | None = None
    sharing: SharingMode = NOT_ENFORCED
    queue_specs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tree: QueueIndex = field(default_factory=lambda: QueueIndex(()))
    pools: Mapping[str, int] = field(default_factory=dict)
    gpu_resource: str = GPU_RESOURCES[0]
    key: str = "kai-fleet:kai"
    queues_key: str = "kai-fleet:queues"
