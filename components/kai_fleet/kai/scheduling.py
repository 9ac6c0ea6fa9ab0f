"""What a KAI schedules by: its queue tree, its shards and its topologies."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_command as command
from pulumi_kubernetes.apiextensions import CustomResource

from kai_fleet import probes
from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.cluster.existing_objects import ExistingObjects
from kai_fleet.fleet.queues import DeclaredQueue, leaves
from kai_fleet.kai.kai_scheduler import KaiScheduler
from kai_fleet.kai.values import prometheus
from kai_fleet.options import after, child_of
from kai_fleet.provider import QUEUES
from kai_fleet.provider.queues import DEFAULT_QUEUES, PATH, TREE, differences, different
from kai_fleet.provider.values import packed
from kai_fleet.releases.keys import DEFAULT_SHARD
from kai_fleet.settings.sections.platform import Fairshare, Scheduling, Shard


@dataclass
class QueueTreeArgs:
    """`queues` are those of `declared_queues`, parents before children, `access` the cluster that
    they are for. `parent` is a queue of another stack's tree below which these hang.
    """

    queues: Sequence[DeclaredQueue]
    access: ClusterAccess
    parent: str | None = None


class QueueTree(pulumi.ComponentResource):
    """`scheduling.run.ai/v2` Queues: cluster-scoped, parents before children (Q1, Q9).

    All of them are one resource, served by the provider in `kai_fleet.provider`: the engine writes
    its whole state at each step, which a thousand resources turn into minutes (P7). The preview
    shows each queue's change all the same, and a refresh what was changed by hand. Give
    `depends_on` a KaiScheduler's `ready`: until KAI's webhook answers, a Queue is refused.
    """

    leaves: list[str]

    def __init__(
        self, name: str, args: QueueTreeArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:QueueTree", name, None, opts)
        if args.queues:
            labels = {queue.name: queue.labels for queue in args.queues if queue.labels}
            optional = {
                "labels": labels or None,
                "parent": args.parent,
                "identity": args.access.identifier,  # another cluster of this name gets its own
            }
            pulumi.CustomResource(
                QUEUES,
                name,
                {
                    "cluster": args.access.name,
                    "tree": name,
                    "queues": packed({queue.name: queue.spec for queue in args.queues}),
                    **{key: value for key, value in optional.items() if value is not None},
                    **args.access.reached(),
                },
                child_of(self, opts),
            )
        self.leaves = leaves(args.queues)
        self.register_outputs({"leaves": self.leaves})


def refuse_different_queues(queues: Iterable[DeclaredQueue], existing: ExistingObjects) -> None:
    """Say how default queues that a KAI's chart left differ from the declared ones.

    Raises pulumi.RunError, before anything is made.
    """
    for queue in queues:
        found = existing.at(f"{PATH}/{queue.name}") if queue.name in DEFAULT_QUEUES else None
        if found and TREE not in found["labels"]:
            differs = differences(found.get("spec") or {}, queue.spec)
            if differs:
                raise pulumi.RunError(
                    f"{queue.path}: {different(str(queue.name), differs)}. Nothing was made"
                )


class SchedulingShards(pulumi.ComponentResource):
    """The shards of one KAI, `args`, applied field by field.

    KAI's chart makes the shard `default` and its Config, and has no values for most of what
    stands here. So this owns single fields of objects that are the chart's, by server-side apply:
    Helm's upgrades and the operator leave alone what they did not write. A Patch resource would
    own them too, but is gone with the object where a release is replaced, and not made again
    because nothing of it changed; this step has the release for its trigger. Declare it after
    `ready`.
    """

    def __init__(
        self, name: str, args: KaiScheduler, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:SchedulingShards", name, None, opts)
        kai, release = args.declared, args.declared.release
        by_chart = release is not None and release.prometheus_values
        objects = kai_objects(kai.scheduling or Scheduling(), config=not by_chart)
        command.local.Command(
            f"{name}-apply",
            create=probes.command("shards", "apply"),
            update=probes.command("shards", "apply"),
            delete=probes.command("shards", "remove"),
            environment={
                **args.access.environment(),
                "KAI_VERSION": args.version,
                "KAI_OBJECTS": json.dumps(objects, sort_keys=True),
            },
            triggers=[args.release.id],
            opts=child_of(self, opts, delete_before_replace=True),
        )
        self.register_outputs({"shards": sorted(objects["schedulingshards"])})


class Topologies(pulumi.ComponentResource):
    """`kai.scheduler/v1alpha1` Topology objects, cluster-scoped; KAI has them from v0.12.

    Workloads name one in the annotation `kai.scheduler/topology`, and one of its labels in
    `kai.scheduler/topology-required-placement` or `-preferred-placement`. `args` are the node
    labels of each topology, from the widest domain to the narrowest. Levels cannot be changed, so
    another list replaces the object.
    """

    def __init__(
        self,
        name: str,
        args: Mapping[str, Sequence[str]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("kai-fleet:index:Topologies", name, None, opts)
        for topology, levels in args.items():
            CustomResource(
                f"{name}-{topology}",
                api_version="kai.scheduler/v1alpha1",
                kind="Topology",
                metadata={"name": topology},
                spec={"levels": [{"nodeLabel": label} for label in levels]},
                opts=child_of(self, opts, replace_on_changes=["spec"], delete_before_replace=True),
            )
        self.register_outputs({"topologies": sorted(args)})


def declare_scheduling(
    name: str, kai: KaiScheduler, opts: pulumi.ResourceOptions
) -> list[pulumi.Resource]:
    """The shards and topologies of one KAI, once it is ready; nothing where none are configured."""
    once_ready = after(opts, kai.ready)
    scheduling, declared = kai.declared.scheduling or Scheduling(), list[pulumi.Resource]()
    if scheduling.shards or scheduling.fairshare is not None:
        declared.append(SchedulingShards(f"{name}-shards", kai, once_ready))
    if scheduling.topologies:
        declared.append(Topologies(f"{name}-topologies", scheduling.topologies, once_ready))
    return declared


def kai_objects(scheduling: Scheduling, *, config: bool) -> dict[str, dict[str, Any]]:
    """The `spec` of each object by plural kind and name; `config`: that of the Config too."""
    fairshare = scheduling.fairshare
    shards = {DEFAULT_SHARD: Shard(), **scheduling.shards}
    objects: dict[str, dict[str, Any]] = {
        "schedulingshards": {
            name: _shard(name, shard, fairshare)
            for name, shard in shards.items()
            if name in scheduling.shards or fairshare is not None
        }
    }
    if fairshare is not None and config:
        objects["configs"] = {"kai-config": {"prometheus": prometheus(fairshare)}}
    return objects


def _shard(name: str, shard: Shard, fairshare: Fairshare | None) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if name != DEFAULT_SHARD:
        spec["partitionLabelValue"] = name
    if shard.placement is not None:
        spec["placementStrategy"] = {"gpu": shard.placement.gpu, "cpu": shard.placement.cpu}
    if shard.min_runtime is not None:
        spec["minRuntime"] = _without_none(
            preemptMinRuntime=shard.min_runtime.preempt, reclaimMinRuntime=shard.min_runtime.reclaim
        )
    if shard.queue_depth:
        spec["queueDepthPerAction"] = dict(shard.queue_depth)
    if fairshare is not None:
        spec |= {"kValue": fairshare.k_value, "usageDBConfig": _usage(fairshare)}
    return spec


def _usage(fairshare: Fairshare) -> dict[str, Any]:
    return {
        "clientType": "prometheus",
        # Without it the operator fills in the address of its own one.
        **_without_none(connectionString=fairshare.prometheus),
        "usageParams": {
            "windowSize": fairshare.window,
            "windowType": fairshare.window_type,
            **_without_none(
                halfLifePeriod=fairshare.half_life,
                tumblingWindowStartTime=fairshare.start,
                cronString=fairshare.cron,
            ),
        },
    }


def _without_none(**fields: str | None) -> Mapping[str, str]:
    return {key: value for key, value in fields.items() if value is not None}
