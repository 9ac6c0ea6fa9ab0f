"""A team: its scheduler, nodes, GPUs and queues; and settings that a stack has for all teams."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field

from kai_fleet.releases import KAI, advised
from kai_fleet.releases.chart_values import merged
from kai_fleet.releases.keys import DEFAULT_SHARD
from kai_fleet_stack.settings.sections.access import Registries
from kai_fleet_stack.settings.sections.backup import Backup
from kai_fleet_stack.settings.sections.isolation import Isolation
from kai_fleet_stack.settings.sections.kubernetes import (
    Affinity,
    LabelKey,
    LabelValue,
    NotedKey,
    Toleration,
)
from kai_fleet_stack.settings.sections.models import NO_ENTRIES, NO_KEYS, Grants, Mistakes, Strict
from kai_fleet_stack.settings.sections.platform import (
    EXAMPLE_VERSION,
    Gpus,
    KaiRelease,
    KaiVersion,
    Shard,
    ShardName,
    gpus_by_resource,
    gpus_with_slices,
    total_gpus,
)
from kai_fleet_stack.settings.sections.queues import QueueName, QueueTree
from kai_fleet_stack.settings.sections.vcluster import Vcluster
from kai_usage import mig

REMOVED = "Teams that an update may delete. It refuses to delete a team that is not named here."


class Scheduler(KaiRelease):
    """The scheduler of the team's pods. Keys that a team leaves out are read from
    `kai-fleet:scheduler`, unless the team has another mode than that.
    """

    mode: Literal["virtual", "host", "default"] = "virtual"
    """virtual: a KAI of its own version inside the team's vCluster. host: the host's KAI. default:
    Kubernetes' default scheduler.
    """
    version: Annotated[KaiVersion | None, Grants.NOTHING] = Field(
        default=None,
        description=f"virtual, required there: version of its KAI, such as {EXAMPLE_VERSION}.",
    )

    def with_fields_of(self, team: Self | None) -> Self:
        """The stack's scheduler with the keys of a team over it; a team's of another mode alone.

        Chart values of both are merged. Unchanged for None.
        """
        if team is None:
            return self
        if team.set_fields.get("mode", self.mode) != self.mode:
            return team
        scheduler = super().with_fields_of(team)
        values = merged(self.values, team.values)
        return scheduler.model_copy(update={"values": values}) if values else scheduler


class Defaults(Strict):
    """Keys that a stack has for all teams and the host, and a team for itself."""

    isolation: Isolation = Field(default_factory=Isolation)
    """How teams are isolated from each other. Keys of a team take precedence."""
    labels: Annotated[dict[NotedKey, LabelValue], Grants.NOTHING] = NO_KEYS
    """Labels of all objects that are created, such as a cost centre. A team's are merged over
    kai-fleet:labels. Default: none.
    """
    annotations: Annotated[dict[NotedKey, str], Grants.NOTHING] = NO_KEYS
    """Annotations of the same objects, without pods. A team's are merged over
    kai-fleet:annotations. Default: none.
    """
    tolerations: list[Toleration] = NO_ENTRIES
    """Taints that all pods of teams tolerate, synced pods too. A team's replace
    kai-fleet:tolerations. Default: none.
    """
    affinity: Annotated[Affinity | None, Grants.OTHER] = None
    """Affinity of control planes, of their DNS and of KAI, as in a pod's spec. A team's replaces
    kai-fleet:affinity. Default: none.
    """

    def fields_for_team(self, team: "Defaults") -> dict[str, object]:
        """These fields for a team, by name: the stack's with those that the team sets over them.

        Labels and annotations are merged, and so is the first level of `isolation`. An empty list
        of tolerations of the team replaces the stack's; an empty affinity does not.
        """
        has_tolerations = "tolerations" in team.model_fields_set
        return {
            "isolation": self.isolation.with_fields_of(team.isolation),
            "labels": {**self.labels, **team.labels},
            "annotations": {**self.annotations, **team.annotations},
            "tolerations": team.tolerations if has_tolerations else self.tolerations,
            "affinity": team.affinity or self.affinity,
        }


class HostPlace(Defaults):
    """What a team has on the host. A team's own stack cannot set it; its platform's stack does."""

    described_by = ("isolation.namespace_args.TeamNamespaceArgs",)

    node_pool: Annotated[dict[LabelKey, LabelValue], Grants.MOST_UNSET] = NO_KEYS
    autoscaled: Annotated[bool, Grants.NOTHING] = False
    """An autoscaler adds and removes these nodes, so fewer GPUs than `gpus` are no mistake."""
    gpus: Gpus = 0
    """The most GPUs that its pods may request together, also by resource: {nvidia.com/gpu: 8,
    nvidia.com/mig-1g.10gb: 2}.
    """

    @property
    def slices(self) -> dict[str, int]:
        """Number of MIG slices that its pods may hold, by resource.

        They are those of `gpus`, and those of `isolation.devices` that `gpus` does not have. What
        begins like a slice counts, also with an unknown profile.
        """
        devices = {**self.isolation.devices, **gpus_by_resource(self.gpus)}
        return mig.slices(devices)

    @property
    def gpus_with_slices(self) -> int:
        """GPUs that KAI counts: 1 for a whole GPU, the first number of its profile for a slice.

        The slices are those of `slices`; a profile with a suffix counts nothing.
        """
        return gpus_with_slices(self.gpus, self.slices)


class Grant(HostPlace):
    """What a platform's stack grants to a team that has a stack of its own."""

    parent_queue: QueueName | None = None
    """host mode: the leaf of kai-fleet:queues for the team's pods, or for its own queues below it.
    Default: none.
    """


# A platform may run a newer version of this program, whose keys are unknown to its teams' stacks.
LENIENT = ConfigDict(extra="ignore")


class Granted(Grant):
    """What one team stack is granted, as its platform's stack exports it.

    `above` has the names of the queues above `parent_queue`, from the top, and `shard` is the shard
    that schedules it; None for the default shard.
    """

    model_config = LENIENT
    above: list[str] = NO_ENTRIES
    shard: str | None = None


class Runs(Strict):
    """What a team runs. A team's own stack sets only these keys."""

    scheduler: Scheduler = Field(default_factory=Scheduler)
    """The scheduler of its pods."""
    queue: QueueName | None = None
    """host mode: the leaf of kai-fleet:queues for its pods."""
    queues: Annotated[QueueTree, Grants.NOTHING] = NO_KEYS
    """virtual mode: the queues inside its vCluster. Default: none."""
    registries: Registries = NO_KEYS
    """Credentials to pull its images, by registry, in addition to kai-fleet:registries. Default:
    none.
    """
    vcluster: Vcluster = Field(default_factory=Vcluster)
    """Its vCluster."""


class TeamSettings(HostPlace, Runs):
    """One team."""

    backup: Backup | Literal[False] | None = None
    """Backups of its control plane. Keys take precedence over kai-fleet:backup; false: none."""
    pools: dict[ShardName, Gpus] = NO_KEYS
    """virtual mode, in place of `gpus`: GPUs of each shard, by the value of the label
    kai.scheduler/node-pool on its nodes. Each of them is also declared as a shard. Default: none.
    """

    def filled_in_from_pools(self, gpu_resource: str) -> Self:
        """The team with a shard for each of its pools, and their sum as `gpus` if that is unset.

        Keeps shards that it has, and adds none for the default one. Unchanged without pools, and in
        other modes than virtual. So the scheduler has to have the stack's defaults already.
        `gpu_resource` is the resource of the host's GPUs.
        """
        if not self.pools or self.scheduler.mode != "virtual":
            return self
        shards = {name: Shard() for name in self.pools if name != DEFAULT_SHARD}
        shards.update(self.scheduler.shards)
        scheduler = self.scheduler.model_copy(update={"shards": shards})
        update: dict[str, object] = {"scheduler": scheduler}
        if "gpus" not in self.model_fields_set:
            update["gpus"] = total_gpus(self.pools.values(), gpu_resource)
        return self.model_copy(update=update)

    @property
    def gpus_by_pool(self) -> dict[str, int]:
        """Number of GPUs that KAI counts in each pool; nothing for a MIG profile with a suffix."""
        return {
            name: gpus_with_slices(gpus, mig.slices(gpus_by_resource(gpus)))
            for name, gpus in self.pools.items()
        }

    def mistakes(self, gpu_resource: str, granted: str | None) -> Mistakes:
        """Keys that the mode requires and that are missing, or that it does not read.

        The team has the stack's defaults already: keys of the stack's scheduler count as its own.
        In mode virtual also what does not fit its pools: the team is one that
        `filled_in_from_pools` gave, or its missing `gpus` count as 0.

        Args:
            gpu_resource: the resource of the host's GPUs.
            granted: mode host in a stack of its own: the queue that the platform grants. The team
                may have queues below it. None in any other case.
        """
        yield from self._scheduler_mistakes()
        yield from self._queue_mistakes(granted)
        if self.scheduler.mode == "virtual" and self.pools:
            yield from self._pool_mistakes(gpu_resource)

    def _scheduler_mistakes(self) -> Mistakes:
        """No version in mode virtual; in other modes all keys of the scheduler but `mode`."""
        mode = self.scheduler.mode
        if mode == "virtual":
            if self.scheduler.version is None:
                version = advised(KAI) or EXAMPLE_VERSION
                cause = "is missing: mode virtual runs its own KAI"
                yield "scheduler.version", f"{cause}; write {version}"
            return
        for name in Scheduler.model_fields:
            if name != "mode" and name in self.scheduler.model_fields_set:
                fix = "drop it, the host's is at kai-fleet:kai"
                yield f"scheduler.{Scheduler.key_of(name)}", f"has no use in mode {mode}; {fix}"

    def _queue_mistakes(self, granted: str | None) -> Mistakes:
        """Queues and pools that the mode does not read, and no queue in mode host.

        With a `granted` queue mode host reads `queues`, unless `queue` is set. Empty keys are no
        mistake.
        """
        mode = self.scheduler.mode
        keys_by_mode = {
            "virtual": ["queues", "pools"],
            "host": ["queues"] if granted and not self.queue else ["queue"],
            "default": [],
        }
        keys = keys_by_mode[mode]
        for name in ("queues", "queue", "pools"):
            if getattr(self, name) and name not in keys:
                fix = f"write {' or '.join(keys)}" if keys else "drop it"
                yield name, f"has no use in mode {mode}; {fix}"
        has_queue = self.queue or (granted and self.queues)
        if mode == "host" and not has_queue:
            yield "queue", "is missing: mode host needs the name of a leaf of kai-fleet:queues"

    def _pool_mistakes(self, gpu_resource: str) -> Mistakes:
        """Another number of GPUs than that of the pools, and top-level queues of no pool.

        Only for a team with pools: without any, all GPUs and queues would be mistakes.
        """
        total = total_gpus(self.pools.values(), gpu_resource)
        gpus = gpus_by_resource(self.gpus, gpu_resource)
        if gpus != gpus_by_resource(total, gpu_resource):
            yield "gpus", f"is {self.gpus}, and its pools have {total} together; drop it"
        for name, queue in self.queues.items():
            if (queue.shard or DEFAULT_SHARD) not in self.pools:
                cause = f"is {queue.shard or 'missing'}, and the team has pools"
                yield f"queues.{name}.shard", f"{cause}; write one of {', '.join(self.pools)}"
