"""Arguments of a team: of its namespace, its vCluster, and the KAI and the queues in it.

Each function raises KeyError for a name that is no team of the stack; `namespace` also takes that
of a team with a stack of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kai_fleet.declaring.inputs import without_none
from kai_fleet.names import STACK_PULL_SECRET, TEAM_PULL_SECRET
from kai_fleet.releases import DEFAULT_VCLUSTER, DISABLED
from kai_fleet.releases.sharing import NV_FRACTIONS
from kai_fleet.vcluster.chart_values import argument_values
from kai_fleet_stack.arguments.shared import (
    add_chart_account,
    fields_in_clear,
    in_clear,
    kai_args,
    parents,
    queue_args,
    registries_args,
    tolerations_args,
)
from kai_fleet_stack.settings import Settings
from kai_fleet_stack.settings.sections.platform import Monitoring
from kai_fleet_stack.settings.sections.teams import Grant, TeamSettings
from kai_fleet_stack.settings.sections.vcluster import Vcluster
from kai_usage import mig

if TYPE_CHECKING:  # rules use this module without the components
    from kai_fleet.isolation.namespace_args import IsolationArgs
    from kai_fleet.isolation.team_namespace import TeamNamespaceArgs
    from kai_fleet.kai.kai_scheduler import KaiSchedulerArgs
    from kai_fleet.monitoring.arguments import MonitoringArgs
    from kai_fleet.queue_tree import TreeArgs
    from kai_fleet.team import QueueGuardArgs
    from kai_fleet.vcluster.virtual_cluster import VirtualClusterArgs


def vcluster(settings: Settings, name: str) -> VirtualClusterArgs:
    """Arguments of a team's vCluster, without kubeconfig or context of the host.

    The database's URL and registry passwords are in clear. Groups count only with a provider, whose
    `scopes` are only for kubectl and left out. So is what is None, as `version` may be.
    """
    team = settings.teams[name]
    vcluster = team.vcluster
    of_team = ("tolerations", "affinity", "registries", "labels", "annotations")
    args: VirtualClusterArgs = in_clear(vcluster)
    args.update(fields_in_clear(team, of_team))
    add_chart_account(settings, args, team.registries)
    args.update(
        {
            "namespace": f"team-{name}",
            "values": vcluster.values,
            "mode": team.scheduler.mode,
            "node_pool": team.node_pool,
            "control_pool": settings.control_pool(name),
            "resources": _resources(vcluster),
            "groups": vcluster.groups if vcluster.oidc else {},
            "isolation": team.isolation.level,
            "image_pull_secrets": _pull_secrets(settings, team),
            "stack_key": settings.team_path(name),
        }
    )
    if vcluster.oidc is not None:
        args["oidc"] = in_clear(vcluster.oidc.model_copy(update={"scopes": None}))
    return args


def _resources(vcluster: Vcluster) -> dict[str, dict[str, str]]:
    """`requests` and `limits` with the names of a pod's spec: `ephemeral-storage`.

    Amounts that are not set are left out, and so is a bound without any.
    """
    args = dict[str, dict[str, str]]()
    for bound, amounts in vcluster.resources.items():
        for name, amount in without_none(dict(amounts)).items():
            args.setdefault(bound, {})[name.replace("_", "-")] = amount
    return args


def _pull_secrets(settings: Settings, team: TeamSettings) -> list[str]:
    """Existing pull Secrets of a vCluster, and those that the stacks declare, each once.

    These are that of the platform's registries, if it has some, and then that of the team's.
    """
    facts = settings.platform_facts
    names = [*team.vcluster.image_pull_secrets]
    if settings.registries or (facts and facts.registries):
        names.append(STACK_PULL_SECRET)
    if team.registries:
        names.append(TEAM_PULL_SECRET)
    return list(dict.fromkeys(names))


def kai(settings: Settings, name: str) -> KaiSchedulerArgs:
    """Arguments of the KAI of a team in mode virtual, without its cluster.

    In other modes its version is "". The password of its chart's account is in clear text. It has
    no `registries`: pods in a vCluster are pulled with Secrets of the host's namespace.
    """
    team = settings.teams[name]
    return {
        **kai_args(settings, team.scheduler, team, team.registries),
        "labels": team.labels,
        "isolation": team.isolation.level,
    }


def guard(settings: Settings, name: str) -> QueueGuardArgs:
    """Arguments of the guard of a team's queues inside its vCluster.

    The caller has checked that the guard's mode is not `off`, which the component does not take.
    Without queues `outside` is `allow`.
    """
    return {
        "mode": settings.guard.mode,
        "outside": settings.guard.outside([*settings.teams[name].queues]),
        "gpu_resource": settings.gpu.resource,
    }


def queues(settings: Settings, name: str) -> TreeArgs:
    """Arguments of a team's queues, without their cluster.

    In mode virtual they are inside its vCluster: with `gpus`, and `pools` if the team has some. In
    mode host, and in `default`, they are for the host: below `parent`, the queue that the platform
    grants, and of that queue's shard. Nothing grants one in a platform's stack: without `parent`.
    """
    team = settings.teams[name]
    if team.scheduler.mode == "virtual":
        inside: TreeArgs = {
            "queues": queue_args(team.queues),
            "gpus": team.gpus_with_slices,
        }
        if team.pools:
            inside["pools"] = team.gpus_by_pool
        return inside
    grant = settings.granted(name)
    on_host: TreeArgs = {
        "queues": queue_args(team.queues, grant.shard),
        "cluster": settings.cluster.name,
    }
    if grant.parent_queue is not None:
        on_host["parent"] = grant.parent_queue
    return on_host


def namespace(settings: Settings, name: str) -> TeamNamespaceArgs:
    """Arguments of the namespace of a team of this stack, or of one with a stack of its own.

    A team of this stack also has the version and values of its vCluster, without a database's URL.
    In a team's own stack they lack what only the platform knows, such as other teams' nodes.
    `Arguments.namespace` adds `use_existing` and `queue_refusal`.
    """
    team = settings.team_or_grant(name)
    scheduler, _ = settings.scheduler_and_queue_of(name)
    has_own_stack = name in settings.team_stacks
    args = _required_of_namespace(settings, name)
    if scheduler == "host" and has_own_stack:
        args["queue_prefix"] = f"{name}-"
    if settings.monitoring is not None:
        args["monitoring"] = _monitoring(team, settings.monitoring, scheduler)
    if not has_own_stack:
        vcluster = _without_database(settings, name)
        args["vcluster_version"] = vcluster.get("version", DEFAULT_VCLUSTER)
        args["vcluster_values"] = argument_values(name, vcluster)
    return args


def _required_of_namespace(settings: Settings, name: str) -> TeamNamespaceArgs:
    """The arguments that the namespace of any team has; `gpus` are whole GPUs, without slices.

    The caller declares HostGuards before. Registry passwords are in clear text.
    """
    team = settings.team_or_grant(name)
    kai = settings.kai
    sharing = settings.sharing_of(kai) if kai else DISABLED
    scheduler, queue = settings.scheduler_and_queue_of(name)
    by_host = scheduler == "host"
    slices_as_gpus = int(mig.gpus_of(team.slices))
    return {
        "name": f"team-{name}",
        "guards": "declared",  # the program declares them before any namespace
        "gpus": max(0, team.gpus_with_slices - slices_as_gpus),
        "gpu_resource": settings.gpu.resource,
        "slices": team.slices,
        "devices": team.isolation.devices,
        "device_classes": team.isolation.device_classes,
        "node_pool": team.node_pool,
        "control_pool": settings.control_pool(name),
        "foreign_pools": settings.foreign_pools(name),
        "scheduler": scheduler,
        "isolation": _isolation(settings, name),
        "tolerations": tolerations_args(team.tolerations),
        "queues": [queue] if by_host and queue else [],
        "foreign_queues": settings.foreign_queues(name),
        "host_kai": kai is not None,
        "guard": settings.guard.mode,
        "gpu_sharing": sharing != DISABLED,
        "nv_fractions": by_host and sharing == NV_FRACTIONS,
        # From sources and not from a team's values: level restricted admits these images.
        "kai_images": settings.known_sources.kai_images,
        "labels": team.labels,
        "annotations": team.annotations,
        "registries": registries_args(settings.registries),
        "account": name in settings.team_stacks,
    }


def _isolation(settings: Settings, name: str) -> IsolationArgs:
    """Argument `isolation`; a team may use the storage class of vClusters, too.

    Without `devices` and `device_classes`, which are arguments beside it.
    """
    isolation = settings.team_or_grant(name).isolation
    of_namespace = {"devices": None, "device_classes": None}
    args: IsolationArgs = in_clear(isolation.model_copy(update=of_namespace))
    args["volume_classes"] = settings.volume_classes(name)
    return args


def _monitoring(
    team: TeamSettings | Grant, monitoring: Monitoring, scheduler: str
) -> MonitoringArgs:
    """Arguments of the monitoring of a team's namespace.

    KAI and queues inside are monitored only for a team of this stack: those of a team stack are not
    known here. `scheduler` is that of the namespace: `inside`, `host` or `none`; in the result it
    is whether KAI inside is monitored.
    """
    args: MonitoringArgs = in_clear(monitoring)
    args["scheduler"] = False
    args["parent_queues"] = []
    if isinstance(team, TeamSettings) and scheduler == "inside":
        args["scheduler"] = True
        args["parent_queues"] = parents(team.queues)
    return args


def _without_database(settings: Settings, name: str) -> VirtualClusterArgs:
    """Arguments of a team's vCluster; without its store if that has a database's URL, a secret."""
    args = vcluster(settings, name)
    if settings.teams[name].vcluster.store.database is not None:
        args["store"] = {}
    return args
