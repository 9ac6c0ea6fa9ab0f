"""GPU platforms for many teams, as code: components, policies, and the `fleet` command.

The names of this module are what other programs use. Each is imported when it is first asked for,
so that a command starts without the whole of Pulumi.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kai_fleet.cli.plan.offline import plan_program as plan_program
    from kai_fleet.cli.plan.offline import plan_settings as plan_settings
    from kai_fleet.components.cluster.access import ClusterAccess as ClusterAccess
    from kai_fleet.components.guards.host_guard import HostGuard as HostGuard
    from kai_fleet.components.guards.host_guard import HostGuardArgs as HostGuardArgs
    from kai_fleet.components.guards.host_rules import HostRules as HostRules
    from kai_fleet.components.guards.queue_guard import QueueGuard as QueueGuard
    from kai_fleet.components.guards.queue_guard import QueueGuardArgs as QueueGuardArgs
    from kai_fleet.components.host.gpu_stack import GpuStack as GpuStack
    from kai_fleet.components.host.gpu_stack import GpuStackArgs as GpuStackArgs
    from kai_fleet.components.host.platform import Platform as Platform
    from kai_fleet.components.host.platform import PlatformArgs as PlatformArgs
    from kai_fleet.components.isolation.team_namespace import TeamNamespace as TeamNamespace
    from kai_fleet.components.isolation.team_namespace import TeamNamespaceArgs as TeamNamespaceArgs
    from kai_fleet.components.kai.kai_scheduler import KaiScheduler as KaiScheduler
    from kai_fleet.components.kai.kai_scheduler import KaiSchedulerArgs as KaiSchedulerArgs
    from kai_fleet.components.kai.queue_tree import QueueTree as QueueTree
    from kai_fleet.components.kai.queue_tree import QueueTreeArgs as QueueTreeArgs
    from kai_fleet.components.settings import Settings as Settings
    from kai_fleet.components.settings import load as load
    from kai_fleet.components.settings.sections.queues import Queue as Queue
    from kai_fleet.components.team import Team as Team
    from kai_fleet.components.team import TeamArgs as TeamArgs
    from kai_fleet.components.vcluster.virtual_cluster import VirtualCluster as VirtualCluster
    from kai_fleet.components.vcluster.virtual_cluster import (
        VirtualClusterArgs as VirtualClusterArgs,
    )
    from kai_fleet.components.workloads.gpu_deployment import GpuDeployment as GpuDeployment
    from kai_fleet.components.workloads.gpu_deployment import GpuDeploymentArgs as GpuDeploymentArgs
    from kai_fleet.components.workloads.gpu_pod import GpuPod as GpuPod
    from kai_fleet.components.workloads.pod_template import PodArgs as PodArgs
    from kai_fleet.components.workloads.vllm_server import VllmServer as VllmServer
    from kai_fleet.components.workloads.vllm_server import VllmServerArgs as VllmServerArgs

_WHERE: Final = {
    "ClusterAccess": "components.cluster.access",
    "GpuDeployment": "components.workloads.gpu_deployment",
    "GpuDeploymentArgs": "components.workloads.gpu_deployment",
    "GpuPod": "components.workloads.gpu_pod",
    "GpuStack": "components.host.gpu_stack",
    "GpuStackArgs": "components.host.gpu_stack",
    "HostGuard": "components.guards.host_guard",
    "HostGuardArgs": "components.guards.host_guard",
    "HostRules": "components.guards.host_rules",
    "KaiScheduler": "components.kai.kai_scheduler",
    "KaiSchedulerArgs": "components.kai.kai_scheduler",
    "Platform": "components.host.platform",
    "PlatformArgs": "components.host.platform",
    "PodArgs": "components.workloads.pod_template",
    "Queue": "components.settings.sections.queues",
    "QueueGuard": "components.guards.queue_guard",
    "QueueGuardArgs": "components.guards.queue_guard",
    "QueueTree": "components.kai.queue_tree",
    "QueueTreeArgs": "components.kai.queue_tree",
    "Settings": "components.settings",
    "Team": "components.team",
    "TeamArgs": "components.team",
    "TeamNamespace": "components.isolation.team_namespace",
    "TeamNamespaceArgs": "components.isolation.team_namespace",
    "VirtualCluster": "components.vcluster.virtual_cluster",
    "VirtualClusterArgs": "components.vcluster.virtual_cluster",
    "VllmServer": "components.workloads.vllm_server",
    "VllmServerArgs": "components.workloads.vllm_server",
    "load": "components.settings",
    "plan_program": "cli.plan.offline",
    "plan_settings": "cli.plan.offline",
}
__all__ = [*_WHERE, "policy_pack"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"kai_fleet.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)


def policy_pack() -> Path:
    """The folder of the policy pack: `pulumi preview --policy-pack FOLDER` in any project."""
    here = Path(__file__).resolve().parent
    checkout = here.parent / "policies"
    return checkout if (checkout / "PulumiPolicy.yaml").is_file() else here / "policy_pack"
