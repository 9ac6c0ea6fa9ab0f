"""GPU platforms for many teams, as code: the components.

The names of this module are what other programs use. Each is imported when it is first asked for,
so that a command starts without the whole of Pulumi.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kai_fleet.cluster.access import ClusterAccess as ClusterAccess
    from kai_fleet.fleet.model import DeclaredKai as DeclaredKai
    from kai_fleet.fleet.model import DeclaredTeam as DeclaredTeam
    from kai_fleet.fleet.resolve import fleet_of as fleet_of
    from kai_fleet.fleet.trees import declared_queues as declared_queues
    from kai_fleet.guards.components import HostGuard as HostGuard
    from kai_fleet.guards.components import HostGuardArgs as HostGuardArgs
    from kai_fleet.guards.components import QueueGuard as QueueGuard
    from kai_fleet.guards.components import QueueGuardArgs as QueueGuardArgs
    from kai_fleet.guards.host_rules import HostRules as HostRules
    from kai_fleet.guards.queue_rules import QueueRules as QueueRules
    from kai_fleet.host.gpu_stack import GpuStack as GpuStack
    from kai_fleet.host.gpu_stack import GpuStackArgs as GpuStackArgs
    from kai_fleet.host.platform import Platform as Platform
    from kai_fleet.host.platform import PlatformArgs as PlatformArgs
    from kai_fleet.isolation.team_namespace import TeamNamespace as TeamNamespace
    from kai_fleet.isolation.team_namespace import TeamNamespaceArgs as TeamNamespaceArgs
    from kai_fleet.kai.kai_scheduler import KaiScheduler as KaiScheduler
    from kai_fleet.kai.kai_scheduler import KaiSchedulerArgs as KaiSchedulerArgs
    from kai_fleet.kai.queue_tree import QueueTree as QueueTree
    from kai_fleet.kai.queue_tree import QueueTreeArgs as QueueTreeArgs
    from kai_fleet.settings import Settings as Settings
    from kai_fleet.settings import load as load
    from kai_fleet.settings.sections.queues import Queue as Queue
    from kai_fleet.team import Team as Team
    from kai_fleet.team import TeamArgs as TeamArgs
    from kai_fleet.vcluster.virtual_cluster import VirtualCluster as VirtualCluster
    from kai_fleet.vcluster.virtual_cluster import (
        VirtualClusterArgs as VirtualClusterArgs,
    )
    from kai_fleet.workloads.pods import GpuDeployment as GpuDeployment
    from kai_fleet.workloads.pods import GpuDeploymentArgs as GpuDeploymentArgs
    from kai_fleet.workloads.pods import GpuPod as GpuPod
    from kai_fleet.workloads.pods import PodArgs as PodArgs
    from kai_fleet.workloads.vllm_server import VllmServer as VllmServer
    from kai_fleet.workloads.vllm_server import VllmServerArgs as VllmServerArgs

_WHERE: Final = {
    "ClusterAccess": "cluster.access",
    "DeclaredKai": "fleet.model",
    "DeclaredTeam": "fleet.model",
    "GpuDeployment": "workloads.pods",
    "GpuDeploymentArgs": "workloads.pods",
    "GpuPod": "workloads.pods",
    "GpuStack": "host.gpu_stack",
    "GpuStackArgs": "host.gpu_stack",
    "HostGuard": "guards.components",
    "HostGuardArgs": "guards.components",
    "HostRules": "guards.host_rules",
    "KaiScheduler": "kai.kai_scheduler",
    "KaiSchedulerArgs": "kai.kai_scheduler",
    "Platform": "host.platform",
    "PlatformArgs": "host.platform",
    "PodArgs": "workloads.pods",
    "Queue": "settings.sections.queues",
    "QueueGuard": "guards.components",
    "QueueGuardArgs": "guards.components",
    "QueueRules": "guards.queue_rules",
    "QueueTree": "kai.queue_tree",
    "QueueTreeArgs": "kai.queue_tree",
    "Settings": "settings",
    "Team": "team",
    "TeamArgs": "team",
    "TeamNamespace": "isolation.team_namespace",
    "TeamNamespaceArgs": "isolation.team_namespace",
    "VirtualCluster": "vcluster.virtual_cluster",
    "VirtualClusterArgs": "vcluster.virtual_cluster",
    "VllmServer": "workloads.vllm_server",
    "VllmServerArgs": "workloads.vllm_server",
    "declared_queues": "fleet.trees",
    "fleet_of": "fleet.resolve",
    "load": "settings",
}
__all__ = [*_WHERE]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"kai_fleet.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
