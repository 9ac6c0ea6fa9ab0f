"""A cluster as it is to be: what rules, plans and the doctor read of it.

It is read from a stack file, where paths are keys, or from the resources of any program, where
paths are URNs. From resources any value may be UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from kai_fleet import releases
from kai_fleet.releases import DISABLED
from kai_fleet.releases.charts import mismatch
from kai_fleet.releases.keys import GPU_RESOURCES, KAI_NAMESPACE
from kai_fleet.releases.sharing import NOT_ENFORCED, SharingMode
from kai_fleet.releases.sources import KnownSources
from kai_fleet.values import at
from kai_fleet.vcluster_values import ChartStore
from kai_fleet_policies.model.device_sharing import DeviceSharing
from kai_fleet_policies.model.pods import PodTemplate
from kai_fleet_policies.model.queues import DeclaredQueue, QueueIndex

if TYPE_CHECKING:  # a policy pack starts without the types of settings
    from kai_fleet.settings.sections.access import Access

HOST: Final = "host"  # the name of the cluster that teams share


@dataclass(frozen=True)
class Kai:
    """A KAI scheduler; the fields named as in KaiSchedulerArgs have what is written there.

    `version` is None where it is left open, `chart` where it is the table's. `registries` are those
    whose credentials its release gets. `path` is the key of its section, or its release's URN;
    `where` finds a key that is written for all teams.
    """

    version: str | None
    sharing: SharingMode = NOT_ENFORCED
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    untested: bool = False
    namespace: str | None = KAI_NAMESPACE
    path: str = ""
    chart: str | None = None
    shards: Collection[str] = field(default=(), hash=False)
    topologies: Any = field(default=(), hash=False)
    fairshare: Any = field(default=None, hash=False)
    registries: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)
    where: Callable[..., str] | None = field(default=None, compare=False, repr=False)

    @property
    def release(self) -> releases.KaiRelease | None:
        """Its row of the release table; None for a version that the table does not have."""
        try:
            return releases.kai(self.version or "", untested=self.untested)
        except releases.UnknownVersionError:
            return None  # kai-version-known reports it


@dataclass(frozen=True)
class Chart:
    """A chart, or an image of a part of the host: its location, None for the table's, and its
    values, whose keys are below `values_key`.

    `home` is the registry, and `repository` one there, that the chart has of itself where only one
    of the two is written. `subject` and `path` are those of a part of the host besides KAI.

    Args:
        names: Charts that may be there; none in a component that has no chart, None for an image.
        version: The one that is installed; `tested` is the table's where it alone was tried, but
            for `untested`.
    """

    chart: str | None
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    values_key: str = "values"
    home: str = ""
    repository: str = ""
    subject: str = ""
    path: str = ""
    names: tuple[str, ...] | None = None
    version: str | None = None
    tested: str | None = None
    untested: bool = False

    @property
    def why_another(self) -> str | None:
        """What says that it is none of `names`; None where nothing does."""
        if self.names is None or self.chart is None:
            return None
        return mismatch(self.chart, self.names, self.version or "")


@dataclass(frozen=True)
class ManagedObject:
    """Any other object in a namespace; `sharing` is set for a GPU stack: how its device plugin
    shares GPUs, as `device_sharing` says.
    """

    kind: str
    name: str
    namespace: str
    path: str = ""
    sharing: DeviceSharing | None = None


@dataclass(frozen=True)
class Team:
    """A team on its host: its namespace, its bounds and its vCluster.

    `path` is the key of its section, or the URN of its vCluster's release; `where` finds where a
    key is written, its own or that of all teams. The fields named as in VirtualClusterArgs have
    what is written there. From resources gpus and level may be None: not known, or no bound.

    Args:
        mode: Where its KAI is: `virtual`, `host` or `default` (none). A grant has the mode that
            needs most of the host.
        queue: Its leaf queue in mode host; `parent_queue` is the platform's, of a team stack.
        gpus: Most GPUs that its pods may hold as KAI counts them; `slices` are those of MIG.
        pools: GPUs of each of several pools, by shard.
        values: Values of vCluster's chart that were written by hand.
        chart_values: These with what its own keys say; `values` where there are no keys.
        own_annotations: Those of its API that the platform neither writes nor lists the domain of.
        classes: StorageClasses that its claims may name besides the default one.
        level: Of its isolation.
        autoscaled: An autoscaler is said to add and remove its nodes.
        unreached_issuer: Of its identity provider, where its network policies do not let its API
            server reach it.
        running_version: As the last update left it, where that is known; `running_store` and
            `running_kubernetes`, too.
        inside: The cluster in its vCluster, with its KAI and its queues.
    """

    name: str
    path: str = ""
    mode: str = "default"
    queue: str | None = None
    node_pool: Mapping[str, str] = field(default_factory=dict)
    gpus: float | None = None
    slices: Mapping[str, int] = field(default_factory=dict, hash=False)
    pools: Mapping[str, int | Mapping[str, int]] = field(default_factory=dict, hash=False)
    namespace: str = ""
    control_pool: Mapping[str, str] = field(default_factory=dict, hash=False)
    version: str | None = None
    chart: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    chart_values: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)
    access: Access | None = None
    own_annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    classes: Collection[str] = field(default=(), hash=False)
    store: ChartStore = field(default_factory=ChartStore, hash=False)
    licensed: bool = False
    untested: bool = False
    level: str | None = None
    autoscaled: bool = False
    unreached_issuer: str = ""
    parent_queue: str | None = None
    running_version: str | None = None
    running_store: ChartStore | None = None
    running_kubernetes: str | None = None
    inside: Cluster = field(default_factory=lambda: Cluster(), hash=False)
    where: Callable[..., str] | None = field(default=None, compare=False, repr=False)

    @property
    def gpus_path(self) -> str:
        """Where its GPUs are written."""
        return at(self.path, "pools" if self.pools else "gpus")

    def written_at(self, *keys: str) -> str:
        """Where a key of its own is written, or that of all teams in its place."""
        steps = ".".join(keys).split(".")
        return self.where(*steps) if self.where else at(self.path, *steps)

    @property
    def kai(self) -> tuple[Kai, ...]:
        """The KAI inside its vCluster."""
        return self.inside.kai

    @property
    def isolated(self) -> bool:
        """Whether anything stands on the host besides the quota of GPUs."""
        return self.level not in (None, "off")


@dataclass(frozen=True)
class Cluster:
    """One API server, the host's or a vCluster's, with what is declared in it.

    `path`, `key` and `queues_key` are the keys of its section, of its KAI and of its queues.
    `declared`: all of it is declared in one place; else only what is wrong in itself is reported.

    Args:
        objects: Other objects in namespaces.
        teams: Teams that have a vCluster here. In a team's own stack the host has that team alone,
            and the queue that it is granted, without a bound.
        grants: Places of teams with stacks of their own.
        platform: Stack that has the host, in a team's own stack; else "".
        charts: Charts of the host besides KAI and vCluster; from resources those of every release
            in a component of this program.
        registry_users: Names of accounts of registries, by their keys in the stack file.
        scheduled_by: Cluster whose KAI places the pods, where that is another one; `team_queue` is
            then the only queue that pods may name.
        gpus: Bound of all pods in it: the quota of the team whose vCluster this is. `pools` has
            those of each of several pools, by shard.
    """

    name: str = ""
    path: str = ""
    kai: tuple[Kai, ...] = ()
    queues: tuple[DeclaredQueue, ...] = ()
    workloads: tuple[PodTemplate, ...] = ()
    objects: tuple[ManagedObject, ...] = ()
    teams: tuple[Team, ...] = ()
    grants: tuple[Team, ...] = ()
    platform: str = ""
    charts: tuple[Chart, ...] = ()
    sources: KnownSources = field(default_factory=KnownSources)
    registry_users: Mapping[str, str] = field(default_factory=dict)
    scheduled_by: Cluster | None = None
    team_queue: str | None = None
    declared: bool = False
    gpu_resource: str = GPU_RESOURCES[0]
    gpus: float | None = None
    pools: Mapping[str, int] = field(default_factory=dict)
    key: str = "kai-fleet:kai"
    queues_key: str = "kai-fleet:queues"

    @property
    def with_insides(self) -> list[Cluster]:
        """This host, and the vClusters in which something is declared."""
        by = {"host": self}
        inner = (
            replace(team.inside, scheduled_by=by.get(team.mode), team_queue=team.queue)
            for team in self.teams
        )
        return [self, *(c for c in inner if c.kai or c.queues or c.workloads or c.objects)]

    @property
    def scheduling(self) -> Cluster:
        """The cluster whose queues and KAI count for the pods here."""
        return self.scheduled_by or self

    @property
    def scheduler(self) -> Kai:
        """Its KAI; one without a version where none is declared."""
        return self.kai[0] if self.kai else Kai(None)

    @property
    def gpu_sharing(self) -> bool:
        """Whether its KAI lets pods share GPUs."""
        return self.scheduler.sharing != DISABLED

    @cached_property
    def tree(self) -> QueueIndex:
        """Its queues, indexed by name and parent."""
        return QueueIndex(self.queues)

    @cached_property
    def queue_specs(self) -> Mapping[str, Mapping[str, Any]]:
        """The `spec` of each Queue object by name, but for those that another stack declares."""
        return {queue.name: queue.spec for queue in self.queues if queue.spec}
