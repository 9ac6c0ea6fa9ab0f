"""Declared Pulumi resources of any program, read as clusters.

A cluster is a `kubernetes` provider; the inside of a vCluster is the provider with its name.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final

from kai_fleet.names import COMMAND, IDENTITY, QUEUES
from kai_fleet.releases import GPU_CHARTS, has_sharing_modes, keys, mig, version_key
from kai_fleet.releases.charts import named
from kai_fleet.releases.sharing import mode_in, mode_of_switch
from kai_fleet.urns import read_urn
from kai_fleet.values import UNKNOWN, flag, get, mapping, number, pairs, text, value_at
from kai_fleet.vcluster_values import store_of
from kai_fleet_policies.model.cluster import Chart, Cluster, Kai, ManagedObject, Team
from kai_fleet_policies.model.device_sharing import device_sharing
from kai_fleet_policies.model.pods import workloads
from kai_fleet_policies.model.queues import RESOURCES, DeclaredQueue, QueueShare
from kai_fleet_policies.rules.queues import CHART_PARENT

PROVIDER: Final = "pulumi:providers:kubernetes"
QUEUE: Final = "kubernetes:scheduling.run.ai/v2:Queue"
_OWN: Final = "kai-fleet:index:"
_UNLIMITED: Final = {r: QueueShare(quota=-1.0, limit=-1.0) for r in RESOURCES}
# The charts of this program's components; the others have none.
_CHARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "VirtualCluster": ("vcluster",),
    "KaiScheduler": ("kai-scheduler",),
    "GpuStack": tuple(sorted(GPU_CHARTS)),
}
_IMAGE: Final = "controlPlane.statefulSet.image.repository"
_VIRTUAL: Final = (
    "controlPlane.distro.k8s.scheduler.enabled",
    "controlPlane.advanced.virtualScheduler.enabled",
)


@dataclass(frozen=True)
class Declared:
    """One resource: its properties are plain values, UNKNOWN where the update will tell.

    `provider` is a URN or "", `default_namespace` what that provider fills in.
    """

    urn: str
    type: str
    name: str
    props: Mapping[str, Any]
    provider: str = ""
    default_namespace: str = "default"

    @property
    def object_name(self) -> str:
        """Its name in Kubernetes."""
        return text(get(self.props.get("metadata"), "name")) or self.name

    @property
    def namespace(self) -> str | None:
        """The namespace that is written in it."""
        return text(get(self.props.get("metadata"), "namespace"))


@dataclass
class _Found:
    """What one provider's resources add up to: `parts` by the fields of Cluster, `features` by
    those of Kai, `quotas` of GPUs by namespace, and queues that a chart or another stack `made`.
    """

    name: str
    parts: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    quotas: defaultdict[str, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))
    features: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    created: list[DeclaredQueue] = field(default_factory=list)

    def cluster(self, **more: Any) -> Cluster:
        """The cluster that they declare."""
        names = {queue.name for queue in self.parts["queues"]}
        created = {queue.name: queue for queue in self.created if queue.name not in names}
        parts: dict[str, Any] = {key: tuple(found) for key, found in self.parts.items()}
        parts["queues"] += tuple(created.values())
        parts["kai"] = tuple(replace(kai, **self.features) for kai in self.parts["kai"])
        return Cluster(self.name, **(parts | more))


def clusters(resources: Iterable[Declared]) -> list[Cluster]:
    """One cluster per provider, hosts before the vClusters inside them."""
    every, found = list(resources), dict[str, _Found]()
    identities = _identities(every)
    for each in every:
        if each.type == QUEUES or each.type.startswith("kubernetes:"):
            name = _place(each, identities)
            part = found.setdefault(name, _Found(name))
            _READERS.get(each.type, _read_object)(part, each)
    hosts = [part for part in found.values() if part.parts["teams"]]
    inside = {str(team.name) for host in hosts for team in host.parts["teams"]}
    result = list[Cluster]()
    for host in hosts:
        teams = tuple(_team(team, host, found) for team in host.parts["teams"])
        result += host.cluster(teams=teams).with_insides
    rest = (part for part in found.values() if part not in hosts and part.name not in inside)
    return [*result, *(part.cluster() for part in rest)]


def _identities(resources: Iterable[Declared]) -> dict[str, Any]:
    """The identity of each provider's cluster; of a vCluster's that of what stands for it."""
    found = {p.name: p.props.get("clusterIdentifier") for p in resources if p.type == PROVIDER}
    for each in resources:
        name = each.name.removesuffix(IDENTITY)
        triggers = each.props.get("triggers")
        is_identity = each.type == COMMAND and each.name.endswith(IDENTITY) and name in found
        if is_identity and isinstance(triggers, list) and triggers:
            found[name] = triggers[0]
    return found


def _place(resource: Declared, identities: Mapping[str, Any]) -> str:
    """The name of a resource's provider; `default` for none and for the default one of any version.

    Of a tree that with the cluster's identity. A vCluster's is not known before the update; its
    tree is called after it.
    """
    if resource.type != QUEUES:
        name = read_urn(resource.provider).name
        return "default" if not name or name.startswith("default_") else name
    cluster, tree = resource.props.get("cluster"), str(resource.props.get("tree"))
    if not isinstance(cluster, str):
        cluster = tree
    same = (name for name, identity in identities.items() if identity == cluster)
    named = (name for name in (tree, tree.removesuffix("-queues")) if name in identities)
    return next(chain(same, named), cluster)


def _team(team: Team, host: _Found, found: Mapping[str, _Found]) -> Team:
    """A team with the GPUs of its namespace's quota, and what is inside its vCluster."""
    hard = host.quotas.get(team.namespace, {})
    gpus: Any = UNKNOWN if UNKNOWN in hard.values() else None
    whole = [hard[name] for name in keys.GPU_RESOURCES if name in hard]
    slices = {} if gpus is UNKNOWN else {n: int(count) for n, count in mig.slices(hard).items()}
    if whole and gpus is not UNKNOWN:
        gpus = max(whole) + mig.gpus_of(slices)
    inner = found.get(str(team.name))
    inner = _Found(str(team.name)) if inner is None or inner.parts["teams"] else inner
    inside = inner.cluster(path=team.path, gpus=gpus)
    # A KAI inside schedules there, whatever the values say.
    mode = "virtual" if inside.kai else team.mode
    return replace(team, inside=inside, gpus=gpus, slices=slices, mode=mode)


def _read_object(found: _Found, resource: Declared) -> None:
    """Pods of any kind; other objects by their namespaces. A patch has a part of them only."""
    kind, name = resource.type.rpartition(":")[2], resource.object_name
    if kind.endswith(("List", "Patch")):
        return
    if pods := workloads(kind, resource.props, name, resource.urn):
        # In a preview the provider may not have written its namespace on them yet.
        default = resource.default_namespace
        found.parts["workloads"] += (
            pod if pod.namespace else replace(pod, namespace=default) for pod in pods
        )
    elif resource.namespace is not None:
        thing = ManagedObject(kind, name, resource.namespace, path=resource.urn)
        found.parts["objects"].append(thing)


def _read_quota(found: _Found, resource: Declared) -> None:
    for key, amount in pairs(get(resource.props.get("spec"), "hard")).items():
        gpu, count = str(key).removeprefix("requests."), number(amount)
        counts = gpu in keys.GPU_RESOURCES or gpu.startswith(mig.PREFIX)
        if counts and count is not None and resource.namespace is not None:
            found.quotas[resource.namespace][gpu] = count
    _read_object(found, resource)


def _read_queue(found: _Found, resource: Declared) -> None:
    # The namespace that a provider fills in, before it knows the CRD, is not the user's.
    filled_in = resource.namespace in ("default", resource.default_namespace)
    namespace = None if filled_in else resource.namespace
    spec, name = resource.props.get("spec"), resource.object_name
    queue = DeclaredQueue.of(name, spec, path=resource.urn, namespace=namespace)
    found.parts["queues"].append(queue)


def _read_tree(found: _Found, resource: Declared) -> None:
    for name, props in queues_of(resource.props):
        _read_queue(found, replace(resource, name=name, props=props))
    parent = text(resource.props.get("parent"))
    if isinstance(parent, str):  # another stack has it, and has been asked about what is below it
        found.created.append(DeclaredQueue(parent, None, _UNLIMITED, path=resource.urn))


def queues_of(props: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The queues of a resource of type QUEUES: each with its name, and the properties that a
    resource of its own would have. None where they are not known yet.
    """
    for name, spec in pairs(props.get("queues")).items():
        labels = get(props, "labels", str(name))
        metadata = {"name": name} | ({} if labels is None else {"labels": labels})
        kind = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue"}
        yield str(name), {**kind, "metadata": metadata, "spec": spec}


def _read_feature(key: str) -> Callable[[_Found, Declared], None]:
    return lambda found, resource: found.features[key].append(resource.object_name)


def _read_release(found: _Found, resource: Declared) -> None:
    props, urn, parts = resource.props, resource.urn, found.parts
    # The engine reads the files.
    values = UNKNOWN if props.get("valueYamlFiles") else props.get("values")
    chart, version = chart_of(props)
    name = text(props.get("name")) or resource.name
    if component := _component(urn):
        names = _CHARTS.get(component, ())
        own: dict[str, Any] = {"chart": text(props.get("chart")) or ""}
        own["version"] = text(props.get("version"))
        subject = f"release {resource.name} in component {component}"
        parts["charts"].append(Chart(**own, subject=subject, path=urn, names=names))
        chart = names[0] if len(names) == 1 else chart
    space = text(props.get("namespace")) or resource.default_namespace
    place: dict[str, Any] = {"namespace": space, "path": urn}
    # What the program declares has passed its own gate, which knows the stack's sources and levels.
    written = {} if component else mapping(values)
    if chart == "kai-scheduler":
        by_gate = component == "KaiScheduler"
        kai = Kai(version, _sharing(version, values), written, untested=by_gate, **place)
        parts["kai"].append(kai)
        # The two queues that charts from v0.10 make at their first install, unless turned off.
        makes = flag(value_at(values, "defaultQueue.createDefaultQueue"), unset=True) is True
        if makes and isinstance(version, str) and version_key(version) >= (0, 10):
            # Their quota of 0 is the chart's, not the reader's to change: unlimited keeps rules
            # silent.
            for queue, parent in ((CHART_PARENT, None), ("default-queue", CHART_PARENT)):
                found.created.append(DeclaredQueue(queue, parent, _UNLIMITED, path=urn))
    elif chart == "vcluster":
        team = _vcluster(version, values, name, component == "VirtualCluster")
        parts["teams"].append(replace(team, values=written, **place))
    else:
        sharing = device_sharing(values) if chart in GPU_CHARTS or component == "GpuStack" else None
        parts["objects"].append(ManagedObject("Release", name, sharing=sharing, **place))


_READERS: Final[Mapping[str, Callable[[_Found, Declared], None]]] = {
    "kubernetes:helm.sh/v3:Release": _read_release,
    "kubernetes:helm.sh/v4:Chart": _read_release,
    QUEUE: _read_queue,
    QUEUES: _read_tree,
    "kubernetes:kai.scheduler/v1:SchedulingShard": _read_feature("shards"),
    "kubernetes:kai.scheduler/v1alpha1:Topology": _read_feature("topologies"),
    "kubernetes:core/v1:ResourceQuota": _read_quota,
}


def _component(urn: str) -> str:
    """The nearest component of this program around a resource; "" for none."""
    above = read_urn(urn).above
    names = (kind.removeprefix(_OWN) for kind in reversed(above) if kind.startswith(_OWN))
    return next(names, "")


def chart_of(props: Mapping[str, Any]) -> tuple[Any, Any]:
    """The chart of a release, by its name, OCI reference, package or path; and its version, None
    where the newest is taken.
    """
    chart, version = text(props.get("chart")), text(props.get("version"))
    if chart is UNKNOWN:
        return UNKNOWN, UNKNOWN
    name, own = named(chart or "")
    by_package = own is not None and not str(chart).startswith("oci://")
    return name, own if by_package else version or own


def _sharing(version: Any, values: Any) -> Any:
    """How pods share GPUs: through v0.17 only if switched on, then unless switched off. A mode wins
    over the older switch.
    """
    known = isinstance(version, str)
    modes = has_sharing_modes(version) if known else UNKNOWN  # any version may come
    on = flag(value_at(values, "global.gpuSharing"), unset=modes)
    mode = mode_in(version, values) if known and (modes or on) else None
    return mode or (UNKNOWN if on is UNKNOWN else mode_of_switch(on))


def _vcluster(version: Any, values: Any, name: str, of_component: bool) -> Team:
    """The team of a vCluster. Its mode follows the values: a scheduler of its own means virtual,
    pods without owners mean that the host's KAI schedules them.
    """
    own = [flag(value_at(values, key), unset=False) for key in _VIRTUAL]
    owner = flag(value_at(values, "experimental.syncSettings.setOwner"), unset=True)
    mode: Any = "virtual" if True in own else "default" if owner else "host"
    if mode != "virtual" and UNKNOWN in (*own, owner):
        mode = UNKNOWN
    return Team(
        name,
        # The chart's versions have no v.
        version=f"v{version.removeprefix('v')}" if version and version is not UNKNOWN else version,
        node_pool=mapping(value_at(values, "sync.fromHost.nodes.selector.labels")),
        mode=mode,
        chart_values=mapping(values),
        store=store_of(values),
        untested=of_component,
        # Without a licence the component writes the open source image.
        licensed=of_component and value_at(values, _IMAGE) is None,
    )
