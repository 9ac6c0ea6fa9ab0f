"""What one KAI has beyond its release and its queues: values, shards and topologies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.kai.kai_scheduler import KaiScheduler
from kai_fleet.kai.scheduling_shards import (
    SchedulingShards,
    SchedulingShardsArgs,
    has_shards,
    prometheus_values,
)
from kai_fleet.kai.topologies import Topologies, TopologiesArgs
from kai_fleet.releases import kai
from kai_fleet.releases.chart_values import merged
from kai_fleet.settings.sections.scheduling import Scheduling


def values_with(
    scheduling: Scheduling, version: str, values: Mapping[str, Any], *, untested: bool
) -> dict[str, Any]:
    """A chart's values with those that the scheduling needs; what the config writes wins."""
    release = kai(version, untested=untested)
    return merged(prometheus_values(release, scheduling), values)


def declare_scheduling(
    name: str,
    scheduling: Scheduling,
    scheduler: KaiScheduler,
    access: ClusterAccess,
    opts: pulumi.ResourceOptions,
    *,
    untested: bool,
) -> list[pulumi.Resource]:
    """The shards and topologies of one KAI, once it is ready; nothing where none are configured."""
    after = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[scheduler.ready]))
    resources: list[pulumi.Resource] = []
    if has_shards(scheduling):
        args = SchedulingShardsArgs(
            version=scheduler.version,
            access=access,
            scheduling=scheduling,
            release=scheduler.release.id,
            prometheus_by_chart=kai(scheduler.version, untested=untested).prometheus_values,
        )
        resources.append(SchedulingShards(f"{name}-shards", args, after))
    if scheduling.topologies:
        resources.append(
            Topologies(f"{name}-topologies", TopologiesArgs(scheduling.topologies), after)
        )
    return resources
