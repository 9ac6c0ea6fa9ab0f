"""A KAI scheduler alone, its queues alone, and the GPU stack of a cluster."""

from __future__ import annotations

from typing import Any

import pulumi

from kai_fleet.host.gpu_stack import GpuStack, GpuStackArgs
from kai_fleet.kai.kai_scheduler import KaiScheduler, KaiSchedulerArgs
from kai_fleet.kai.keys import KAI_NAMESPACE
from kai_fleet.kai.queue_tree import QueueTree, QueueTreeArgs
from kai_fleet.kai.scheduling import declare_scheduling, values_with
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
    kai, access, opts = settings.kai, asked.access(), asked.on_cluster()
    assert kai is not None
    made = KaiScheduler(
        asked.name,
        KaiSchedulerArgs(
            version=kai.version,
            access=access,
            gpu_sharing=kai.gpu_sharing,
            chart=kai.chart,
            values=values_with(kai, kai.version, kai.values, untested=kai.untested),
            cluster_policy_crd=args.cluster_policy_crd,
            untested=kai.untested,
            deployed=asked.deployed,
            ready_timeout=args.ready_timeout,
        ),
        opts,
    )
    child = pulumi.ResourceOptions(parent=made, deleted_with=opts.deleted_with)
    declare_scheduling(asked.name, kai, made, access, child, untested=kai.untested)
    return made, {"version": made.version, "namespace": KAI_NAMESPACE}


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
            settings.queues,
            asked.access(),
            gpu_limit=args.gpu_limit,
            parent=args.parent,
            shard=args.shard,
            limits=args.limits,
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
