"""GPU platforms for many teams, as code: the components and their arguments.

The names of this module are what other programs use. Each is imported when it is first asked for,
so that a command starts without the whole of Pulumi.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kai_fleet.gpu_stack import GpuStack as GpuStack
    from kai_fleet.gpu_stack import GpuStackArgs as GpuStackArgs
    from kai_fleet.host_guards import HostGuards as HostGuards
    from kai_fleet.host_guards import HostGuardsArgs as HostGuardsArgs
    from kai_fleet.kai_scheduler import KaiScheduler as KaiScheduler
    from kai_fleet.kai_scheduler import KaiSchedulerArgs as KaiSchedulerArgs
    from kai_fleet.queue_tree import QueueTree as QueueTree
    from kai_fleet.queue_tree import QueueTreeArgs as QueueTreeArgs
    from kai_fleet.team import Team as Team
    from kai_fleet.team import TeamArgs as TeamArgs
    from kai_fleet.team_namespace import TeamNamespace as TeamNamespace
    from kai_fleet.team_namespace import TeamNamespaceArgs as TeamNamespaceArgs
    from kai_fleet.virtual_cluster import VirtualCluster as VirtualCluster
    from kai_fleet.virtual_cluster import VirtualClusterArgs as VirtualClusterArgs

COMPONENTS: Final = (
    *("GpuStack", "HostGuards", "KaiScheduler", "QueueTree"),
    *("Team", "TeamNamespace", "VirtualCluster"),
)
__all__ = [name for component in COMPONENTS for name in (component, f"{component}Args")]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = re.sub(r"\B([A-Z])", r"_\1", name.removesuffix("Args")).lower()
    return getattr(import_module(f"kai_fleet.{module}"), name)
