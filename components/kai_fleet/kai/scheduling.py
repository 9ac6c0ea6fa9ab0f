"""Values, shards and topologies of one KAI, beyond its release and its queues."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.fleet.model import DeclaredKai
from kai_fleet.kai.kai_scheduler import KaiScheduler
from kai_fleet.kai.scheduling_shards import (
    SchedulingShards,
    SchedulingShardsArgs,
    has_shards,
)
from kai_fleet.options import after, child_of
from kai_fleet.settings.sections.scheduling import Scheduling


@dataclass
class TopologiesArgs:
    """The node labels of each topology, from the widest domain to the narrowest."""

    topologies: Mapping[str, Sequence[str]]


class Topologies(pulumi.ComponentResource):
    """`kai.scheduler/v1alpha1` Topology objects, cluster-scoped; KAI has them from v0.12.

    Workloads name one in the annotation `kai.scheduler/topology`, and one of its labels in
    `kai.scheduler/topology-required-placement` or `-preferred-placement`. Levels cannot be
    changed, so another list replaces the object.
    """

    def __init__(
        self, name: str, args: TopologiesArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:Topologies", name, None, opts)
        for topology, levels in args.topologies.items():
            CustomResource(
                f"{name}-{topology}",
                api_version="kai.scheduler/v1alpha1",
                kind="Topology",
                metadata={"name": topology},
                spec={"levels": [{"nodeLabel": label} for label in levels]},
                opts=child_of(self, opts, replace_on_changes=["spec"], delete_before_replace=True),
            )
        self.register_outputs({"topologies": sorted(args.topologies)})


def declare_scheduling(
    name: str,
    kai: DeclaredKai,
    scheduler: KaiScheduler,
    access: ClusterAccess,
    opts: pulumi.ResourceOptions,
) -> list[pulumi.Resource]:
    """The shards and topologies of one KAI, once it is ready; nothing where none are configured."""
    once_ready = after(opts, scheduler.ready)
    scheduling, declared = kai.scheduling or Scheduling(), list[pulumi.Resource]()
    if has_shards(scheduling):
        args = SchedulingShardsArgs(
            version=scheduler.version,
            access=access,
            scheduling=scheduling,
            release=scheduler.release.id,
            prometheus_by_chart=kai.release is not None and kai.release.prometheus_values,
        )
        declared.append(SchedulingShards(f"{name}-shards", args, once_ready))
    if scheduling.topologies:
        declared.append(
            Topologies(f"{name}-topologies", TopologiesArgs(scheduling.topologies), once_ready)
        )
    return declared
