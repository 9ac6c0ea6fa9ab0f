"""Arguments of what a host has once: the GPU stack, guards, KAI with its queues, monitoring."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kai_fleet.declaring.inputs import TolerationArgs, toleration_text
from kai_fleet.queues.amounts import UNLIMITED, from_kai
from kai_fleet.queues.specs import named_specs, walk
from kai_fleet.releases import GPU_PROVIDERS
from kai_fleet_stack.arguments.shared import (
    add_chart_account,
    fields_in_clear,
    kai_args,
    parents,
    queue_args,
    registries_args,
    tolerations_args,
)
from kai_fleet_stack.settings import Settings

if TYPE_CHECKING:  # rules use this module without the components
    from kai_fleet.gpu_stack import GpuStackArgs
    from kai_fleet.isolation.host_guards import HostGuardsArgs
    from kai_fleet.kai.kai_scheduler import KaiSchedulerArgs
    from kai_fleet.monitoring.arguments import FleetMonitoringArgs
    from kai_fleet.queue_tree import QueueTreeArgs, ShareArgs


def gpu_stack(settings: Settings) -> GpuStackArgs:
    """Arguments of the GPU stack, whose DaemonSets tolerate what all teams and grants tolerate.

    Passwords are in clear text. `use_existing` is left to `Arguments.gpu_stack`.
    """
    gpu = settings.gpu
    tolerations = dict[str, TolerationArgs]()
    for name in settings.all_teams:
        for toleration in tolerations_args(settings.team_or_grant(name).tolerations):
            tolerations[str(toleration_text(toleration))] = toleration
    of_gpu = ("provider", "version", "chart", "system_priorities")
    args: GpuStackArgs = fields_in_clear(gpu, of_gpu)
    add_chart_account(settings, args, {})
    args["values"] = gpu.values
    args["tolerations"] = list(tolerations.values())
    args["registries"] = registries_args(settings.registries)
    args["in_kind"] = settings.cluster.kind is not None
    return args


def guards(settings: Settings) -> HostGuardsArgs:
    """Arguments of the guards. Guards that exist without being in the state are taken over.

    They are of an interrupted update: `existing.find`, which has to come before, refuses the host
    of another stack.
    """
    # False: declare and take over; unset would refuse.
    return {"host_kai": settings.kai is not None, "use_existing": False}


def kai(settings: Settings) -> KaiSchedulerArgs:
    """Arguments of the host's KAI, without its connection; passwords are in clear text.

    `use_existing` has the CRD of ClusterPolicy if the GPU stack installs it. Raises AssertionError
    if the settings have no KAI on the host.
    """
    host_kai = settings.kai
    assert host_kai is not None
    # The GPU operator installs the CRD.
    has_crd = GPU_PROVIDERS[settings.gpu.provider].cluster_policy
    return {
        **kai_args(settings, host_kai, host_kai, settings.registries),
        "labels": settings.labels,
        "isolation": settings.isolation.level,
        "registries": registries_args(settings.registries),
        "use_existing": ["clusterPolicyCrd"] if has_crd else [],
    }


def queues(settings: Settings) -> QueueTreeArgs:
    """Arguments of the host's queues, without their connection, all with a GPU quota.

    The quota is the file's, else the one that QueueTree would fill in. A queue that teams use, or
    that is granted to them, gets the sum of their GPUs in place of an unlimited quota. Its limit,
    unless it has one, is that sum or the quota, the larger one. `tenants` are the teams with a
    stack of their own.

    Raises:
        ValueError: an invalid quantity, which settings refuse.
    """
    tree = queue_args(settings.queues)
    gpus_by_queue = _gpus_by_queue(settings)
    # Computed before a limit is written, which would change the sums of the queues above.
    specs = named_specs(tree)
    for (name, queue), (_, spec) in zip(walk(tree), specs, strict=True):
        quota = from_kai(spec["resources"]["gpu"]["quota"])
        queue["gpu"] = _gpu_share(queue.get("gpu", {}), quota, gpus_by_queue.get(name))
    return {
        "queues": tree,
        "shared": True,
        "tenants": sorted(settings.team_stacks),
        "cluster": settings.cluster.name,
    }


def _gpus_by_queue(settings: Settings) -> dict[str, int]:
    """GPUs by queue of the host: the sum over the teams that use it or are granted it.

    A whole GPU counts 1, a MIG slice its first number (3g: 3). A queue that only teams without GPUs
    have is there with 0; one that no team has is left out.
    """
    gpus = dict[str, int]()
    for name in settings.all_teams:
        _, queue = settings.scheduler_and_queue_of(name)
        if queue is None:
            continue
        gpus.setdefault(queue, 0)
        gpus[queue] += settings.team_or_grant(name).gpus_with_slices
    return gpus


def _gpu_share(share: ShareArgs, quota: float, most: int | None) -> ShareArgs:
    """A GPU share with its quota; and with a limit, the larger of `most` and quota, if it has none.

    Args:
        share: as the arguments of the queue have it; it stays as it is.
        quota: the quota that the share has without this, in GPUs; `most` replaces UNLIMITED.
        most: GPUs of the teams that use the queue; None if none does, and then no limit is added.
    """
    if most is None:
        return {**share, "quota": quota}
    if quota == UNLIMITED:
        quota = most
    return {"limit": max(most, quota), **share, "quota": quota}


def monitoring(settings: Settings) -> FleetMonitoringArgs:
    """Arguments of the host's monitoring. Raises AssertionError if the settings have none."""
    assert settings.monitoring is not None
    of_monitoring = ("namespace", "labels", "interval")
    args: FleetMonitoringArgs = fields_in_clear(settings.monitoring, of_monitoring)
    args["gpu_resource"] = settings.gpu.resource
    args["host_kai"] = settings.kai is not None
    args["parent_queues"] = parents(settings.queues)
    return args
