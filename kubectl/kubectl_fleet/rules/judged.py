"""What the rules of pods and queues look at: of what is declared, and of what runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, Self

from kubectl_fleet.declared.pods import PodTemplate
from kubectl_fleet.declared.queues import DeclaredQueue, QueueIndex
from kubectl_fleet.releases.sharing import NOT_ENFORCED, SharingMode


@dataclass(frozen=True)
class JudgedKai:
    """A KAI: its version, None where it is left open, how it lets pods share GPUs, and the chart
    values that were written for it.
    """

    version: str | None
    sharing: SharingMode = NOT_ENFORCED
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)


class JudgedTeam(Protocol):
    """A team on its host; `queue` is its leaf queue in mode host."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def path(self) -> str:
        """Where it stands."""

    @property
    def mode(self) -> str:
        """Where its KAI is: `virtual`, `host` or `default` for none."""

    @property
    def queue(self) -> str | None:
        """Its leaf queue in mode host."""


@dataclass(frozen=True)
class JudgedCluster:
    """One API server, as it is declared or as it runs: its schedulers, its queues and its pods.

    `path` is where it stands in the stack file, `declared` whether all of it is declared in one
    place. `scheduled_by` is the cluster whose KAI places its pods, where that is another one, and
    `team_queue` the only queue that its pods may name then. `queues_of` are the only queues that
    pods of a namespace may name, for the namespaces that it lists. `guarded` is whether a guard
    denies pods in every namespace. `virtual_clusters` are the teams that have a vCluster here.
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

    @property
    def scheduling(self) -> Self:
        """The cluster whose queues and KAI count for the pods here."""
        return self.scheduled_by or self

    @cached_property
    def tree(self) -> QueueIndex:
        """Its queues, indexed by name and parent."""
        return QueueIndex(self.queues)
