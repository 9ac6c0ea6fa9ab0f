"""Declared Pulumi resources of any program, read as clusters. Paths are URNs.

Each `kubernetes` provider is a cluster; the one with the name of a vCluster is the inside of it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kai_fleet.names import COMMAND, IDENTITY, QUEUES
from kai_fleet.urns import read_urn
from kai_fleet.values import UNKNOWN, Maybe, get, known_or, number, pairs, text
from kai_fleet_policies.adapters.releases import KAI_CHART, VCLUSTER_CHART, HelmRelease
from kai_fleet_policies.adapters.resource import DeclaredResource, Properties
from kai_fleet_policies.model.cluster import ClusterModel, TeamModel
from kai_fleet_policies.model.installed import Chart, Kai, ManagedObject
from kai_fleet_policies.model.pods import PodTemplate, workloads
from kai_fleet_policies.model.queues import UNLIMITED_SHARES, DeclaredQueue
from kai_usage import mig
from kai_usage.keys import GPU_RESOURCES

PROVIDER = "pulumi:providers:kubernetes"
QUEUE = "kubernetes:scheduling.run.ai/v2:Queue"


@dataclass
class _Contents:
    """What the resources of one cluster are, read one after the other.

    Args:
        name: Name of the cluster by `_cluster_name`: mostly that of the provider.
        charts: Those of releases in components of this program; of others none.
        quotas: GPUs and MIG slices of quotas, by namespace and by resource without `requests.`. A
            namespace or a number may be UNKNOWN.
        shards: Names of SchedulingShards, which every KAI in it gets, as `topologies`; without a
            KAI they count for nothing.
        made_queues: Queues that are no resources here: a chart or another stack makes them.
    """

    name: str
    kai: list[Kai] = field(default_factory=list)
    queues: list[DeclaredQueue] = field(default_factory=list)
    workloads: list[PodTemplate] = field(default_factory=list)
    objects: list[ManagedObject] = field(default_factory=list)
    teams: list[TeamModel] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    quotas: dict[Maybe[str], dict[str, Maybe[float]]] = field(default_factory=dict)
    shards: list[str] = field(default_factory=list)
    topologies: list[str] = field(default_factory=list)
    made_queues: list[DeclaredQueue] = field(default_factory=list)

    def cluster(self) -> ClusterModel:
        """The cluster that they declare; a declared queue counts before one that is made.

        Of several that are made with one name the last counts. The quotas are left out. Its
        topologies have names only, and no labels of levels.
        """
        declared = {queue.name for queue in self.queues}
        made = {queue.name: queue for queue in self.made_queues if queue.name not in declared}
        kai = tuple(
            replace(kai, shards=tuple(self.shards), topologies=dict.fromkeys(self.topologies, ()))
            for kai in self.kai
        )
        return ClusterModel(
            self.name,
            kai=kai,
            queues=(*self.queues, *made.values()),
            workloads=tuple(self.workloads),
            objects=tuple(self.objects),
            teams=tuple(self.teams),
            charts=tuple(self.charts),
        )


def clusters(resources: Iterable[DeclaredResource]) -> list[ClusterModel]:
    """One cluster per provider that has an object or a queue tree, and per other cluster of a tree.

    Resources of `kubernetes` and queue trees count; providers and commands only tell which cluster
    a tree is in. Each host, which is a cluster with a vCluster's release, is followed by those of
    its vClusters that `with_insides` has; others of its vClusters are left out. Then come all other
    clusters, by their first resource. Objects without a provider are in the cluster `default`; a
    tree of no provider's cluster is in one named by that cluster's identity, or by the tree.
    """
    declared = list(resources)
    identities = _identities(declared)
    by_name = dict[str, _Contents]()
    for resource in declared:
        if resource.type != QUEUES and not resource.type.startswith("kubernetes:"):
            continue
        name = _cluster_name(resource, identities)
        contents = by_name.setdefault(name, _Contents(name))
        read = _READERS.get(resource.type, _read_object)
        read(contents, resource)
    result = list[ClusterModel]()
    inside = set[str]()
    for contents in by_name.values():
        if contents.teams:
            teams = tuple(_with_inside(team, contents, by_name) for team in contents.teams)
            result += replace(contents.cluster(), teams=teams).with_insides
            inside.update(str(team.name) for team in teams)
    for contents in by_name.values():
        if not contents.teams and contents.name not in inside:
            result.append(contents.cluster())
    return result


def _identities(resources: list[DeclaredResource]) -> dict[str, object]:
    """The identity of the cluster of each provider, by the provider's name.

    For a vCluster that is the first trigger of the command that stands for its identity, else the
    provider's `clusterIdentifier`. UNKNOWN if only the update knows it, None if there is none.
    """
    identities = {
        provider.name: provider.props.get("clusterIdentifier")
        for provider in resources
        if provider.type == PROVIDER
    }
    for command in resources:
        if command.type != COMMAND or not command.name.endswith(IDENTITY):
            continue
        name = command.name.removesuffix(IDENTITY)
        if name not in identities:
            continue
        triggers = command.props.get("triggers")
        if isinstance(triggers, list) and triggers:
            identities[name] = triggers[0]
    return identities


def _cluster_name(resource: DeclaredResource, identities: Mapping[str, object]) -> str:
    """The name of the provider of a resource; `default` for none, and for the engine's default one.

    For a queue tree it is the provider of the cluster with the tree's identity. The identity of a
    vCluster is not known before the update: its tree has its name. Without such a provider it is
    the identity itself, or the tree's name.
    """
    if resource.type != QUEUES:
        name = read_urn(resource.provider).name
        is_default = not name or name.startswith("default_")
        return "default" if is_default else name
    tree = str(resource.props.get("tree"))
    cluster = resource.props.get("cluster")
    if not isinstance(cluster, str):
        cluster = tree
    for name, identity in identities.items():
        if identity == cluster:
            return name
    for name in (tree.removesuffix("-queues"), tree):
        if name in identities:
            return name
    return cluster


def _with_inside(team: TeamModel, host: _Contents, by_name: Mapping[str, _Contents]) -> TeamModel:
    """A team with the GPUs of its namespace's quota, and with what is inside its vCluster.

    In an UNKNOWN namespace it has the quotas of all UNKNOWN namespaces. GPUs are None without a
    quota of whole GPUs, and UNKNOWN, with no slices, if one of the quota's amounts is. Of several
    resources of whole GPUs the largest amount counts, and slices are added to it. A KAI inside
    makes its mode virtual. `by_name` has all clusters.
    """
    bounds = host.quotas.get(team.namespace, {})
    quota = {name: count for name, count in bounds.items() if count is not UNKNOWN}
    slices = {name: int(count) for name, count in mig.slices(quota).items()}
    whole = [quota[name] for name in GPU_RESOURCES if name in quota]
    gpus: Maybe[float] | None = None
    if len(quota) < len(bounds):
        gpus = UNKNOWN
        slices = {}
    elif whole:
        gpus = max(whole) + mig.gpus_of(slices)
    contents = by_name.get(str(team.name))
    if contents is None or contents.teams:  # another host with the vCluster's name is not inside
        contents = _Contents(str(team.name))
    inside = replace(contents.cluster(), path=team.path, gpus=gpus)
    # A KAI inside schedules there, whatever the values of the chart say.
    mode = "virtual" if inside.kai else team.mode
    return replace(
        team,
        inside=inside,
        gpus=gpus,
        slices=slices,
        mode=mode,
    )


def _read_object(contents: _Contents, resource: DeclaredResource) -> None:
    """Read pods of any kind, and any other object that has a namespace in its metadata.

    Not a List, and not a Patch, which has only some fields of its object. Pods without a namespace
    get the provider's; an object with pods is no other object besides.
    """
    kind = resource.type.rpartition(":")[2]
    if kind.endswith(("List", "Patch")):
        return
    name = resource.object_name
    pods = workloads(kind, resource.props, name, resource.urn)
    for pod in pods:
        # In a preview the provider may not have filled in its namespace yet.
        namespace = pod.namespace or resource.default_namespace
        contents.workloads.append(replace(pod, namespace=namespace))
    if not pods and resource.namespace is not None:
        contents.objects.append(ManagedObject(kind, name, resource.namespace, path=resource.urn))


def _read_quota(contents: _Contents, resource: DeclaredResource) -> None:
    """Read a ResourceQuota: its GPUs and MIG slices, and itself as any other object.

    Of several quotas of one resource in a namespace the last one counts. Only `hard` is read, with
    names with or without `requests.`. Left out are an amount that is no number, and all of a quota
    whose metadata has no namespace, or whose `hard` is UNKNOWN as a whole.
    """
    for key, amount in pairs(get(resource.props.get("spec"), "hard")).items():
        name = str(key).removeprefix("requests.")
        count = number(amount)
        is_gpu = name in GPU_RESOURCES or name.startswith(mig.PREFIX)
        if is_gpu and count is not None and resource.namespace is not None:
            contents.quotas.setdefault(resource.namespace, {})[name] = count
    _read_object(contents, resource)


def _read_queue(contents: _Contents, resource: DeclaredResource) -> None:
    """Read a Queue; the namespaces `default` and the provider's count as filled in by that."""
    # A provider that does not know the CRD yet fills in a namespace: the user did not write that.
    is_filled_in = resource.namespace in ("default", resource.default_namespace)
    queue = DeclaredQueue.of(
        resource.object_name,
        resource.props.get("spec"),
        path=resource.urn,
        namespace=None if is_filled_in else resource.namespace,
    )
    contents.queues.append(queue)


def _read_tree(contents: _Contents, resource: DeclaredResource) -> None:
    """Read a queue tree: its queues, and its parent, an unlimited queue of another stack.

    A parent that is UNKNOWN is left out.
    """
    for name, props in queues_of(resource.props):
        _read_queue(contents, replace(resource, name=name, props=props))
    parent = text(resource.props.get("parent"))
    if isinstance(parent, str):  # another stack has it, and has judged what may be below it
        queue = DeclaredQueue(parent, None, UNLIMITED_SHARES, path=resource.urn)
        contents.made_queues.append(queue)


def queues_of(props: Properties) -> Iterator[tuple[str, dict[str, object]]]:
    """The queues of a resource of type QUEUES by name, each with the inputs that a resource of its
    own would have. Yields nothing if they are not known yet.
    """
    for name, spec in pairs(props.get("queues")).items():
        metadata: dict[str, object] = {"name": name}
        labels = get(props, "labels", str(name))
        if labels is not None:
            metadata["labels"] = labels
        yield (
            str(name),
            {
                "apiVersion": "scheduling.run.ai/v2",
                "kind": "Queue",
                "metadata": metadata,
                "spec": spec,
            },
        )


def _read_shard(contents: _Contents, resource: DeclaredResource) -> None:
    """Read a SchedulingShard by its name; by that of the resource if its own is UNKNOWN."""
    contents.shards.append(known_or(resource.object_name, resource.name))


def _read_topology(contents: _Contents, resource: DeclaredResource) -> None:
    """Read a Topology by its name; by that of the resource if its own is UNKNOWN."""
    contents.topologies.append(known_or(resource.object_name, resource.name))


def _read_release(contents: _Contents, resource: DeclaredResource) -> None:
    """Read a Helm release: a KAI, a vCluster, or any other chart as an object.

    One in a component of this program is in `charts`, too. One of an UNKNOWN chart is an object, if
    it is in no component that says which chart it is.
    """
    release = HelmRelease(resource)
    if release.component:
        contents.charts.append(release.chart_of_component())
    if release.chart == KAI_CHART:
        contents.kai.append(release.kai())
        contents.made_queues += release.queues_of_kai()
    elif release.chart == VCLUSTER_CHART:
        contents.teams.append(release.team())
    else:
        contents.objects.append(release.managed_object())


_READERS = {
    "kubernetes:helm.sh/v3:Release": _read_release,
    "kubernetes:helm.sh/v4:Chart": _read_release,
    QUEUE: _read_queue,
    QUEUES: _read_tree,
    "kubernetes:kai.scheduler/v1:SchedulingShard": _read_shard,
    "kubernetes:kai.scheduler/v1alpha1:Topology": _read_topology,
    "kubernetes:core/v1:ResourceQuota": _read_quota,
}
