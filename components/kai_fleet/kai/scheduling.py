"""What one KAI has beyond its release and its queues: shards and topologies."""

from __future__ import annotations

import pulumi

from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.fleet.model import DeclaredKai
from kai_fleet.kai.kai_scheduler import KaiScheduler
from kai_fleet.kai.scheduling_shards import (
    SchedulingShards,
    SchedulingShardsArgs,
    has_shards,
)
from kai_fleet.kai.topologies import Topologies, TopologiesArgs
from kai_fleet.settings.sections.scheduling import Scheduling


def declare_scheduling(
    name: str,
    kai: DeclaredKai,
    scheduler: KaiScheduler,
    access: ClusterAccess,
    opts: pulumi.ResourceOptions,
) -> list[pulumi.Resource]:
    """The shards and topologies of one KAI, once it is ready; nothing where none are configured."""
    after = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[scheduler.ready]))
    scheduling, declared = kai.scheduling or Scheduling(), list[pulumi.Resource]()
    if has_shards(scheduling):
        args = SchedulingShardsArgs(
            version=scheduler.version,
            access=access,
            scheduling=scheduling,
            release=scheduler.release.id,
            prometheus_by_chart=kai.release is not None and kai.release.prometheus_values,
        )
        declared.append(SchedulingShards(f"{name}-shards", args, after))
    if scheduling.topologies:
        declared.append(
            Topologies(f"{name}-topologies", TopologiesArgs(scheduling.topologies), after)
        )
    return declared
