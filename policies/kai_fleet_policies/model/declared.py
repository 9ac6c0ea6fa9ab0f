"""The clusters that the settings of a stack declare, as rules read them: paths are keys."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from kai_fleet.arguments import Arguments
from kai_fleet.deployed import Deployed, named
from kai_fleet.names import VIRTUAL_CLUSTER
from kai_fleet.queue_specs import named_specs
from kai_fleet.releases import DEFAULT_VCLUSTER, GPU_PROVIDERS
from kai_fleet.releases.sharing import mode_in
from kai_fleet.settings import Settings, key_path
from kai_fleet.settings.sections.access import Access
from kai_fleet.settings.sections.kubernetes import in_domains
from kai_fleet.settings.sections.platform import HostKai
from kai_fleet.settings.sections.queues import PlacedQueue, walk
from kai_fleet.settings.sections.teams import Scheduler
from kai_fleet.vcluster_values import argument_values, store_of
from kai_fleet_policies.model.cluster import HOST, Chart, Cluster, Kai, ManagedObject, Team
from kai_fleet_policies.model.device_sharing import device_sharing
from kai_fleet_policies.model.pods import PodTemplate, workloads
from kai_fleet_policies.model.queues import RESOURCES, UNLIMITED, DeclaredQueue, QueueShare

# What rules read of a section as it is written.
_OF_VCLUSTER: Final = ("chart", "values", "licensed", "untested", "access")
# Ends of names that the internet's DNS does not have.
_INTERNAL: Final = (".internal", ".local", ".svc", ".lan", ".corp", ".intranet", ".home.arpa")
_OF_KAI: Final = ("version", "values", "untested", "chart", "shards", "topologies", "fairshare")


def clusters_of(settings: Settings, state: Deployed | None = None) -> list[Cluster]:
    """The host first, then what is inside vClusters; `state` is what the stack has, if known."""
    return host_of(settings, state).with_insides


def host_of(settings: Settings, state: Deployed | None = None) -> Cluster:
    """The host cluster with its teams; of a team stack as far as the team may know it."""
    arguments, kai, gpu = Arguments(settings), settings.kai, settings.gpu
    key, queues_key = key_path(("kai",)), key_path(("queues",))
    host = Cluster(
        HOST,
        path=key_path(("cluster",)),
        teams=tuple(_team(arguments, name, state or Deployed()) for name in settings.teams),
        sources=settings.known_sources,
        registry_users=_registry_users(settings),
        gpu_resource=gpu.resource,
        kai=() if kai is None else (_kai(settings, kai, key, registries=settings.registries),),
        platform=settings.platform_stack,
    )
    if settings.platform_facts is not None:
        return replace(host, **_granted_queues(arguments, host.teams[0]))
    charts = [_of_gpus(settings)]
    if (kind := settings.cluster.kind) is not None and kind.image is not None:
        subject, path = f"cluster {settings.cluster.name}", key_path(("cluster", "kind"))
        charts.append(Chart(None, {"image": kind.image}, "", subject=subject, path=path))
    return replace(
        host,
        declared=True,
        queues=_queues(arguments.host_queues(), walk(settings.queues, f"{queues_key}.")),
        grants=tuple(_grant(arguments, name) for name in settings.team_stacks),
        charts=tuple(charts),
        objects=tuple(_device_plugin(settings)),
    )


def _registry_users(settings: Settings) -> dict[str, str]:
    """The names of accounts of registries, by their keys in the stack file."""
    users = dict[str, str]()
    for name, account in settings.registries.items():
        users[key_path(("registries", name))] = account.username
    if settings.mirror is not None and settings.mirror.account is not None:
        users.pop(key_path(("registries", settings.mirror.registry)), None)
        users[key_path(("mirror", "account"))] = settings.mirror.account.username
    for team, declared in settings.teams.items():
        for name, account in declared.registries.items():
            users[f"{settings.team_path(team)}.registries.{name}"] = account.username
    return users


def _of_gpus(settings: Settings) -> Chart:
    """The chart of the GPU stack; with `none` there is none that could be another."""
    gpu, provider = settings.gpu, GPU_PROVIDERS[settings.gpu.provider]
    return Chart(
        gpu.chart,
        gpu.values,
        subject="the GPU stack",
        path=key_path(("gpu",)),
        names=(provider.chart,) if provider.chart else None,
        version=gpu.version or provider.version,
        tested=provider.version,
        untested=gpu.untested,
    )


def _device_plugin(settings: Settings) -> Iterator[ManagedObject]:
    """The release of the GPU stack, by which a device plugin may share GPUs."""
    if chart := GPU_PROVIDERS[settings.gpu.provider].chart:
        path, sharing = key_path(("gpu", "values")), device_sharing(settings.gpu.values)
        yield ManagedObject("Release", chart, chart, path=path, sharing=sharing)


def _granted_queues(arguments: Arguments, team: Team) -> dict[str, Any]:
    """The queue that a team stack is granted, with its GPUs, and those above it; and the queues
    that it makes below.
    """
    facts, path = arguments.settings.platform_facts, f"{team.path}.queues"
    grant = facts.teams.get(team.name) if facts else None
    if grant is None or grant.parent_queue is None:
        return {"queues_key": path}
    queues = list[DeclaredQueue]()
    for name in (*grant.above, grant.parent_queue):
        most = grant.counted if name == grant.parent_queue else UNLIMITED
        own = dict.fromkeys(RESOURCES, QueueShare(UNLIMITED)) | {"gpu": QueueShare(most, most)}
        above = queues[-1].name if queues else None
        queues.append(DeclaredQueue(name, above, own, path=path, shard=grant.shard))
    if team.mode == "host":
        below = arguments.settings.teams[team.name].queues
        placed = walk(below, f"{path}.", (grant.parent_queue,), grant.shard)
        queues += _queues(arguments.queues(team.name), placed)
    return {"queues": tuple(queues), "queues_key": path}


def _grant(arguments: Arguments, name: str) -> Team:
    """The place of a team with a stack of its own, which chooses the mode."""
    settings = arguments.settings
    return replace(
        _on_host(arguments, name),
        path=key_path(("teamStacks", name)),  # of a team of this stack with its name, too
        mode="virtual" if settings.kai is None else "host",
        parent_queue=settings.team_stacks[name].parent_queue,
        inside=Cluster(gpu_resource=settings.gpu.resource),
    )


def _team(arguments: Arguments, name: str, state: Deployed) -> Team:
    """A team that this stack runs."""
    settings, own = arguments.settings, arguments.settings.teams[name]
    vcluster, facts = own.vcluster, settings.platform_facts
    values = argument_values(arguments.vcluster(name))
    release = named(VIRTUAL_CLUSTER, f"{name}-release")
    version = state.versions.get(release)
    return replace(
        _on_host(arguments, name),
        **{key: getattr(vcluster, key) for key in _OF_VCLUSTER},
        mode=own.scheduler.mode,
        queue=own.queue,
        pools=own.pools,
        parent_queue=facts.granted(name).parent_queue if facts else None,
        own_annotations=_own_annotations(settings, vcluster.access),
        classes=arguments.volume_classes(name),
        version=vcluster.version or DEFAULT_VCLUSTER,
        chart_values=values,
        store=store_of(values),
        running_version=f"v{version}" if version else None,  # the chart's has no v
        running_store=state.stores.get(release),
        running_kubernetes=state.kubernetes_in(name),
        inside=_inside(arguments, name),
    )


def _own_annotations(settings: Settings, access: Access | None) -> dict[str, str]:
    """The annotations of a team's API that its own lines say, of domains that are not listed."""
    of_all = settings.vcluster.access or Access()
    return {
        key: value
        for key, value in (access or of_all).annotations.items()
        if of_all.annotations.get(key) != value and not in_domains(key, settings.key_domains)
    }


def _on_host(arguments: Arguments, name: str) -> Team:
    """A team's namespace and its bounds, whichever stack runs it."""
    settings, own = arguments.settings, arguments.settings.own_of(name)
    return Team(
        name,
        path=settings.team_path(name),
        where=partial(settings.written_at, name),
        namespace=f"team-{name}",
        node_pool=own.node_pool,
        control_pool=arguments.control_pool(name),
        gpus=own.counted,
        slices=own.slices,
        level=own.isolation.level,
        autoscaled=own.autoscaled,
        unreached_issuer=_unreached_issuer(settings, name),
    )


def _unreached_issuer(settings: Settings, name: str) -> str:
    """The issuer of a team's identity provider, where no network policy leads there; else "".

    A control plane reaches what its team's pods reach, and the host's API server: at `apiPorts` any
    address, until `apiCidrs` says which.
    """
    team = settings.teams.get(name)
    own = settings.own_of(name).isolation
    oidc = team.vcluster.oidc if team is not None else None
    closed = own.level != "off" and own.network.enabled and not own.network.cidrs
    if oidc is None or not closed or not own.network.api_cidrs:
        return ""
    host = urlsplit(oidc.issuer).hostname or ""
    if own.network.internet:
        return oidc.issuer if _is_internal(host) else ""
    return "" if own.network.namespaces else oidc.issuer


def _is_internal(host: str) -> bool:
    """Whether a name, or an address, is one that the internet does not have."""
    with suppress(ValueError):
        return not ip_address(host).is_global
    return "." not in host or host.endswith(_INTERNAL)


def _inside(arguments: Arguments, name: str) -> Cluster:
    settings, path = arguments.settings, arguments.settings.team_path(name)
    team, key, queues_key = settings.teams[name], f"{path}.scheduler", f"{path}.queues"
    where = partial(settings.written_at, name, "scheduler")
    virtual, placed = team.scheduler.mode == "virtual", walk(team.queues, f"{queues_key}.")
    return Cluster(
        name,
        path=path,
        kai=(_kai(settings, team.scheduler, key, where=where),) if virtual else (),
        queues=_queues(arguments.queues(name), placed) if virtual else (),
        workloads=tuple(_pods(settings, name)),
        declared=True,
        gpu_resource=settings.gpu.resource,
        gpus=team.counted,
        pools=team.gpus_by_pool,
        key=key,
        queues_key=queues_key,
    )


def _kai(settings: Settings, own: HostKai | Scheduler, path: str, **more: Any) -> Kai:
    sharing = mode_in(own.version or "", own.values) or settings.sharing_of(own)
    written = {key: getattr(own, key) for key in _OF_KAI}
    return Kai(**written, sharing=sharing, path=path, **more)


def _queues(args: Mapping[str, Any], placed: Iterable[PlacedQueue]) -> tuple[DeclaredQueue, ...]:
    """The queues of QueueTreeArgs at their places, parents before their children."""
    specs = named_specs(args["queues"], *(args.get(key) for key in ("gpus", "pools", "parent")))
    return tuple(
        DeclaredQueue.of(name, spec, path=place.path, shard=place.shard)
        for (name, spec), place in zip(specs, placed, strict=True)
    )


def _pods(settings: Settings, team: str) -> Iterator[PodTemplate]:
    for number, documents in enumerate(settings.workloads.get(team, {}).values()):
        path = f"{key_path(('workloads', team))}[{number}]"
        for manifest in documents:
            yield from workloads(manifest["kind"], manifest, manifest["metadata"]["name"], path)
