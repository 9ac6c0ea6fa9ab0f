"""Declared Pulumi resources of any program, read as clusters.

A cluster is a `kubernetes` provider; the inside of a vCluster is the provider with its name.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kai_fleet.guards.policies import QUEUES as QUEUE_GUARDS
from kai_fleet.names import QUEUES
from kai_fleet.releases import keys, mig, version_key
from kai_fleet.values import UNKNOWN, flag, get, items, number, pairs, text
from kai_fleet_policies.adapters import charts, declared_trees
from kai_fleet_policies.model.cluster import Cluster, DevicePlugin, Kai, ManagedObject, Team
from kai_fleet_policies.model.pods import PodTemplate, workloads
from kai_fleet_policies.model.queues import RESOURCES, DeclaredQueue, QueueShare
from kai_fleet_policies.rules.queues import CHART_PARENT

_RELEASES: Final = ("kubernetes:helm.sh/v3:Release", "kubernetes:helm.sh/v4:Chart")
_UNLIMITED: Final = {r: QueueShare(quota=-1.0, limit=-1.0) for r in RESOURCES}
_SHARD: Final = "kubernetes:kai.scheduler/v1:SchedulingShard"
_TOPOLOGY: Final = "kubernetes:kai.scheduler/v1alpha1:Topology"
_CLUSTER_SCOPED: Final = frozenset({"Namespace", "CustomResourceDefinition", "RuntimeClass"})


@dataclass(frozen=True)
class Declared:
    """One resource: its properties are plain values, UNKNOWN where the update will tell.

    `provider` is a URN or "", `default_namespace` what that provider fills in.
    """

    urn: str
    type: str
    name: str
    props: Mapping[str, object]
    provider: str = ""
    default_namespace: str = "default"


@dataclass
class _Found:
    """What one provider's resources add up to: `parts` by the fields of Cluster."""

    name: str
    parts: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    quotas: defaultdict[str, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))
    default_queues: list[DeclaredQueue] = field(default_factory=list)
    guarded: bool = False
    shards: list[str] = field(default_factory=list)
    topologies: dict[str, Sequence[str]] = field(default_factory=dict)

    @property
    def kai(self) -> tuple[Kai, ...]:
        """Its KAIs with their shards and topologies."""
        more: dict[str, Any] = {"shards": tuple(self.shards), "topologies": self.topologies}
        return tuple(replace(kai, **more) for kai in self.parts["kai"])

    def cluster(self, **more: Any) -> Cluster:
        """The cluster that they declare."""
        queues = self.parts["queues"]
        names = {queue.name for queue in queues}
        default = {queue.name: queue for queue in self.default_queues if queue.name not in names}
        parts = {key: tuple(found) for key, found in self.parts.items()}
        parts |= {"kai": self.kai, "queues": (*queues, *default.values())}
        return Cluster(self.name, guarded=self.guarded, **(parts | more))


def clusters(resources: Iterable[Declared]) -> list[Cluster]:
    """One cluster per provider, hosts before the vClusters inside them."""
    found: dict[str, _Found] = {}
    for resource in _without_trees(list(resources)):
        if resource.type.startswith("kubernetes:"):
            name = _provider_name(resource.provider)
            # Different default providers (one per plugin version) are one cluster to a user.
            key = name if name == "default" else resource.provider
            _read(found.setdefault(key, _Found(name)), resource)
    by_name = {part.name: part for part in found.values()}
    result, inside = list[Cluster](), set[str]()
    hosts = [part for part in found.values() if part.parts["teams"]]
    for part in hosts:
        teams = tuple(_team(team, part, by_name) for team in part.parts["teams"])
        result.append(host := part.cluster(teams=teams))
        for team in teams:
            inner = by_name.get(str(team.name))
            if inner is None or inner is part or inner.name in inside:
                continue
            inside.add(inner.name)
            by = host if team.mode == "host" else None
            more = {"path": team.path, "gpus": team.gpus, "team_queue": team.queue}
            result.append(inner.cluster(teams=(), scheduled_by=by, **more))
    rest = (part for part in found.values() if part not in hosts and part.name not in inside)
    return [*result, *(part.cluster() for part in rest)]


def _without_trees(resources: Sequence[Declared]) -> Iterator[Declared]:
    """The resources, with each queue of a tree in the place of the tree."""
    of_cluster = declared_trees.providers((each.type, each.urn, each.props) for each in resources)
    for resource in resources:
        if resource.type != QUEUES:
            yield resource
            continue
        for name, props, provider in declared_trees.members(resource.props, of_cluster):
            kind = declared_trees.QUEUE
            yield replace(resource, type=kind, name=name, props=props, provider=provider)


def _provider_name(provider: str) -> str:
    """The name in a provider's URN, `default` for default providers and none."""
    name = provider.partition("pulumi:providers:kubernetes::")[2].partition("::")[0]
    return "default" if not name or name.startswith("default_") else name


def _team(team: Team, host: _Found, by_name: Mapping[str, _Found]) -> Team:
    inner = by_name.get(str(team.name))
    kai = inner.kai if inner is not None and inner is not host else ()
    hard = host.quotas.get(team.namespace, {})
    amounts = [hard[gpu] for gpu in keys.GPU_RESOURCES if gpu in hard]
    # Of another vendor's it may say that there are none.
    gpus = next((amount for amount in amounts if amount != 0), 0.0 if amounts else None)
    if gpus is None and host.quotas and UNKNOWN in (team.namespace, *host.quotas):
        gpus = UNKNOWN  # some quota may turn out to be this team's
    slices = {name: amount for name, amount in hard.items() if name.startswith(mig.PREFIX)}
    if UNKNOWN in (gpus, *slices.values()):
        gpus, slices = gpus if gpus is None else UNKNOWN, {}
    elif gpus is not None:
        gpus += mig.gpus_of(slices)
    return replace(
        team,
        inside=Cluster(str(team.name), kai=kai),
        gpus=gpus,
        slices={name: int(count) for name, count in slices.items()},
        # A KAI inside schedules there, whatever the values say.
        mode="virtual" if kai else team.mode,
    )


def _read(found: _Found, resource: Declared) -> None:
    props, parts = resource.props, found.parts
    kind, metadata = resource.type.rpartition(":")[2], props.get("metadata")
    name = text(get(metadata, "name")) or resource.name
    namespace = text(get(metadata, "namespace"))
    if kind.endswith("List"):
        return
    if kind.endswith("Patch"):
        parts["workloads"] += _patched(kind.removesuffix("Patch"), name, resource)
    elif resource.type in _RELEASES:
        _read_release(found, resource)
    elif resource.type == declared_trees.QUEUE:
        queue = declared_trees.queue(props, name, resource.urn, resource.default_namespace)
        parts["queues"].append(queue)
        elsewhere = get(metadata, "annotations", declared_trees.PARENT_ELSEWHERE) == "true"
        if elsewhere and queue.parent is not None:
            # Another stack has it, and has been asked about what hangs below it.
            above = DeclaredQueue(queue.parent, None, _UNLIMITED, path=resource.urn)
            found.default_queues.append(above)
    elif pods := _pods(kind, name, resource):
        parts["workloads"] += pods
    elif resource.type == _SHARD:
        found.shards.append(name)
    elif resource.type == _TOPOLOGY:
        found.topologies[name] = ()
    else:
        if kind == "ResourceQuota" and namespace is not None:
            for key, amount in pairs(get(props.get("spec"), "hard")).items():
                of = str(key).removeprefix("requests.")
                counts = of in keys.GPU_RESOURCES or of.startswith(mig.PREFIX)
                if counts and (read := number(amount)) is not None:
                    found.quotas[namespace][of] = read
        elif kind == "ConfigMap":
            texts = ((k, v) for k, v in pairs(props.get("data")).items() if isinstance(v, str))
            sharing = charts.sharing_in({key: value for key, value in texts if "sharing" in value})
            if sharing and sharing is not UNKNOWN:
                parts["device_plugins"].append(DevicePlugin(sharing, resource.urn))
        elif kind == "ValidatingAdmissionPolicyBinding" and str(name).startswith(QUEUE_GUARDS):
            spec = props.get("spec")
            # On a host it is for one namespace.
            everywhere = get(spec, "matchResources", "namespaceSelector") is None
            found.guarded |= everywhere and "Deny" in items(get(spec, "validationActions"))
        if namespace is not None and kind not in _CLUSTER_SCOPED:
            parts["objects"].append(ManagedObject(kind, name, namespace, path=resource.urn))


def _pods(kind: str, name: str, resource: Declared) -> list[PodTemplate]:
    """Its pods; in a preview the provider may not have written its namespace on them yet."""
    return [
        pod if pod.namespace else replace(pod, namespace=resource.default_namespace)
        for pod in workloads(kind, resource.props, name, resource.urn)
    ]


def _patched(kind: str, name: str, resource: Declared) -> Iterator[PodTemplate]:
    """The pods that a patch gives a queue; what else they have stands elsewhere."""
    for pod in _pods(kind, name, resource):
        if pod.names_queue is True:
            scheduler = pod.scheduler or keys.SCHEDULER
            yield replace(pod, scheduler=scheduler, annotations={}, containers=())


def _read_release(found: _Found, resource: Declared) -> None:
    props, urn, parts = resource.props, resource.urn, found.parts
    if props.get("valueYamlFiles"):  # only the engine reads them
        props = {**props, "values": UNKNOWN}
    chart = charts.chart_of(props)
    name = text(props.get("name")) or resource.name
    namespace = text(props.get("namespace")) or resource.default_namespace
    if chart is UNKNOWN:
        parts["objects"].append(ManagedObject("Release", name, namespace, path=urn))
    elif chart.name == charts.KAI:
        parts["kai"].append(charts.kai_release(chart, props, urn))
        found.default_queues += _default_queues(chart.version, props.get("values"), urn)
    elif chart.name == charts.VCLUSTER:
        parts["teams"].append(charts.virtual_cluster(chart, props, name, urn))
    else:
        parts["objects"].append(ManagedObject("Release", name, namespace, chart.name, urn))
        if chart.name in charts.DEVICE_PLUGINS:
            sharing = charts.device_sharing(chart.name, props.get("values"))
            parts["device_plugins"].append(DevicePlugin(sharing, urn))


def _default_queues(version: str | None, values: object, urn: str) -> list[DeclaredQueue]:
    """The two queues that charts from v0.10 make at their first install, unless turned off."""
    settings = get(values, "defaultQueue")
    makes = isinstance(version, str) and version_key(version) >= (0, 10)
    if not makes or flag(get(settings, "createDefaultQueue"), unset=True) is not True:
        return []
    parent = text(get(settings, "parentName")) or CHART_PARENT
    child = text(get(settings, "childName")) or "default-queue"
    # Their quota of 0 is the chart's, not the reader's to change: unlimited keeps rules silent.
    queues = ((parent, None), (child, parent))
    return [DeclaredQueue(name, above, _UNLIMITED, path=urn) for name, above in queues]
