"""GPU platforms for many teams, as code: the components and their arguments.

Other programs use the names of this module. A name is imported when it is first used, so that a
command starts without Pulumi's SDK and its Kubernetes package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kai_fleet.gpu_stack import GpuStack as GpuStack
    from kai_fleet.gpu_stack import GpuStackArgs as GpuStackArgs
    from kai_fleet.isolation.host_guards import HostGuards as HostGuards
    from kai_fleet.isolation.host_guards import HostGuardsArgs as HostGuardsArgs
    from kai_fleet.isolation.team_namespace import TeamNamespace as TeamNamespace
    from kai_fleet.isolation.team_namespace import TeamNamespaceArgs as TeamNamespaceArgs
    from kai_fleet.kai_scheduler import KaiScheduler as KaiScheduler
    from kai_fleet.kai_scheduler import KaiSchedulerArgs as KaiSchedulerArgs
    from kai_fleet.queue_tree import QueueTree as QueueTree
    from kai_fleet.queue_tree import QueueTreeArgs as QueueTreeArgs
    from kai_fleet.team import Team as Team
    from kai_fleet.team import TeamArgs as TeamArgs
    from kai_fleet.vcluster.virtual_cluster import VirtualCluster as VirtualCluster
    from kai_fleet.vcluster.virtual_cluster import VirtualClusterArgs as VirtualClusterArgs

# Modules of the components; a module has a component's arguments, too: `TeamArgs`.
_MODULES: Final = {
    "GpuStack": "gpu_stack",
    "HostGuards": "isolation.host_guards",
    "KaiScheduler": "kai_scheduler",
    "QueueTree": "queue_tree",
    "Team": "team",
    "TeamNamespace": "isolation.team_namespace",
    "VirtualCluster": "vcluster.virtual_cluster",
}
COMPONENTS: Final = tuple(_MODULES)
__all__ = [*COMPONENTS, *(f"{component}Args" for component in COMPONENTS)]


def __getattr__(name: str) -> object:
    module = _MODULES.get(name.removesuffix("Args"))
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"kai_fleet.{module}"), name)
