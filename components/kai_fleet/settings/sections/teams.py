"""What belongs to a team: its scheduler, its nodes and GPUs, its queues, its place."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field

from kai_fleet.releases import KAI, advised, mig
from kai_fleet.releases.chart_values import merged
from kai_fleet.releases.keys import DEFAULT_SHARD
from kai_fleet.settings.sections.access import Registries
from kai_fleet.settings.sections.isolation import Isolation
from kai_fleet.settings.sections.kubernetes import (
    Affinity,
    LabelKey,
    LabelValue,
    NotedKey,
    Toleration,
)
from kai_fleet.settings.sections.models import Grants, Strict, Wrong
from kai_fleet.settings.sections.platform import (
    EXAMPLE_VERSION,
    Gpus,
    KaiRelease,
    KaiVersion,
    Shard,
    ShardName,
    by_kind,
    counted,
    together,
)
from kai_fleet.settings.sections.queues import QueueName, QueueTree
from kai_fleet.settings.sections.vcluster import Vcluster

REMOVED: Final = "Teams that may go: a deployed one goes only when it is named here."


class Scheduler(KaiRelease):
    """Which scheduler places the team's pods. What a team leaves out comes from
    `kai-fleet:scheduler`, unless it has another mode.

    virtual: KAI of that version inside the team's vCluster. host: the host's KAI. default: none.
    """

    mode: Literal["virtual", "host", "default"] = "virtual"
    """virtual, host or default."""
    version: Annotated[KaiVersion | None, Grants.NOTHING] = Field(
        default=None, description=f"virtual: the team's KAI, such as {EXAMPLE_VERSION}."
    )

    def over(self, own: Self | None) -> Self:
        """This one, of a stack, with what a team says for itself; in another mode the team's."""
        if own is None or own.written.get("mode", self.mode) != self.mode:
            return own or self
        values = merged(self.values, own.values)
        return super().over(own).model_copy(update={"values": values} if values else {})


class Defaults(Strict):
    """What a stack says of all that it makes on the host, and a team over that for itself."""

    isolation: Isolation = Field(default_factory=Isolation)
    """What keeps teams from each other, on the host; a team's where it differs."""
    labels: Annotated[dict[NotedKey, LabelValue], Grants.NOTHING] = Field(default_factory=dict)
    """Labels of all that is made: a cost centre. A team's over kai-fleet:labels."""
    annotations: Annotated[dict[NotedKey, str], Grants.NOTHING] = Field(default_factory=dict)
    """Annotations of the same but of pods."""
    tolerations: list[Toleration] = Field(default_factory=list)
    """Taints that all pods of teams tolerate; a team's in place of kai-fleet:tolerations."""
    affinity: Annotated[Affinity | None, Grants.OTHER] = None
    """Where control planes, their DNS and KAI are: nodeAffinity, podAffinity, podAntiAffinity; a
    team's in place of kai-fleet:affinity.
    """

    def of_team(self, own: Defaults) -> dict[str, Any]:
        """These fields of a team."""
        written = "tolerations" in own.model_fields_set
        return {
            "isolation": self.isolation.over(own.isolation),
            "labels": {**self.labels, **own.labels},
            "annotations": {**self.annotations, **own.annotations},
            "tolerations": own.tolerations if written else self.tolerations,
            "affinity": own.affinity or self.affinity,
        }


class HostPlace(Defaults):
    """What a team's place on the host is like. The platform's stack writes it, no team stack."""

    node_pool: Annotated[dict[LabelKey, LabelValue], Grants.MOST_UNSET] = Field(
        default_factory=dict
    )
    """Labels of the nodes that are the team's own."""
    autoscaled: Annotated[bool, Grants.NOTHING] = False
    """An autoscaler adds and removes these nodes: that they have fewer GPUs now is no mistake."""
    gpus: Gpus = 0
    """The most GPUs of its pods, also by kind: {nvidia.com/gpu: 8, nvidia.com/mig-1g.10gb: 2}."""

    @property
    def slices(self) -> dict[str, int]:
        """The MIG slices that its pods may hold, by the names of their resources."""
        return mig.slices({**self.isolation.devices, **by_kind(self.gpus)})

    @property
    def counted(self) -> int:
        """All of its GPUs as KAI counts them."""
        return counted(self.gpus, self.slices)


class Grant(HostPlace):
    """What the platform stack lets one team stack have; its name is the key above."""

    parent_queue: QueueName | None = None
    """host mode: the leaf of kai-fleet:queues that is the team's."""


class Runs(Strict):
    """What a team runs; in a stack of its own it says no more than this."""

    scheduler: Scheduler = Field(default_factory=Scheduler)
    queue: QueueName | None = None
    """host mode: its leaf queue."""
    queues: Annotated[QueueTree, Grants.NOTHING] = Field(default_factory=dict)
    """virtual mode: the queues inside its vCluster."""
    registries: Registries = Field(default_factory=dict)
    """Credentials by which its images are pulled, by registry; besides kai-fleet:registries."""
    vcluster: Vcluster = Field(default_factory=Vcluster)


class TeamSettings(HostPlace, Runs):
    """One team."""

    pools: dict[ShardName, Gpus] = Field(default_factory=dict)
    """virtual mode, in place of gpus: GPUs by the kai.scheduler/node-pool of its nodes; shards."""

    def with_pools(self) -> Self:
        """With its pools as shards, and their GPUs together as its own."""
        if not self.pools or self.scheduler.mode != "virtual":
            return self
        named = {name: Shard() for name in self.pools if name != DEFAULT_SHARD}
        shards = {**named, **self.scheduler.shards}
        filled: dict[str, Any] = {"scheduler": self.scheduler.model_copy(update={"shards": shards})}
        if "gpus" not in self.model_fields_set:
            filled["gpus"] = together(self.pools.values())
        return self.model_copy(update=filled)

    @property
    def gpus_by_pool(self) -> dict[str, int]:
        """The most GPUs of each of its pools as KAI counts them."""
        return {name: counted(gpus, mig.slices(by_kind(gpus))) for name, gpus in self.pools.items()}

    def mistakes(self, granted: str | None = None) -> Wrong:
        """Keys that its mode needs and does not have, or has and cannot use.

        `granted` is the queue of a stack of its own, in mode host: it may have queues below that.
        """
        mode, scheduler = self.scheduler.mode, self.scheduler
        if mode == "virtual" and scheduler.version is None:
            write = advised(KAI) or EXAMPLE_VERSION
            yield "scheduler.version", f"is missing: mode virtual runs its own KAI; write {write}"
        for name in Scheduler.model_fields if mode != "virtual" else ():
            if name != "mode" and name in scheduler.model_fields_set:
                fix = "drop it, the host's is at kai-fleet:kai"
                yield f"scheduler.{Scheduler.key_of(name)}", f"has no use in mode {mode}; {fix}"
        host = ("queues",) if granted and not self.queue else ("queue",)
        used = {"virtual": ("queues", "pools"), "host": host}.get(mode, ())
        for name in ("queues", "queue", "pools"):
            if getattr(self, name) and name not in used:
                fix = f"write {' or '.join(used)}" if used else "drop it"
                yield name, f"has no use in mode {mode}; {fix}"
        if mode == "host" and not (self.queue or (granted and self.queues)):
            yield "queue", "is missing: mode host needs the name of a leaf of kai-fleet:queues"
        if mode == "virtual" and self.pools:
            if self.gpus != (both := together(self.pools.values())):
                yield "gpus", f"is {self.gpus}, and its pools have {both} together; drop it"
            for name, queue in self.queues.items():
                if (queue.shard or DEFAULT_SHARD) not in self.pools:
                    cause = f"is {queue.shard or 'missing'}, and the team has pools"
                    yield f"queues.{name}.shard", f"{cause}; write one of {', '.join(self.pools)}"
