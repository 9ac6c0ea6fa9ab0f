"""Declared Pulumi resources of any program, read as clusters.

A cluster is a `kubernetes` provider; the inside of a vCluster is the provider with its name.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kai_fleet import releases
from kai_fleet.fleet import model
from kai_fleet.fleet.cluster import DevicePlugin, ManagedObject
from kai_fleet.fleet.installed import InstalledChart
from kai_fleet.fleet.pod_templates import workloads
from kai_fleet.fleet.pods import PodTemplate
from kai_fleet.fleet.queues import RESOURCES, DeclaredQueue, QueueShare, Resource
from kai_fleet.guards.policies import QUEUES as QUEUE_GUARDS
from kai_fleet.provider import QUEUES
from kai_fleet.releases import keys, mig
from kai_fleet.values import UNKNOWN, flag, get, items, number, pairs, text
from kai_fleet_policies.adapters import charts, declared_trees
from kai_fleet_policies.rules.queues.queue_tree import CHART_PARENT

_RELEASES = ("kubernetes:helm.sh/v3:Release", "kubernetes:helm.sh/v4:Chart")
_UNLIMITED: Mapping[Resource, QueueShare] = {
    r: QueueShare(quota=-1.0, limit=-1.0) for r in RESOURCES
}
_SHARD: Final = "kubernetes:kai.scheduler/v1:SchedulingShard"
_TOPOLOGY: Final = "kubernetes:kai.scheduler/v1alpha1:Topology"
_CLUSTER_SCOPED = frozenset({"Namespace", "CustomResourceDefinition", "RuntimeClass"})


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
    """What one provider's resources add up to, while they are read."""

    name: str
    kai: list[model.DeclaredKai] = field(default_factory=list)
    queues: list[DeclaredQueue] = field(default_factory=list)
    workloads: list[PodTemplate] = field(default_factory=list)
    objects: list[ManagedObject] = field(default_factory=list)
    teams: list[model.DeclaredTeam] = field(default_factory=list)
    device_plugins: list[DevicePlugin] = field(default_factory=list)
    gpu_quotas: dict[str, float] = field(default_factory=dict)
    slice_quotas: dict[str, dict[str, float]] = field(default_factory=dict)
    default_queues: list[DeclaredQueue] = field(default_factory=list)
    guarded: bool = False
    shards: list[str] = field(default_factory=list)
    topologies: dict[str, Sequence[str]] = field(default_factory=dict)
    installed: list[InstalledChart] = field(default_factory=list)


def clusters(resources: Iterable[Declared]) -> list[model.DeclaredCluster]:
    """One cluster per provider, hosts before the vClusters inside them."""
    found: dict[str, _Found] = {}
    for resource in _without_trees(list(resources)):
        if not resource.type.startswith("kubernetes:"):
            continue
        name = _provider_name(resource.provider)
        # Different default providers (one per plugin version) are one cluster to a user.
        key = name if name == "default" else resource.provider
        _read(found.setdefault(key, _Found(name)), resource)
    by_name = {part.name: part for part in found.values()}
    inside: set[str] = set()
    result: list[model.DeclaredCluster] = []
    for part in found.values():
        teams = [_team(team, part, by_name) for team in part.teams]
        if not teams:
            continue
        host = _cluster(part, tuple(teams))
        result.append(host)
        for team in teams:
            inner = by_name.get(str(team.name))
            if inner is None or inner is part or inner.name in inside:
                continue
            inside.add(inner.name)
            result.append(
                replace(
                    _cluster(inner, ()),
                    path=team.path,
                    gpus=team.gpus,
                    scheduled_by=host if team.mode == "host" else None,
                    team_queue=team.queue,
                )
            )
    rest = [p for p in found.values() if not p.teams and p.name not in inside]
    return result + [_cluster(part, ()) for part in rest]


def _without_trees(resources: Sequence[Declared]) -> Iterator[Declared]:
    """The resources, with each queue of a tree in the place of the tree."""
    of_cluster = declared_trees.providers((it.type, it.urn, it.props) for it in resources)
    for resource in resources:
        if resource.type != QUEUES:
            yield resource
            continue
        for queue in declared_trees.members(resource.props, of_cluster):
            yield replace(
                resource,
                type=declared_trees.QUEUE,
                name=queue.name,
                props=queue.props,
                provider=queue.provider,
            )


def _provider_name(provider: str) -> str:
    """The name in a provider's URN, `default` for default providers and none."""
    name = provider.partition("pulumi:providers:kubernetes::")[2].partition("::")[0]
    return "default" if not name or name.startswith("default_") else name


def _cluster(part: _Found, teams: tuple[model.DeclaredTeam, ...]) -> model.DeclaredCluster:
    declared = {queue.name for queue in part.queues}
    others = {queue.name: queue for queue in part.default_queues}
    default = [queue for name, queue in others.items() if name not in declared]
    return model.DeclaredCluster(
        name=part.name,
        kai=_kai(part),
        queues=(*part.queues, *default),
        workloads=tuple(part.workloads),
        objects=tuple(part.objects),
        teams=teams,
        device_plugins=tuple(part.device_plugins),
        guarded=part.guarded,
        installed=tuple(part.installed),
    )


def _kai(part: _Found) -> tuple[model.DeclaredKai, ...]:
    shards = tuple(part.shards)
    return tuple(replace(kai, shards=shards, topologies=part.topologies) for kai in part.kai)


def _team(
    team: model.DeclaredTeam, host: _Found, by_name: Mapping[str, _Found]
) -> model.DeclaredTeam:
    inner = by_name.get(str(team.name))
    kai = _kai(inner) if inner is not None and inner is not host else ()
    quotas = host.gpu_quotas
    gpus = quotas.get(team.namespace) if team.namespace else None
    if gpus is None and quotas and UNKNOWN in (team.namespace, *quotas):
        gpus = UNKNOWN  # some quota may turn out to be this team's
    slices = host.slice_quotas.get(team.namespace, {}) if team.namespace is not UNKNOWN else {}
    if UNKNOWN in (gpus, *slices.values()):
        gpus, slices = gpus if gpus is None else UNKNOWN, {}
    elif gpus is not None:
        gpus += mig.gpus_of(slices)
    # A KAI inside schedules there, whatever the values say.
    return replace(
        team,
        inside=model.DeclaredCluster(kai=kai),
        gpus=gpus,
        slices={name: int(count) for name, count in slices.items()},
        mode="virtual" if kai else team.mode,
    )


def _read(found: _Found, resource: Declared) -> None:
    props = resource.props
    kind = resource.type.rpartition(":")[2]
    if kind.endswith("List"):
        return
    if kind.endswith("Patch"):
        found.workloads += _patched(kind.removesuffix("Patch"), resource)
        return
    metadata = props.get("metadata")
    name = text(get(metadata, "name")) or resource.name
    if resource.type in _RELEASES:
        _read_release(found, resource)
        return
    if resource.type == declared_trees.QUEUE:
        queue = declared_trees.queue(props, name, resource.urn, resource.default_namespace)
        found.queues.append(queue)
        if (
            get(metadata, "annotations", declared_trees.PARENT_ELSEWHERE) == "true"
            and queue.parent is not None
        ):
            # Another stack has it, and has been asked about what hangs below it.
            found.default_queues.append(
                DeclaredQueue(queue.parent, None, _UNLIMITED, path=resource.urn)
            )
        return
    if pods := _pods(kind, resource):
        found.workloads += pods
        return
    if resource.type == _SHARD:
        found.shards.append(name)
        return
    if resource.type == _TOPOLOGY:
        found.topologies[name] = ()
        return
    namespace = text(get(metadata, "namespace"))
    if kind == "ResourceQuota" and namespace is not None:
        hard = get(props.get("spec"), "hard")
        for gpu in keys.GPU_RESOURCES:
            amount = number(get(hard, f"requests.{gpu}"))
            # Of another vendor's it may say that there are none.
            if amount is not None and (amount != 0 or namespace not in found.gpu_quotas):
                found.gpu_quotas[namespace] = amount
        of_slices = found.slice_quotas.setdefault(namespace, {})
        for key in pairs(hard):
            name = str(key).removeprefix("requests.")
            if name.startswith(mig.PREFIX) and (amount := number(get(hard, key))) is not None:
                of_slices[name] = amount
    elif kind == "ConfigMap":
        texts = ((k, v) for k, v in pairs(props.get("data")).items() if isinstance(v, str))
        sharing = charts.sharing_in({key: value for key, value in texts if "sharing" in value})
        if sharing and sharing is not UNKNOWN:
            found.device_plugins.append(DevicePlugin(sharing, resource.urn))
    elif kind == "ValidatingAdmissionPolicyBinding" and str(name).startswith(QUEUE_GUARDS):
        spec = props.get("spec")
        selector = get(get(spec, "matchResources"), "namespaceSelector")
        everywhere = selector is None  # on a host it is for one namespace
        found.guarded |= everywhere and "Deny" in items(get(spec, "validationActions"))
    if namespace is not None and kind not in _CLUSTER_SCOPED:
        found.objects.append(ManagedObject(kind, name, namespace, path=resource.urn))


def _pods(kind: str, resource: Declared) -> list[PodTemplate]:
    """Its pods; in a preview the provider may not have written its namespace on them yet."""
    name = text(get(resource.props.get("metadata"), "name")) or resource.name
    return [
        pod if pod.namespace else replace(pod, namespace=resource.default_namespace)
        for pod in workloads(kind, resource.props, name, resource.urn)
    ]


def _patched(kind: str, resource: Declared) -> Iterator[PodTemplate]:
    """The pods that a patch gives a queue; what else they have stands elsewhere."""
    for pod in _pods(kind, resource):
        if pod.names_queue is True:
            scheduler = pod.scheduler or keys.SCHEDULER
            yield replace(pod, scheduler=scheduler, annotations={}, containers=())


def _read_release(found: _Found, resource: Declared) -> None:
    props, urn = resource.props, resource.urn
    chart = charts.chart_of(props)
    name = text(props.get("name")) or resource.name
    namespace = text(props.get("namespace")) or resource.default_namespace
    if chart is not UNKNOWN and (installed := charts.installed(chart, props, name, urn)):
        found.installed.append(installed)
    if chart is UNKNOWN:
        found.objects.append(ManagedObject("Release", name, namespace, path=urn))
    elif chart.name == charts.KAI:
        found.kai.append(charts.kai_release(chart, props, urn))
        found.default_queues += _default_queues(chart, props, urn)
    elif chart.name == charts.VCLUSTER:
        found.teams.append(charts.virtual_cluster(chart, props, name, urn))
    else:
        found.objects.append(ManagedObject("Release", name, namespace, chart.name, urn))
        if chart.name in charts.DEVICE_PLUGINS:
            sharing = charts.device_sharing(chart.name, props.get("values"))
            found.device_plugins.append(DevicePlugin(sharing, urn))


def _default_queues(
    chart: charts.Chart, props: Mapping[str, object], urn: str
) -> list[DeclaredQueue]:
    """The two queues that charts from v0.10 make at their first install, unless turned off."""
    version = chart.version
    if not isinstance(version, str) or releases.version_key(version) < (0, 10):
        return []
    settings = get(props.get("values"), "defaultQueue")
    if flag(get(settings, "createDefaultQueue"), unset=True) is not True:
        return []
    parent = text(get(settings, "parentName")) or CHART_PARENT
    child = text(get(settings, "childName")) or "default-queue"
    # Their quota of 0 is the chart's, not the reader's to mend: unlimited keeps rules silent.
    return [
        DeclaredQueue(parent, None, _UNLIMITED, path=urn),
        DeclaredQueue(child, parent, _UNLIMITED, path=urn),
    ]
