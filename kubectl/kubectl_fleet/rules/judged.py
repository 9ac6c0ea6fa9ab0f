"""What the rules of pods and queues look at: of what is declared, and of what runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from kubectl_fleet.declared.pods import PodTemplate
from kubectl_fleet.declared.queues import DeclaredQueue, QueueIndex
from kubectl_fleet.releases.sharing import NOT_ENFORCED, SharingMode


class JudgedKai(Protocol):
    """A KAI; `version` is None where it is left open."""

    @property
    def version(self) -> str | None:
        """None where it is left open."""

    @property
    def sharing(self) -> SharingMode:
        """How it lets pods share GPUs."""

    @property
    def values(self) -> Mapping[str, Any]:
        """The chart values that were written for it."""


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
        """Where its KAI is."""

    @property
    def queue(self) -> str | None:
        """Its leaf queue in mode host."""


class JudgedCluster(Protocol):
    """One API server, as it is declared or as it runs."""

    @property
    def name(self) -> str:
        """As messages name it."""

    @property
    def path(self) -> str:
        """Where it stands in the stack file."""

    @property
    def declared(self) -> bool:
        """Whether all of it is declared in one place."""

    @property
    def kai(self) -> Sequence[JudgedKai]:
        """The schedulers in it."""

    @property
    def tree(self) -> QueueIndex:
        """Its queues."""

    @property
    def workloads(self) -> Sequence[PodTemplate]:
        """Its pods and pod templates."""

    @property
    def scheduling(self) -> JudgedCluster:
        """The cluster whose queues and KAI count for its pods."""

    @property
    def scheduled_by(self) -> JudgedCluster | None:
        """That cluster, where it is another one."""

    @property
    def team_queue(self) -> str | None:
        """The only queue that its pods may name then."""

    @property
    def queues_of(self) -> Mapping[str, Sequence[str]]:
        """The only queues that pods of a namespace may name."""

    @property
    def guarded(self) -> bool:
        """Whether a guard denies pods in every namespace."""

    @property
    def virtual_clusters(self) -> Sequence[JudgedTeam]:
        """The teams that have a vCluster here."""


@dataclass(frozen=True)
class RunningKai:
    """The KAI that runs in a cluster."""

    version: str | None
    sharing: SharingMode = NOT_ENFORCED
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class RunningCluster:
    """What was read of an API server: its queues and pods.

    `scheduled_by` and `team_queue` are set where another cluster's KAI places its pods.
    """

    name: str
    path: str = ""
    kai: tuple[RunningKai, ...] = ()
    queues: tuple[DeclaredQueue, ...] = ()
    workloads: tuple[PodTemplate, ...] = ()
    scheduled_by: RunningCluster | None = None
    team_queue: str | None = None
    queues_of: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)
    virtual_clusters: tuple[JudgedTeam, ...] = ()
    guarded: bool = False
    declared: bool = False

    @property
    def scheduling(self) -> RunningCluster:
        """The cluster whose queues and KAI count for the pods here."""
        return self.scheduled_by or self

    @cached_property
    def tree(self) -> QueueIndex:
        """Its queues, indexed by name and parent."""
        return QueueIndex(self.queues)
