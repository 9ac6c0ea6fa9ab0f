"""KAI's Topologies: the domains of a network, by which pods of one job are kept close."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource


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
        opts = opts or pulumi.ResourceOptions()
        for topology, levels in args.topologies.items():
            CustomResource(
                f"{name}-{topology}",
                api_version="kai.scheduler/v1alpha1",
                kind="Topology",
                metadata={"name": topology},
                spec={"levels": [{"nodeLabel": label} for label in levels]},
                opts=pulumi.ResourceOptions(
                    parent=self,
                    depends_on=opts.depends_on,
                    deleted_with=opts.deleted_with,
                    replace_on_changes=["spec"],
                    delete_before_replace=True,
                ),
            )
        self.register_outputs({"topologies": sorted(args.topologies)})
