"""Declared Pulumi resources of any program, read as clusters. Paths are URNs.

Each `kubernetes` provider is a cluster; the one with the name of a vCluster is the inside of it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from kai_fleet.names import COMMAND, IDENTITY, QUEUES
from kai_fleet.releases import GPU_CHARTS, has_sharing_modes, keys, mig, version_key
from kai_fleet.releases.charts import named
from kai_fleet.releases.sharing import SharingMode, mode_in, mode_of_switch
from kai_fleet.urns import read_urn
from kai_fleet.values import (
    UNKNOWN,
    Maybe,
    flag,
    get,
    known_or,
    mapping,
    number,
    pairs,
    text,
    value_at,
)
from kai_fleet.vcluster_values import store_of
from kai_fleet_policies.model.cluster import Chart, Cluster, Kai, ManagedObject, Team
from kai_fleet_policies.model.device_sharing import device_sharing
from kai_fleet_policies.model.pods import PodTemplate, workloads
from kai_fleet_policies.model.queues import RESOURCES, DeclaredQueue, QueueShare

PROVIDER: Final = "pulumi:providers:kubernetes"
QUEUE: Final = "kubernetes:scheduling.run.ai/v2:Queue"
Properties: TypeAlias = Mapping[str, object]

_COMPONENT: Final = "kai-fleet:index:"
_UNLIMITED: Final = {resource: QueueShare(quota=-1.0, limit=-1.0) for resource in RESOURCES}
# The charts that this program's components install; the other components install none.
_CHARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "VirtualCluster": ("vcluster",),
    "KaiScheduler": ("kai-scheduler",),
    "GpuStack": tuple(sorted(GPU_CHARTS)),
}
_IMAGE: Final = "controlPlane.statefulSet.image.repository"
# With one of them a vCluster has a scheduler inside.
_SCHEDULER_SWITCHES: Final = (
    "controlPlane.distro.k8s.scheduler.enabled",
    "controlPlane.advanced.virtualScheduler.enabled",
)


@dataclass(frozen=True)
class Declared:
    """One resource.

    Args:
        props: Its inputs as plain values; UNKNOWN stands for what only the update knows.
        provider: URN of its provider, or "".
        default_namespace: Namespace that the provider fills in.
    """

    urn: str
    type: str
    name: str
    props: Properties
    provider: str = ""
    default_namespace: str = "default"

    @property
    def object_name(self) -> Maybe[str]:
        """Its name in Kubernetes."""
        name = text(get(self.props, "metadata", "name"))
        return name or self.name

    @property
    def namespace(self) -> Maybe[str] | None:
        """The namespace that its metadata has; None if there is none."""
        return text(get(self.props, "metadata", "namespace"))


@dataclass
class _Contents:
    """What the resources of one provider are, read one after the other.

    Args:
        name: Name of the provider, which is that of the cluster.
        quotas: GPUs and MIG slices of quotas, by namespace and resource.
        shards: Names of SchedulingShards, which belong to its KAI, as `topologies` do.
        made_queues: Queues that are no resources here: a chart or another stack makes them.
    """

    name: str
    kai: list[Kai] = field(default_factory=list)
    queues: list[DeclaredQueue] = field(default_factory=list)
    workloads: list[PodTemplate] = field(default_factory=list)
    objects: list[ManagedObject] = field(default_factory=list)
    teams: list[Team] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    quotas: dict[Maybe[str], dict[str, Maybe[float]]] = field(default_factory=dict)
    shards: list[str] = field(default_factory=list)
    topologies: list[str] = field(default_factory=list)
    made_queues: list[DeclaredQueue] = field(default_factory=list)

    def cluster(self) -> Cluster:
        """The cluster that they declare; a declared queue counts before one that is made."""
        declared = {queue.name for queue in self.queues}
        made = {queue.name: queue for queue in self.made_queues if queue.name not in declared}
        kai = tuple(
            replace(kai, shards=tuple(self.shards), topologies=dict.fromkeys(self.topologies, ()))
            for kai in self.kai
        )
        return Cluster(
            self.name,
            kai=kai,
            queues=(*self.queues, *made.values()),
            workloads=tuple(self.workloads),
            objects=tuple(self.objects),
            teams=tuple(self.teams),
            charts=tuple(self.charts),
        )


def clusters(resources: Iterable[Declared]) -> list[Cluster]:
    """One cluster per provider: hosts with the vClusters inside them, and then all others."""
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
    result = list[Cluster]()
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


def _identities(resources: Iterable[Declared]) -> dict[str, object]:
    """The identity of the cluster of each provider, by the provider's name.

    For a vCluster that is the first trigger of the command that stands for its identity.
    """
    identities = dict[str, object]()
    for provider in resources:
        if provider.type == PROVIDER:
            identities[provider.name] = provider.props.get("clusterIdentifier")
    for command in resources:
        if command.type != COMMAND or not command.name.endswith(IDENTITY):
            continue
        name = command.name.removesuffix(IDENTITY)
        triggers = command.props.get("triggers")
        if name in identities and isinstance(triggers, list) and triggers:
            identities[name] = triggers[0]
    return identities


def _cluster_name(resource: Declared, identities: Mapping[str, object]) -> str:
    """The name of the provider of a resource; `default` for none, and for the engine's default one.

    For a queue tree it is the provider of the cluster with the tree's identity. The identity of a
    vCluster is not known before the update: its tree has its name.
    """
    if resource.type != QUEUES:
        name = read_urn(resource.provider).name
        return "default" if not name or name.startswith("default_") else name
    tree = str(resource.props.get("tree"))
    cluster = resource.props.get("cluster")
    if not isinstance(cluster, str):
        cluster = tree
    for name, identity in identities.items():
        if identity == cluster:
            return name
    for name in (tree, tree.removesuffix("-queues")):
        if name in identities:
            return name
    return cluster


def _with_inside(team: Team, host: _Contents, by_name: Mapping[str, _Contents]) -> Team:
    """A team with the GPUs of its namespace's quota, and with what is inside its vCluster."""
    bounds = host.quotas.get(team.namespace, {})
    quota = {name: count for name, count in bounds.items() if count is not UNKNOWN}
    slices = {name: int(count) for name, count in mig.slices(quota).items()}
    whole = [quota[name] for name in keys.GPU_RESOURCES if name in quota]
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


def _read_object(contents: _Contents, resource: Declared) -> None:
    """Read pods of any kind, and any other object that has a namespace.

    Not a List, and not a Patch, which has only some fields of its object.
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
        thing = ManagedObject(kind, name, resource.namespace, path=resource.urn)
        contents.objects.append(thing)


def _read_quota(contents: _Contents, resource: Declared) -> None:
    bounds = pairs(get(resource.props.get("spec"), "hard"))
    for key, amount in bounds.items():
        name = str(key).removeprefix("requests.")
        count = number(amount)
        is_gpu = name in keys.GPU_RESOURCES or name.startswith(mig.PREFIX)
        if is_gpu and count is not None and resource.namespace is not None:
            contents.quotas.setdefault(resource.namespace, {})[name] = count
    _read_object(contents, resource)


def _read_queue(contents: _Contents, resource: Declared) -> None:
    # A provider that does not know the CRD yet fills in a namespace: the user did not write that.
    is_filled_in = resource.namespace in ("default", resource.default_namespace)
    queue = DeclaredQueue.of(
        resource.object_name,
        resource.props.get("spec"),
        path=resource.urn,
        namespace=None if is_filled_in else resource.namespace,
    )
    contents.queues.append(queue)


def _read_tree(contents: _Contents, resource: Declared) -> None:
    for name, props in queues_of(resource.props):
        _read_queue(contents, replace(resource, name=name, props=props))
    parent = text(resource.props.get("parent"))
    if isinstance(parent, str):  # another stack has it, and has judged what may be below it
        queue = DeclaredQueue(parent, None, _UNLIMITED, path=resource.urn)
        contents.made_queues.append(queue)


def queues_of(props: Properties) -> Iterator[tuple[str, dict[str, object]]]:
    """The queues of a resource of type QUEUES by name, each with the inputs that a resource of its
    own would have. None if they are not known yet.
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


def _read_shard(contents: _Contents, resource: Declared) -> None:
    contents.shards.append(known_or(resource.object_name, resource.name))


def _read_topology(contents: _Contents, resource: Declared) -> None:
    contents.topologies.append(known_or(resource.object_name, resource.name))


def _read_release(contents: _Contents, resource: Declared) -> None:
    """Read a Helm release: a KAI, a vCluster, or any other chart as an object."""
    props = resource.props
    # Only the engine reads files of values.
    values = UNKNOWN if props.get("valueYamlFiles") else props.get("values")
    chart, version = chart_of(props)
    component = _component(resource.urn)
    if component:
        names = _CHARTS.get(component, ())
        contents.charts.append(_chart_in(component, names, resource))
        if len(names) == 1:
            chart = names[0]
    namespace = text(props.get("namespace")) or resource.default_namespace
    name = text(props.get("name")) or resource.name
    # What this program declares was judged with its stack file, where levels and sources are known.
    judged = {} if component else mapping(values)
    if chart == "kai-scheduler":
        kai = Kai(
            version,
            sharing=_sharing(version, values),
            values=judged,
            untested=component == "KaiScheduler",
            namespace=namespace,
            path=resource.urn,
        )
        contents.kai.append(kai)
        contents.made_queues += _queues_of_chart(version, values, resource.urn)
    elif chart == "vcluster":
        team = _vcluster(version, values, name, of_component=component == "VirtualCluster")
        team = replace(team, values=judged, namespace=namespace, path=resource.urn)
        contents.teams.append(team)
    else:
        has_plugin = chart in GPU_CHARTS or component == "GpuStack"
        release = ManagedObject(
            "Release",
            name,
            namespace,
            path=resource.urn,
            sharing=device_sharing(values) if has_plugin else None,
        )
        contents.objects.append(release)


def _chart_in(component: str, names: tuple[str, ...], resource: Declared) -> Chart:
    """The chart of a release in a component of this program, where only `names` are allowed."""
    return Chart(
        text(resource.props.get("chart")) or "",
        version=text(resource.props.get("version")),
        subject=f"release {resource.name} in component {component}",
        path=resource.urn,
        names=names,
    )


def _queues_of_chart(
    version: Maybe[str] | None, values: object, urn: str
) -> Iterator[DeclaredQueue]:
    """The two queues that KAI's charts from v0.10 make at their first install, if not switched off.

    Their quota of 0 is not the user's to change: unlimited shares keep rules silent about it.
    """
    makes_queues = flag(value_at(values, "defaultQueue.createDefaultQueue"), unset=True) is True
    if not makes_queues or not isinstance(version, str):
        return
    if version_key(version) >= (0, 10):
        yield DeclaredQueue(keys.CHART_PARENT, None, _UNLIMITED, path=urn)
        yield DeclaredQueue(keys.CHART_LEAF, keys.CHART_PARENT, _UNLIMITED, path=urn)


_READERS: Final[Mapping[str, Callable[[_Contents, Declared], None]]] = {
    "kubernetes:helm.sh/v3:Release": _read_release,
    "kubernetes:helm.sh/v4:Chart": _read_release,
    QUEUE: _read_queue,
    QUEUES: _read_tree,
    "kubernetes:kai.scheduler/v1:SchedulingShard": _read_shard,
    "kubernetes:kai.scheduler/v1alpha1:Topology": _read_topology,
    "kubernetes:core/v1:ResourceQuota": _read_quota,
}


def _component(urn: str) -> str:
    """The nearest component of this program around a resource; "" for none."""
    for kind in reversed(read_urn(urn).above):
        if kind.startswith(_COMPONENT):
            return kind.removeprefix(_COMPONENT)
    return ""


def chart_of(props: Properties) -> tuple[Maybe[str], Maybe[str] | None]:
    """The chart and the version of a release; the version is None if the newest one is installed.

    `chart` may be a name, an OCI reference, a package or a path. The version of a package counts
    before `version`, that of an OCI reference after it. Both are UNKNOWN if `chart` is.
    """
    chart = text(props.get("chart"))
    version = text(props.get("version"))
    if chart is UNKNOWN:
        return UNKNOWN, UNKNOWN
    name, version_in_name = named(chart or "")
    is_package = version_in_name is not None and not str(chart).startswith("oci://")
    if is_package:
        return name, version_in_name
    return name, version or version_in_name


def _sharing(version: Maybe[str] | None, values: object) -> Maybe[SharingMode]:
    """How pods share GPUs; UNKNOWN if the version or the values leave it open.

    Through v0.17 only if it is switched on, later unless it is switched off. A mode counts before
    the older switch.
    """
    default = has_sharing_modes(version) if isinstance(version, str) else UNKNOWN
    switch = flag(value_at(values, "global.gpuSharing"), unset=default)
    if isinstance(version, str) and (default or switch):
        mode: SharingMode | None = mode_in(version, values)
        if mode:
            return mode
    return UNKNOWN if switch is UNKNOWN else mode_of_switch(switch)


def _vcluster(
    version: Maybe[str] | None,
    values: object,
    name: Maybe[str],
    *,
    of_component: bool,
) -> Team:
    """The team of a vCluster, by the values of its chart."""
    if isinstance(version, str) and version:
        version = f"v{version.removeprefix('v')}"  # the chart's versions have no v
    return Team(
        name,
        version=version,
        node_pool=mapping(value_at(values, "sync.fromHost.nodes.selector.labels")),
        mode=_mode(values),
        chart_values=mapping(values),
        store=store_of(values),
        untested=of_component,
        # Without a licence the component writes the open source image.
        licensed=of_component and value_at(values, _IMAGE) is None,
    )


def _mode(values: object) -> Maybe[str]:
    """The mode that values of vCluster's chart mean; UNKNOWN if one that decides is.

    A scheduler inside is mode virtual. Pods without owners are what the host's KAI needs.
    """
    schedulers = [flag(value_at(values, key), unset=False) for key in _SCHEDULER_SWITCHES]
    sets_owner = flag(value_at(values, "experimental.syncSettings.setOwner"), unset=True)
    if True in schedulers:
        return "virtual"
    if UNKNOWN in (*schedulers, sets_owner):
        return UNKNOWN
    return "default" if sets_owner else "host"
