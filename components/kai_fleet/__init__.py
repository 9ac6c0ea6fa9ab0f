"""GPU platforms for many teams, as code: the components.

The names of this module are what other programs use. Each is imported when it is first asked for,
so that a command starts without the whole of Pulumi.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kai_fleet.cluster.access import ClusterAccess as ClusterAccess
    from kai_fleet.fleet.from_settings import declared_queues as declared_queues
    from kai_fleet.fleet.model import DeclaredKai as DeclaredKai
    from kai_fleet.fleet.model import DeclaredTeam as DeclaredTeam
    from kai_fleet.fleet.resolve import fleet_of as fleet_of
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
    from kai_fleet.kai.scheduling import QueueTree as QueueTree
    from kai_fleet.kai.scheduling import QueueTreeArgs as QueueTreeArgs
    from kai_fleet.settings import Settings as Settings
    from kai_fleet.settings import load as load
    from kai_fleet.settings.sections.platform import Gpu as Gpu
    from kai_fleet.settings.sections.queues import Queue as Queue
    from kai_fleet.team import Team as Team
    from kai_fleet.team import TeamArgs as TeamArgs
    from kai_fleet.vcluster.virtual_cluster import VirtualCluster as VirtualCluster
    from kai_fleet.vcluster.virtual_cluster import (
        VirtualClusterArgs as VirtualClusterArgs,
    )

_NAMES: Final = {
    "cluster.access": "ClusterAccess",
    "fleet.model": "DeclaredKai DeclaredTeam",
    "fleet.resolve": "fleet_of",
    "fleet.from_settings": "declared_queues",
    "guards.components": "HostGuard HostGuardArgs QueueGuard QueueGuardArgs",
    "guards.host_rules": "HostRules",
    "guards.queue_rules": "QueueRules",
    "host.gpu_stack": "GpuStack GpuStackArgs",
    "host.platform": "Platform PlatformArgs",
    "isolation.team_namespace": "TeamNamespace TeamNamespaceArgs",
    "kai.kai_scheduler": "KaiScheduler KaiSchedulerArgs",
    "kai.scheduling": "QueueTree QueueTreeArgs",
    "settings": "Settings load",
    "settings.sections.platform": "Gpu",
    "settings.sections.queues": "Queue",
    "team": "Team TeamArgs",
    "vcluster.virtual_cluster": "VirtualCluster VirtualClusterArgs",
}
_WHERE: Final = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = [*_WHERE]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"kai_fleet.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
