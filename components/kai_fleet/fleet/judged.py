"""A cluster as it is to be: what rules judge of it, and why a pod waits depends on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

from kai_fleet import releases
from kai_fleet.fleet.pods import PodTemplate
from kai_fleet.fleet.queues import DeclaredQueue, QueueIndex
from kai_fleet.releases.keys import GPU_RESOURCES
from kai_fleet.releases.sharing import NOT_ENFORCED, SharingMode
from kai_fleet.values import at


@dataclass(frozen=True)
class JudgedKai:
    """A KAI: its version, None where it is left open, how it lets pods share GPUs, and the chart
    values that were written for it. `untested` lets a version newer than the table by.
    """

    version: str | None
    sharing: SharingMode = NOT_ENFORCED
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    untested: bool = False

    @property
    def release(self) -> releases.KaiRelease | None:
        """Its row of the release table; None for a version that the table does not have."""
        try:
            return releases.kai(self.version or "", untested=self.untested)
        except releases.UnknownVersionError:
            return None  # the stack file is refused for it already


@dataclass(frozen=True)
class JudgedTeam:
    """A team on its host; `path` is where it stands, `mode` where its KAI is.

    `queue` is its leaf queue in mode host, `node_pool` are the labels of its nodes. `gpus` is the
    most GPUs that its pods may hold as KAI counts them, None without a bound; `slices` are those of
    MIG among them, by the names of their resources, and `pools` how many there are on each of
    several pools, by shard. `declared` is whether a stack file says all that.
    """

    name: str
    path: str = ""
    mode: str = "default"
    queue: str | None = None
    node_pool: Mapping[str, str] = field(default_factory=dict)
    gpus: float | None = None
    slices: Mapping[str, int] = field(default_factory=dict, hash=False)
    pools: Mapping[str, int | Mapping[str, int]] = field(default_factory=dict, hash=False)
    declared: bool = False

    @property
    def gpus_path(self) -> str:
        """Where its GPUs are written."""
        return at(self.path, "pools" if self.pools else "gpus")


@dataclass(frozen=True)
class JudgedCluster:
    """One API server, as it is declared or as it runs: its schedulers, its queues and its pods.

    `path` is where it stands in the stack file, `key` where its KAI does and `queues_key` where its
    queues do. `declared` is whether all of it is declared in one place; else only what is wrong in
    itself can be said. `scheduled_by` is the cluster whose KAI places its pods, where that is
    another one, and `team_queue` the only queue that its pods may name then. `queues_of` are the
    only queues that pods of a namespace may name, for the namespaces that it lists. `guarded` is
    whether a guard denies pods in every namespace. `virtual_clusters` are the teams that have a
    vCluster here, `pools` the GPUs of each of several pools of the team that it is of, by shard.
    """

    name: str = ""
    path: str = ""
    kai: tuple[JudgedKai, ...] = ()
    queues: tuple[DeclaredQueue, ...] = ()
    workloads: tuple[PodTemplate, ...] = ()
    virtual_clusters: tuple[JudgedTeam, ...] = ()
    scheduled_by: Self | None = None
    team_queue: str | None = None
    queues_of: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)
    guarded: bool = False
    declared: bool = False
    pools: Mapping[str, int] = field(default_factory=dict)
    gpu_resource: str = GPU_RESOURCES[0]
    key: str = "kai-fleet:kai"
    queues_key: str = "kai-fleet:queues"

    @property
    def scheduling(self) -> Self:
        """The cluster whose queues and KAI count for the pods here."""
        return self.scheduled_by or self

    @property
    def release(self) -> releases.KaiRelease | None:
        """Its KAI's row of the release table; None where no known KAI is wanted."""
        return self.kai[0].release if self.kai else None

    @property
    def sharing(self) -> SharingMode:
        """How its KAI lets pods share GPUs."""
        return self.kai[0].sharing if self.kai else NOT_ENFORCED

    @cached_property
    def tree(self) -> QueueIndex:
        """Its queues, indexed by name and parent."""
        return QueueIndex(self.queues)

    @cached_property
    def queue_specs(self) -> Mapping[str, Mapping[str, Any]]:
        """The `spec` of each Queue object by name."""
        return {queue.name: queue.spec for queue in self.queues}
