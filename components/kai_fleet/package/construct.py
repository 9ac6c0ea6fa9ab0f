"""The component of each kind, declared as this repository's own program does; and its outputs."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, Final

import pulumi

from kai_fleet.fleet.deployed_state import declared
from kai_fleet.fleet.from_settings import declared_queues
from kai_fleet.fleet.installed import DATA_SOURCE
from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.fleet.queues import leaves
from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.guards.components import HostGuard, HostGuardArgs, QueueGuard, QueueGuardArgs
from kai_fleet.guards.host_rules import HostRules
from kai_fleet.guards.policies import QUEUES, policy_name
from kai_fleet.guards.queue_rules import QueueRules
from kai_fleet.host.gpu_stack import GpuStack, GpuStackArgs
from kai_fleet.host.platform import Platform, PlatformArgs
from kai_fleet.isolation.team_namespace import TeamNamespaceArgs
from kai_fleet.isolation.team_places import refuse_misfits
from kai_fleet.kai.kai_scheduler import KaiScheduler, KaiSchedulerArgs
from kai_fleet.kai.scheduling import QueueTree, QueueTreeArgs, declare_scheduling
from kai_fleet.monitoring.components import monitoring_of
from kai_fleet.options import deleted_with, hide_values
from kai_fleet.package.request import NEWEST_KAI, ComponentRequest, Result
from kai_fleet.package.workloads import workload
from kai_fleet.provider import PluginError
from kai_fleet.releases import UnknownVersionError
from kai_fleet.releases.chart_values import merged, nested
from kai_fleet.releases.keys import KAI_NAMESPACE
from kai_fleet.settings import Settings
from kai_fleet.settings.sections import platform, teams
from kai_fleet.settings.sections.isolation import Isolation
from kai_fleet.settings.sections.vcluster import Vcluster
from kai_fleet.team import Team, TeamArgs, teams_of
from kai_fleet.vcluster.virtual_cluster import VirtualCluster, VirtualClusterArgs
from kai_fleet.workloads import placement


def platform_component(request: ComponentRequest) -> Result:
    """The host, then its teams and what they run, all below the one component."""
    request.arguments()
    settings = _with_passwords(request.settings(request.inputs.raw, {}), request)
    kubeconfig = request.inputs.at("cluster", "kubeconfig")
    fleet = fleet_of(settings, request.deployed)
    run = declared(fleet.teams, fleet.grants, request.deployed, None)
    existing = request.existing()
    refuse_misfits(fleet, run, existing)
    component = Platform(
        request.name, PlatformArgs(fleet, request.deployed, kubeconfig, existing), request.opts
    )
    monitoring_of(component)
    made = teams_of(component, run, parent=component)
    workloads = placement.place(fleet, made)
    return component, {
        "version": settings.kai.version if settings.kai else None,
        "queues": leaves(fleet.host.queues),
        "teams": {name: team.summary for name, team in made.items()},
        "kubeconfigs": pulumi.Output.secret(
            {name: team.vcluster.kubeconfig for name, team in made.items()}
        ),
        "urls": {name: it["url"] for name, it in workloads.items() if "url" in it},
    }


def team(request: ComponentRequest) -> Result:
    """A team on a host that another program has, or this one elsewhere."""
    request.arguments()
    raw, name, access = request.inputs.raw, request.name, request.access()
    stack = request.part("cluster", "kai", "guard", "sources")
    stack["teams"] = {name: request.part(of=teams.TeamSettings)}
    if "gpuResource" in raw:
        stack["gpu"] = {"resource": raw["gpuResource"]}
    if "kai" in raw and "queue" in raw:
        # The host's tree is not ours; this leaf is known of it.
        stack["queues"] = {raw["queue"]: {"gpu": {"quota": raw.get("gpus", 0)}}}
    settings = request.settings(stack, {f"teams.{name}": ""})
    settings = _with_passwords(settings, request, name)
    own = fleet_of(settings, request.deployed).teams[name]
    own = _with_database(own, request, "vcluster", "store", "dataSource")
    args = TeamArgs(own, access, request.deployed)
    if "namespace" in raw:
        args = replace(args, namespace=request.inputs.at("namespace"))
    else:
        args = replace(args, place=TeamNamespaceArgs(access, own, existing=request.existing()))
    component = Team(name, args, request.on_cluster())
    return component, {
        "namespace": component.vcluster.namespace,
        "server": component.vcluster.server,
        "kubeconfig": component.vcluster.kubeconfig,
        "version": settings.teams[name].scheduler.version,
        "queues": component.queues,
    }


def virtual_cluster(request: ComponentRequest) -> Result:
    """A vCluster in a namespace that is there."""
    args, name = request.arguments(), request.name
    scheduler = {"mode": args.mode}
    if args.mode == "virtual":
        scheduler["version"] = NEWEST_KAI
    # Who made the namespace gave the vCluster its rights; else its chart does.
    isolation = Isolation() if args.prepared else Isolation(level="off")
    own = request.part(of=Vcluster)
    own.pop("nodePool", None)  # here it is the team's
    stack = request.part("cluster", "sources")
    stack["teams"] = {
        name: {
            "scheduler": {"mode": "default"},
            "nodePool": args.node_pool,
            "vcluster": own,
            **request.part("registries"),
            "isolation": {"level": isolation.level},
        }
    }
    places = {f"teams.{name}.vcluster": "", f"teams.{name}": ""}
    settings = request.settings(stack, places, subject="vcluster")
    settings = _with_passwords(settings, request, name)
    vcluster = fleet_of(settings, request.deployed).teams[name]
    vcluster = _with_database(vcluster, request, "store", "dataSource")
    component = VirtualCluster(
        name,
        VirtualClusterArgs(
            request.access(),
            replace(vcluster, mode=args.mode, control_pool=args.control_pool),
            namespace=request.inputs.at("namespace"),
            deployed=request.deployed,
        ),
        request.on_cluster(),
    )
    names = ("namespace", "server", "kubeconfig", "version")
    return component, {name: getattr(component, name) for name in names}


def _with_database(team: DeclaredTeam, request: ComponentRequest, *path: str) -> DeclaredTeam:
    """The team with the database that another resource makes, where it is one's output."""
    url = request.inputs.outputs.get(path)
    if url is None:
        return team
    return replace(team, control_plane=merged(team.control_plane, nested(DATA_SOURCE, url)))


def _with_passwords(settings: Settings, request: ComponentRequest, team: str = "") -> Settings:
    """The settings with the passwords that other resources make, as their outputs: those of a
    team's registries, or of the stack's.
    """
    own = settings.teams[team].registries if team else settings.registries
    made = {at[1]: it for at, it in request.inputs.outputs.items() if at[0] == "registries"}
    given = {
        registry: it.model_copy(update={"password": made[registry]}) if registry in made else it
        for registry, it in own.items()
    }
    of_team = {team: settings.teams[team].model_copy(update={"registries": given})} if team else {}
    return settings.model_copy(update={"teams": of_team} if team else {"registries": given})


def kai_scheduler(request: ComponentRequest) -> Result:
    """A KAI, with its shards and topologies."""
    args = request.arguments()
    stack = request.part("cluster", "sources", "registries")
    stack["kai"] = request.part(of=platform.HostKai)
    settings = _with_passwords(request.settings(stack, {"kai": ""}), request)
    (kai,) = fleet_of(settings, request.deployed).host.kai
    opts = request.on_cluster()
    component = KaiScheduler(
        request.name,
        KaiSchedulerArgs(
            kai,
            request.access(),
            cluster_policy_crd=args.cluster_policy_crd,
            existing=request.existing(),
            deployed=request.deployed,
            ready_timeout=args.ready_timeout,
        ),
        opts,
    )
    child = pulumi.ResourceOptions(parent=component, deleted_with=opts.deleted_with)
    declare_scheduling(request.name, component, child)
    return component, {"version": component.version, "namespace": KAI_NAMESPACE}


def queue_tree(request: ComponentRequest) -> Result:
    """Queues of a cluster whose KAI is there."""
    args = request.arguments()
    shards = {queue.shard: dict[str, Any]() for queue in args.queues.values() if queue.shard}
    stack = request.part("cluster", "queues")
    stack["kai"] = {"version": args.version or NEWEST_KAI, "shards": shards}
    settings = request.settings(stack, {"kai": "", "queues": "queues"})
    component = QueueTree(
        request.name,
        QueueTreeArgs(
            declared_queues(
                settings.queues,
                gpu_limit=args.gpu_limit,
                parent=args.parent,
                shard=args.shard,
                limits=args.limits,
            ),
            request.access(),
            parent=args.parent,
        ),
        request.opts,
    )
    return component, {"queues": component.leaves}


def queue_guard(request: ComponentRequest) -> Result:
    """What pods may name a queue."""
    args = request.arguments()
    names = ("team", "queues", "mode", "gpu_sharing", "prefix", "pod_groups")
    rules = QueueRules(**{name: getattr(args, name) for name in names})
    guard = QueueGuardArgs(rules, request.inputs.at("namespace"))
    component = QueueGuard(request.name, guard, request.on_cluster())
    return component, {"policy": f"{QUEUES}{args.team}"}


def host_guard(request: ComponentRequest) -> Result:
    """What may be made in a namespace of the host."""
    args = request.arguments()
    rules = HostRules(**{it.name: getattr(args, it.name) for it in fields(HostRules)})
    guard = HostGuardArgs(request.inputs.at("namespace"), rules)
    component = HostGuard(request.name, guard, request.on_cluster())
    return component, {"policy": policy_name("pods", f"-of-{args.team}")}


def gpu_stack(request: ComponentRequest) -> Result:
    """What makes nodes advertise GPUs."""
    request.arguments()
    stack = request.part("cluster", "sources", "registries")
    stack["gpu"] = request.part(of=platform.Gpu)
    settings = _with_passwords(request.settings(stack, {"gpu": ""}), request)
    args = GpuStackArgs(settings.gpu, registries=settings.registries, existing=request.existing())
    component = GpuStack(request.name, args, request.on_cluster())
    return component, {"version": component.version, "namespace": component.namespace}


CONSTRUCTORS: Final[Mapping[str, Callable[[ComponentRequest], Result]]] = {
    "Platform": platform_component,
    "Team": team,
    "VirtualCluster": virtual_cluster,
    "KaiScheduler": kai_scheduler,
    "QueueTree": queue_tree,
    "QueueGuard": queue_guard,
    "HostGuard": host_guard,
    "GpuStack": gpu_stack,
    "GpuPod": workload,
    "GpuDeployment": workload,
    "VllmServer": workload,
}


def construct(request: ComponentRequest) -> Result:
    """Declare the component. Raises PluginError with a sentence for every mistake of its user."""
    if request.kind not in CONSTRUCTORS:
        raise PluginError(
            f"the package kai-fleet has no component {request.kind}; write one of"
            f" {', '.join(CONSTRUCTORS)}"
        )
    cluster = request.opts.deleted_with
    if isinstance(cluster, pulumi.Resource):
        # The option holds for the component alone, and what it declares is what would be deleted.
        inside = pulumi.ResourceOptions(transformations=[deleted_with(cluster)])
        request = replace(request, opts=pulumi.ResourceOptions.merge(request.opts, inside))
    if request.inputs.has_secrets:
        hide_values()
    try:
        return CONSTRUCTORS[request.kind](request)
    except (UnknownVersionError, ValueError, pulumi.RunError) as error:
        raise PluginError(f"{request.kind} {request.name}: {error}") from None
