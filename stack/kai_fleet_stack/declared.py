"""The clusters that the settings of a stack declare, as rules read them. Paths are keys.

A function that reads a team by its name raises KeyError if the settings have none of that name.

The settings are those that `load` and `load_team_stack` give, after `remember_file`: without that
those of a team's own stack look like a platform's. They may have mistakes between keys.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from kai_fleet.names import VIRTUAL_CLUSTER
from kai_fleet.one_run import restored_teams
from kai_fleet.ownership.deployed import Deployed, resource_key
from kai_fleet.queues.specs import named_specs
from kai_fleet.releases import DEFAULT_VCLUSTER, GPU_PROVIDERS
from kai_fleet.releases.chart_stores import store_of
from kai_fleet.releases.sharing import mode_in
from kai_fleet.releases.sources import BACKUP_IMAGES
from kai_fleet.vcluster.chart_values import argument_values
from kai_fleet_policies.key_paths import key_path
from kai_fleet_policies.model.cluster import (
    HOST,
    ApiAccess,
    ClusterModel,
    DeclaredHost,
    DeclaredTeam,
)
from kai_fleet_policies.model.device_sharing import device_sharing
from kai_fleet_policies.model.installed import Chart, Kai, ManagedObject
from kai_fleet_policies.model.pods import PodTemplate, workloads
from kai_fleet_policies.model.queues import UNLIMITED, UNLIMITED_SHARES, DeclaredQueue, QueueShare
from kai_fleet_stack.arguments import host as host_arguments
from kai_fleet_stack.arguments import team as team_arguments
from kai_fleet_stack.arguments.shared import fields_in_clear
from kai_fleet_stack.settings import Settings
from kai_fleet_stack.settings.sections.access import Access
from kai_fleet_stack.settings.sections.kubernetes import in_domains
from kai_fleet_stack.settings.sections.platform import HostKai
from kai_fleet_stack.settings.sections.queues import PlacedQueue, walk
from kai_fleet_stack.settings.sections.teams import Scheduler

if TYPE_CHECKING:  # rules use this module without the components
    from kai_fleet.queue_tree import TreeArgs

SANDBOX = "kai-fleet-sandbox"  # the context of the sandbox
# Ends of names that the internet's DNS does not have.
_INTERNAL = (".internal", ".local", ".svc", ".lan", ".corp", ".intranet", ".home.arpa")


def clusters_of(settings: Settings, state: Deployed | None = None) -> list[ClusterModel]:
    """The host, and then the vClusters in which something is declared.

    `state` is what the stack has since its last update, if that is known. Only here vClusters have
    `scheduled_by`, `team_queue` and `isolated`: `inside` of the teams of `host_of` lacks them.
    """
    return host_of(settings, state).with_insides


def host_of(settings: Settings, state: Deployed | None = None) -> DeclaredHost:
    """The host with its teams; in a team's own stack only what that team may know of it.

    There `declared` is False, because the queues and charts of others are not known: it has its one
    team, the queues of `_with_granted_queues`, and of KAI version and mode of sharing, but no
    grants, charts and objects. Without `state` nothing is known of the last update. The host's
    version is that of the image of a kind cluster, such as `kindest/node:v1.34.0`.
    """
    deployed = state or Deployed()
    kind = settings.cluster.kind
    image = kind.image or "" if kind else ""
    host = DeclaredHost(
        HOST,
        path="kai-fleet:cluster",
        teams=tuple(_team(settings, name, deployed) for name in settings.teams),
        sources=settings.known_sources,
        registry_users=_registry_users(settings),
        gpu_resource=settings.gpu.resource,
        kai=_host_kai(settings),
        platform_stack=settings.platform_stack,
        kubernetes=image.partition("node:")[2].partition("@")[0],
    )
    if settings.platform_facts is not None:
        return _with_granted_queues(host, settings)
    return replace(
        host,
        declared=True,
        queues=_queues(host_arguments.queues(settings), walk(settings.queues, "kai-fleet:queues.")),
        grants=tuple(_grant(settings, name) for name in settings.team_stacks),
        charts=tuple(_host_charts(settings)),
        objects=tuple(_device_plugin(settings)),
        unsaved=is_unsaved(settings),
    )


def is_unsaved(settings: Settings) -> bool:
    """Whether the file says nothing of backups, and its host is neither a sandbox nor of kind."""
    cluster = settings.cluster
    is_tried_out = cluster.kind is not None or cluster.context == SANDBOX
    says_something = any(team.backup is not None for team in settings.teams.values())
    return bool(settings.teams) and not is_tried_out and not says_something


def _backup_images(settings: Settings) -> Iterator[Chart]:
    """The images of each team's backups, as values of a chart."""
    for name, team in settings.teams.items():
        if team.backup:
            yield Chart(
                None,
                fields_in_clear(team.backup, BACKUP_IMAGES),
                values_key="",
                subject=f"backup of team {name}",
                path=settings.key_path_of(name, "backup", "to").removesuffix(".to"),
            )


def _registry_users(settings: Settings) -> dict[str, str]:
    """The user names of accounts of registries, by their key paths: the stack's, then the teams'.

    A mirror's account is also one of `registries`, but is written in `mirror`: only that path is
    there. If the file has the registry at both, it is not: pulls are with that of `registries`.
    """
    users = dict[str, str]()
    for name, account in settings.registries.items():
        path = key_path(("registries", name))
        if settings.mirror is not None and account is settings.mirror.account:
            path = "kai-fleet:mirror.account"
        users[path] = account.username
    for team, declared in settings.teams.items():
        for name, account in declared.registries.items():
            users[f"{settings.team_path(team)}.registries.{name}"] = account.username
    return users


def _host_kai(settings: Settings) -> tuple[Kai, ...]:
    """The host's KAI, with the names of all of the stack's registries; empty if there is none."""
    if settings.kai is None:
        return ()
    kai = _kai(settings, settings.kai, "kai-fleet:kai")
    return (replace(kai, registries=tuple(settings.registries)),)


def _host_charts(settings: Settings) -> Iterator[Chart]:
    """The chart of the GPU stack, and the image of a kind cluster's nodes if one is written.

    The first also for a provider that installs no chart: then its `names` are None. Its version is
    that of the file, else that of the release table: "" without a chart.
    """
    gpu = settings.gpu
    provider = GPU_PROVIDERS[gpu.provider]
    yield Chart(
        gpu.chart,
        gpu.values,
        subject="the GPU stack",
        path="kai-fleet:gpu",
        names=(provider.chart,) if provider.chart else None,
        version=gpu.version or provider.version,
        tested=provider.version,
        untested=gpu.untested,
    )
    yield from _backup_images(settings)
    kind = settings.cluster.kind
    if kind is not None and kind.image is not None:
        yield Chart(
            None,
            {"image": kind.image},
            values_key="",
            subject=f"cluster {settings.cluster.name}",
            path="kai-fleet:cluster.kind",
        )


def _device_plugin(settings: Settings) -> Iterator[ManagedObject]:
    """The release of the GPU stack, by which a device plugin may share GPUs.

    Nothing for a provider that installs no chart.
    """
    chart = GPU_PROVIDERS[settings.gpu.provider].chart
    if chart:
        yield ManagedObject(
            "Release",
            chart,
            chart,
            path="kai-fleet:gpu.values",
            sharing=device_sharing(settings.gpu.values),
        )


def _with_granted_queues(host: DeclaredHost, settings: Settings) -> DeclaredHost:
    """The host of a team's own stack, with the queue that the platform grants it.

    The queue has the team's GPUs as quota and limit; all else of it, and the queues above it, are
    unlimited. They come from the top, without a `spec`, as another stack declares them. In mode
    host the team's queues follow, below it. Without a granted queue the host has no queues.

    Raises:
        ValueError: `host` has another number of teams than one.
    """
    (team,) = host.teams
    path = f"{team.path}.queues"
    grant = settings.granted(team.name)
    if grant.parent_queue is None:
        return replace(host, queues_key=path)
    queues = list[DeclaredQueue]()
    parent = None
    for name in (*grant.above, grant.parent_queue):
        gpus = grant.gpus_with_slices if name == grant.parent_queue else UNLIMITED
        shares = {**UNLIMITED_SHARES, "gpu": QueueShare(gpus, gpus)}
        queues.append(DeclaredQueue(name, parent, shares, path=path, shard=grant.shard))
        parent = name
    if team.mode == "host":
        team_queues = settings.teams[team.name].queues
        placed = walk(team_queues, f"{path}.", (grant.parent_queue,), grant.shard)
        queues += _queues(team_arguments.queues(settings, team.name), placed)
    return replace(host, queues=tuple(queues), queues_key=path)


def _grant(settings: Settings, name: str) -> DeclaredTeam:
    """The namespace and bounds of a team with a stack of its own.

    That stack chooses the mode: this one assumes the mode that needs most of the host, which is
    `host` if the host has a KAI, else `virtual`. The bounds are those of a team of this stack, if
    it has one of the same name.
    """
    return replace(
        _namespace(settings, name),
        path=key_path(("teamStacks", name)),  # also if this stack has a team of the same name
        mode="virtual" if settings.kai is None else "host",
        queue=settings.team_stacks[name].parent_queue,
        inside=ClusterModel(gpu_resource=settings.gpu.resource),
    )


def _team(settings: Settings, name: str, state: Deployed) -> DeclaredTeam:
    """A team that this stack runs, with its vCluster.

    `state` has what the last update left: a field `running_…` is None if it has nothing of that.
    """
    team = settings.teams[name]
    vcluster = team.vcluster
    values = argument_values(name, team_arguments.vcluster(settings, name))
    running_version = state.versions.get(resource_key(VIRTUAL_CLUSTER, f"{name}-release"))
    return replace(
        _namespace(settings, name),
        chart=vcluster.chart,
        values=vcluster.values,
        licensed=vcluster.licensed,
        untested=vcluster.untested,
        access=_api_access(vcluster.access or Access()),
        mode=team.scheduler.mode,
        queue=team.queue,
        pools=team.pools,
        own_annotations=_own_annotations(settings, vcluster.access),
        classes=settings.volume_classes(name),
        version=vcluster.version or DEFAULT_VCLUSTER,
        backup_namespace=team.backup.namespace if team.backup else None,
        chart_values=values,
        store=store_of(values),
        running_version=f"v{running_version}" if running_version else None,  # a chart's has no v
        running_store=None if name in restored_teams() else state.store_in(name),
        running_kubernetes=state.kubernetes_in(name),
        inside=_inside(settings, name),
    )


def _api_access(access: Access) -> ApiAccess:
    """The access to a vCluster's API as rules read it."""
    return ApiAccess(
        access.type,
        host=access.host,
        endpoint=access.endpoint,
        routes_by_hostname=access.routes_by_hostname,
        annotations=access.annotations,
    )


def _own_annotations(settings: Settings, access: Access | None) -> dict[str, str]:
    """Annotations of a team's API that neither the platform writes nor a listed domain allows.

    The platform has to write the same value, too. An `access` of None is the platform's: empty.
    """
    of_platform = settings.vcluster.access or Access()
    annotations = (access or of_platform).annotations
    return {
        key: value
        for key, value in annotations.items()
        if of_platform.annotations.get(key) != value and not in_domains(key, settings.key_domains)
    }


def _namespace(settings: Settings, name: str) -> DeclaredTeam:
    """A team, or a grant, with its namespace and bounds, which the host's stack makes in any case.

    The other fields have their defaults.
    """
    team = settings.team_or_grant(name)
    return DeclaredTeam(
        name,
        path=settings.team_path(name),
        find_key=partial(settings.key_path_of, name),
        namespace=f"team-{name}",
        node_pool=team.node_pool,
        control_pool=settings.control_pool(name),
        gpus=team.gpus_with_slices,
        slices=team.slices,
        level=team.isolation.level,
        autoscaled=team.autoscaled,
        unreached_issuer=_unreached_issuer(settings, name),
    )


def _unreached_issuer(settings: Settings, name: str) -> str:
    """The issuer of a team's identity provider if no network policy lets its API server reach it.

    "" if one does, if there are no policies, or no provider, as for a grant. An API server reaches
    what its team's pods reach, and any address at the host's `apiPorts` until `apiCidrs` says
    which. Any `cidrs` or `namespaces` count as the provider's.
    """
    team = settings.teams.get(name)
    oidc = team.vcluster.oidc if team is not None else None
    isolation = settings.team_or_grant(name).isolation
    network = isolation.network
    if oidc is None or isolation.level == "off" or not network.enabled:
        return ""
    if network.cidrs or network.namespaces or not network.api_cidrs:
        return ""
    if network.internet and not _is_internal(urlsplit(oidc.issuer).hostname or ""):
        return ""
    return oidc.issuer


def _is_internal(host: str) -> bool:
    """Whether the internet does not have an address, or does not know a name, such as `sso`.

    Nothing is looked up: a name is known if it has a dot, and no end of _INTERNAL.
    """
    with suppress(ValueError):
        return not ip_address(host).is_global
    return "." not in host or host.endswith(_INTERNAL)


def _inside(settings: Settings, name: str) -> ClusterModel:
    """What is declared in a team's vCluster: in mode virtual KAI and queues, and its workloads."""
    path = settings.team_path(name)
    team = settings.teams[name]
    cluster = ClusterModel(
        name,
        path=path,
        workloads=tuple(_pods(settings, name)),
        declared=True,
        gpu_resource=settings.gpu.resource,
        gpus=team.gpus_with_slices,
        pools=team.gpus_by_pool,
        key=f"{path}.scheduler",
        queues_key=f"{path}.queues",
    )
    if team.scheduler.mode != "virtual":
        return cluster
    find_key = partial(settings.key_path_of, name, "scheduler")
    placed = walk(team.queues, f"{cluster.queues_key}.")
    return replace(
        cluster,
        kai=(_kai(settings, team.scheduler, cluster.key, find_key),),
        queues=_queues(team_arguments.queues(settings, name), placed),
    )


def _kai(
    settings: Settings,
    section: HostKai | Scheduler,
    path: str,
    find_key: Callable[..., str] | None = None,
) -> Kai:
    """A KAI as rules read it; a mode of GPU sharing in its chart values counts before the key.

    It is as written there, maybe no mode, which `kai_args` would not count. `path` is the key of
    its section. `find_key` finds the key paths of its keys if they may be written for all teams;
    None if all are below `path`.
    """
    return Kai(
        section.version,
        sharing=mode_in(section.version or "", section.values) or settings.sharing_of(section),
        values=section.values,
        untested=section.untested,
        path=path,
        chart=section.chart,
        shards=section.shards,
        topologies=section.topologies,
        fairshare=section.fairshare is not None,
        find_key=find_key,
    )


def _queues(args: "TreeArgs", placed: Iterable[PlacedQueue]) -> tuple[DeclaredQueue, ...]:
    """The queues of TreeArgs with their keys and shards, parents before their children.

    `args` has `queues` and maybe `gpus`, `pools` and `parent`; other keys are not read. `placed`
    has the same queues in the same order.

    Raises:
        ValueError: `placed` has more or fewer queues, or a quantity is one that settings refuse.
    """
    specs = named_specs(  # arguments from settings have no Outputs
        args["queues"],
        gpus=cast("float | None", args.get("gpus")),
        pools=cast("dict[str, float] | None", args.get("pools")),
        parent=cast("str | None", args.get("parent")),
    )
    return tuple(
        DeclaredQueue.of(name, spec, path=queue.path, shard=queue.shard)
        for (name, spec), queue in zip(specs, placed, strict=True)
    )


def _pods(settings: Settings, team: str) -> Iterator[PodTemplate]:
    """The pods of the files in a team's `workloads`; a path has the file's number, from 0.

    Nothing for a name without files, which need not be that of a team.
    """
    for number, documents in enumerate(settings.workloads.get(team, {}).values()):
        path = f"{key_path(('workloads', team))}[{number}]"
        for manifest in documents:
            name = manifest["metadata"]["name"]
            yield from workloads(manifest["kind"], manifest, name, path)
