"""A KAI scheduler alone, its queues alone, and the GPU stack of a cluster."""

from __future__ import annotations

from typing import Any

import pulumi

from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.fleet.trees import declared_queues
from kai_fleet.host.gpu_stack import GpuStack, GpuStackArgs
from kai_fleet.kai.kai_scheduler import NAMESPACE, KaiScheduler, KaiSchedulerArgs
from kai_fleet.kai.queue_tree import QueueTree, QueueTreeArgs
from kai_fleet.kai.scheduling import declare_scheduling
from kai_fleet.package.construct.clusters import NEWEST
from kai_fleet.package.construct.request import Request, Result
from kai_fleet.settings.sections.platform import HostKai

_NOT_OF_GPU = ("cluster", "sources")
_OF_KAI = frozenset(field.alias or name for name, field in HostKai.model_fields.items())


def kai_scheduler(asked: Request) -> Result:
    """A KAI, with its shards and topologies."""
    args, raw = asked.arguments(), asked.given.raw
    own = {key: value for key, value in raw.items() if key in _OF_KAI}
    stack = {"cluster": raw["cluster"], "kai": own, **asked.sources()}
    settings = asked.settings(stack, {"kai": ""})
    (kai,) = fleet_of(settings, asked.deployed).host.kai
    access, opts = asked.access(), asked.on_cluster()
    made = KaiScheduler(
        asked.name,
        KaiSchedulerArgs(
            kai,
            access,
            cluster_policy_crd=args.cluster_policy_crd,
            deployed=asked.deployed,
            ready_timeout=args.ready_timeout,
        ),
        opts,
    )
    child = pulumi.ResourceOptions(parent=made, deleted_with=opts.deleted_with)
    declare_scheduling(asked.name, kai, made, access, child)
    return made, {"version": made.version, "namespace": NAMESPACE}


def queue_tree(asked: Request) -> Result:
    """Queues of a cluster whose KAI is there."""
    args, raw = asked.arguments(), asked.given.raw
    shards: dict[str, Any] = {queue.shard: {} for queue in args.queues.values() if queue.shard}
    kai: dict[str, Any] = {"version": args.version or NEWEST, "shards": shards}
    stack = {"cluster": raw["cluster"], "kai": kai, "queues": raw.get("queues", {})}
    settings = asked.settings(stack, {"kai": "", "queues": "queues"})
    made = QueueTree(
        asked.name,
        QueueTreeArgs(
            declared_queues(
                settings.queues,
                gpu_limit=args.gpu_limit,
                parent=args.parent,
                shard=args.shard,
                limits=args.limits,
            ),
            asked.access(),
            parent=args.parent,
        ),
        asked.opts,
    )
    return made, {"queues": made.leaves}


def gpu_stack(asked: Request) -> Result:
    """What makes nodes advertise GPUs."""
    asked.arguments()
    own = {key: value for key, value in asked.given.raw.items() if key not in _NOT_OF_GPU}
    stack = {"cluster": asked.given.raw["cluster"], "gpu": own, **asked.sources()}
    gpu = asked.settings(stack, {"gpu": ""}).gpu
    args = GpuStackArgs(gpu.provider, gpu.version, gpu.chart, gpu.values)
    made = GpuStack(asked.name, args, asked.on_cluster())
    return made, {"version": made.version, "namespace": made.namespace}
