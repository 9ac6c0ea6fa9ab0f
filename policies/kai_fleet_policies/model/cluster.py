"""A cluster as it will be after the update: what rules, plans and the doctor read.

It is built from a stack file, and then paths are keys, or from the resources of any program, and
then paths are URNs. From resources a value of type `Maybe` may be UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from kai_fleet.releases import DEFAULT_VCLUSTER, VCLUSTER
from kai_fleet.releases.chart_stores import ChartStore, kubernetes_of
from kai_fleet.releases.sources import KnownSources
from kai_fleet.values import UNKNOWN, Maybe, at, known_or
from kai_fleet_policies.model.installed import Chart, Kai, ManagedObject
from kai_fleet_policies.model.pods import PodTemplate
from kai_fleet_policies.model.queues import DeclaredQueue, QueueIndex
from kai_usage.keys import GPU_RESOURCES

HOST = "host"  # the name of the cluster that teams share


@dataclass(frozen=True)
class ApiAccess:
    """How the API of a vCluster is reached.

    Args:
        type: `NodePort`, `LoadBalancer`, `ClusterIP`, `Ingress` or `Gateway`.
        host: Name or address in the kubeconfig; None for the load balancer's.
        endpoint: The host, behind a proxy with its port; "" if no host is set.
        routes_by_hostname: A proxy in front of the Service selects it by the host name.
        annotations: Those of the Service, Ingress or TLSRoute.
    """

    type: str
    host: str | None = None
    endpoint: str = ""
    routes_by_hostname: bool = False
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TeamModel:
    """A team on its host: its namespace, its bounds and its vCluster.

    `version`, `chart`, `licensed` and `untested` have the value of that argument of
    VirtualClusterArgs. From resources all fields have their defaults but `name`, `path`, `mode`,
    `node_pool`, `gpus`, `slices`, `namespace`, `version`, `values`, `chart_values`, `store`,
    `licensed`, `untested` and `inside`; so have those of a grant that are only for a vCluster.

    Args:
        path: Key of its section, or URN of its vCluster's release.
        mode: Where its KAI is: `virtual`, `host` or `default` (no KAI). A grant has the mode that
            needs most of the host.
        queue: Its leaf queue in mode host; of a grant the queue of the platform that it is granted.
        node_pool: Labels of its nodes; from resources those by which its vCluster selects them.
        gpus: Most GPUs that its pods may hold, as KAI counts them; None without a bound.
        slices: Most MIG slices of each kind, by resource.
        pools: GPUs of each of several pools, by shard: a number, or numbers by resource.
        version: None if it is left open, which rules take for DEFAULT_VCLUSTER.
        control_pool: Labels of the nodes for its control plane.
        values: Values of vCluster's chart that the stack file, or the program, writes itself. Empty
            for a release in a component of this program.
        chart_values: All values of the chart, with those that come from other keys.
        own_annotations: Annotations of its API that neither the platform writes nor a domain of
            `keyDomains` allows.
        classes: StorageClasses that its claims may name besides the default one.
        store: The backing store that `chart_values` configure.
        level: Level of its isolation; None if that is not known.
        autoscaled: An autoscaler adds and removes its nodes.
        unreached_issuer: Issuer of its identity provider if network policies keep the API server
            from it, else "".
        backup_namespace: Namespace of its backups; None without any, and if that is not known.
        running_version: Version that the last update left; None if that is not known.
        running_store: Store that the last update left; None if that is not known.
        running_kubernetes: Version of Kubernetes that the last update left; None if not known.
        inside: The cluster in its vCluster, with its KAI and its queues. In that of a grant
            nothing is declared.
        find_key: Finds the key path of one of its keys, which may be written for all teams.
    """

    name: Maybe[str]
    path: str = ""
    mode: Maybe[str] = "default"
    queue: str | None = None
    node_pool: Maybe[Mapping[str, Maybe[str]]] = field(default_factory=dict)
    gpus: Maybe[float] | None = None
    slices: Mapping[str, int] = field(default_factory=dict)
    pools: Mapping[str, int | Mapping[str, int]] = field(default_factory=dict)
    namespace: Maybe[str] = ""
    control_pool: Mapping[str, str] = field(default_factory=dict)
    version: Maybe[str] | None = None
    chart: str | None = None
    values: Maybe[Mapping[str, Any]] = field(default_factory=dict)
    chart_values: Maybe[Mapping[str, Any]] = field(default_factory=dict, repr=False)
    access: ApiAccess | None = None
    own_annotations: Mapping[str, str] = field(default_factory=dict)
    classes: Collection[str] = ()
    store: ChartStore = field(default_factory=ChartStore)
    licensed: bool = False
    untested: bool = False
    level: str | None = None
    autoscaled: bool = False
    unreached_issuer: str = ""
    backup_namespace: str | None = None
    running_version: str | None = None
    running_store: ChartStore | None = None
    running_kubernetes: str | None = None
    inside: ClusterModel = field(default_factory=lambda: ClusterModel())
    find_key: Callable[..., str] | None = field(default=None, compare=False, repr=False)

    @property
    def gpus_path(self) -> str:
        """Key path of its GPUs, in `pools` if it has any, else `gpus`; from resources the URN.

        In a team's own stack it is that of the grant, and says in whose file.
        """
        if self.path == "kai-fleet:team":
            return f"kai-fleet:teamStacks.{self.name}.gpus in the platform's stack file"
        return at(self.path, "pools" if self.pools else "gpus")

    def key_path_of(self, *keys: str) -> str:
        """The key path of a key: in its own section, or for all teams if it is written there.

        From resources it is the URN. At least one of `keys` is needed; each may have dots.
        """
        steps = ".".join(keys).split(".")
        if self.find_key is None:
            return at(self.path, *steps)
        return self.find_key(*steps)

    @property
    def kubernetes(self) -> Maybe[str]:
        """Version of the Kubernetes in its vCluster: what its values name, else the default of its
        vCluster's version; "" if the table lacks that one.
        """
        written = kubernetes_of(self.chart_values)
        if written:
            return UNKNOWN if written is UNKNOWN else str(written)
        release = VCLUSTER.get(str(self.version or DEFAULT_VCLUSTER))
        return release.kubernetes if release is not None else ""

    @property
    def kai(self) -> tuple[Kai, ...]:
        """The KAI inside its vCluster; from resources there may be several."""
        return self.inside.kai

    @property
    def isolated(self) -> bool:
        """Whether the host is known to bound it by more than the quota of GPUs."""
        return self.level not in (None, "off")


@dataclass(frozen=True)
class DeclaredTeam(TeamModel):
    """A team of a stack file: what the doctor reads of it is known."""

    name: str
    node_pool: Mapping[str, str] = field(default_factory=dict)
    gpus: float | None = None
    namespace: str = ""


@dataclass(frozen=True)
class ClusterModel:
    """One API server, the host's or a vCluster's, with what is declared in it.

    From resources all fields have their defaults but `name`, `path`, `kai`, `queues`, `workloads`,
    `objects`, `teams` and `charts`, and `gpus` inside a vCluster.

    Args:
        name: HOST or the team's; from resources that of the provider, and for a queue tree without
            one the identity of its cluster, or the tree's name.
        path: Key of its section; from resources "" or, inside a vCluster, the team's URN.
        kai: Its KAI, one at most in a stack file.
        queues: Those that are declared, and those that a chart or another stack is known to make.
        objects: Other objects in namespaces. From a stack file only a GPU stack's release.
        teams: Teams that have a vCluster here. In a team's own stack the host has that team alone,
            and the queue that it is granted, without a bound.
        grants: Namespaces and bounds of teams with stacks of their own.
        platform_stack: Name of the stack that has the host, in a team's own stack; else "".
        charts: Charts of the host besides KAI and vCluster; from resources those of every release
            in a component of this program.
        registry_users: Names of accounts of registries, by their keys in the stack file.
        scheduled_by: ClusterModel whose KAI schedules the pods, if it is another one.
        team_queue: The only queue that pods may name, if `scheduled_by` is set.
        declared: The whole cluster comes from one stack file. Otherwise rules that need the whole
            picture stay silent.
        gpu_resource: Name of the resource that is a GPU.
        isolated: It is in the vCluster of an isolated team.
        gpus: Bound of all pods in it: the quota of the team whose vCluster this is. None on a host.
        pools: GPUs that KAI counts in each of several pools of that team, by shard.
        kubernetes: Its version; None or "" if it is not known, as of most hosts in an offline plan.
        unsaved: The stack file says nothing of backups of its teams, and the host is no sandbox.
        key: Key of the section of its KAI.
        queues_key: Key of the section of its queues.
    """

    name: str = ""
    path: str = ""
    kai: tuple[Kai, ...] = ()
    queues: tuple[DeclaredQueue, ...] = ()
    workloads: tuple[PodTemplate, ...] = ()
    objects: tuple[ManagedObject, ...] = ()
    teams: tuple[TeamModel, ...] = ()
    grants: tuple[TeamModel, ...] = ()
    platform_stack: str = ""
    charts: tuple[Chart, ...] = ()
    sources: KnownSources = field(default_factory=KnownSources)
    registry_users: Mapping[str, str] = field(default_factory=dict)
    scheduled_by: ClusterModel | None = None
    team_queue: str | None = None
    declared: bool = False
    gpu_resource: str = GPU_RESOURCES[0]
    isolated: bool = False
    gpus: Maybe[float] | None = None
    pools: Mapping[str, int] = field(default_factory=dict)
    kubernetes: str | None = None
    unsaved: bool = False
    key: str = "kai-fleet:kai"
    queues_key: str = "kai-fleet:queues"

    @property
    def with_insides(self) -> list[ClusterModel]:
        """This host, and then the vClusters in which a KAI, queue, workload or object is declared.

        Each vCluster is a copy of `inside` with `team_queue`, `isolated` and `kubernetes` of its
        team. In mode host it is `scheduled_by` this host; in other modes, and if the mode is
        UNKNOWN, by nobody.
        """
        schedulers: dict[Maybe[str], ClusterModel] = {"host": self}
        clusters = [self]
        for team in self.teams:
            inside = replace(
                team.inside,
                scheduled_by=schedulers.get(team.mode),
                team_queue=team.queue,
                isolated=team.isolated,
                kubernetes=known_or(team.kubernetes, None),
            )
            if inside.kai or inside.queues or inside.workloads or inside.objects:
                clusters.append(inside)
        return clusters

    @property
    def claims(self) -> tuple[TeamModel, ...]:
        """Its teams, and then those with stacks of their own."""
        return (*self.teams, *self.grants)

    @property
    def scheduling(self) -> ClusterModel:
        """The cluster whose KAI and queues schedule the pods here."""
        return self.scheduled_by or self

    @property
    def scheduler(self) -> Kai:
        """The first KAI; one without a version if none is declared."""
        return self.kai[0] if self.kai else Kai(None)

    @cached_property
    def tree(self) -> QueueIndex:
        """Its queues, indexed by name and parent."""
        return QueueIndex(self.queues)

    @cached_property
    def queue_specs(self) -> Mapping[str, Mapping[str, Any]]:
        """The `spec` of each Queue object by name.

        Left out are queues with an unknown name or spec, and with an empty spec, as those have that
        a chart or another stack declares. Of several with one name the last counts.
        """
        return {
            queue.name: queue.spec
            for queue in self.queues
            if isinstance(queue.name, str) and isinstance(queue.spec, Mapping) and queue.spec
        }


@dataclass(frozen=True)
class DeclaredHost(ClusterModel):
    """The host of a stack file."""

    teams: tuple[DeclaredTeam, ...] = ()
    grants: tuple[DeclaredTeam, ...] = ()
