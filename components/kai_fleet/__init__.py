"""GPU platforms for many teams, as code: the components and their arguments.

Other programs use the names of this module. A name is imported when it is first used, so that a
command starts without Pulumi's SDK and its Kubernetes package.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kai_fleet.backup.virtual_cluster_backup import (
        VirtualClusterBackup,
        VirtualClusterBackupArgs,
    )
    from kai_fleet.gpu_stack import GpuStack, GpuStackArgs
    from kai_fleet.isolation.host_guards import HostGuards, HostGuardsArgs
    from kai_fleet.isolation.team_namespace import TeamNamespace, TeamNamespaceArgs
    from kai_fleet.kai.kai_scheduler import KaiScheduler, KaiSchedulerArgs
    from kai_fleet.queue_tree import QueueTree, QueueTreeArgs
    from kai_fleet.team import Team, TeamArgs
    from kai_fleet.vcluster.virtual_cluster import VirtualCluster, VirtualClusterArgs

# Modules of the components; a module has a component's arguments, too: `TeamArgs`.
_MODULES = {
    "GpuStack": "gpu_stack",
    "HostGuards": "isolation.host_guards",
    "KaiScheduler": "kai.kai_scheduler",
    "QueueTree": "queue_tree",
    "Team": "team",
    "TeamNamespace": "isolation.team_namespace",
    "VirtualCluster": "vcluster.virtual_cluster",
    "VirtualClusterBackup": "backup.virtual_cluster_backup",
}
__all__ = [
    "GpuStack",
    "GpuStackArgs",
    "HostGuards",
    "HostGuardsArgs",
    "KaiScheduler",
    "KaiSchedulerArgs",
    "QueueTree",
    "QueueTreeArgs",
    "Team",
    "TeamArgs",
    "TeamNamespace",
    "TeamNamespaceArgs",
    "VirtualCluster",
    "VirtualClusterArgs",
    "VirtualClusterBackup",
    "VirtualClusterBackupArgs",
]


def __getattr__(name: str) -> object:
    """Import a component, or the arguments of one. Raises AttributeError for any other name."""
    module = _MODULES.get(name.removesuffix("Args"))
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"kai_fleet.{module}"), name)
