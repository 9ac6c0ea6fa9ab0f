"""QueueTree: a tree of KAI queues, declared as one resource."""

from collections.abc import Sequence
from typing import Any, Dict, Final, NotRequired, TypedDict  # noqa: UP035 - see QueueArgs.children

import pulumi

from kai_fleet.argument_check import Allowed, check
from kai_fleet.cluster.connection import connection_of
from kai_fleet.inputs import resolved, without_none
from kai_fleet.names import QUEUE_CHECK, QUEUES
from kai_fleet.options import child_of, component_options
from kai_fleet.queue_specs import labels_of, leaves, mistakes, specs_of

QUEUE_TREE: Final = "kai-fleet:index:QueueTree"


class ShareArgs(TypedDict):
    """A queue's share of CPU, in cores, or of GPUs, in devices. -1 is unlimited. Python takes what
    a stack file does, too: `3` in place of `{"quota": 3}`, and texts: `500m`, `unlimited`.
    """

    quota: NotRequired[pulumi.Input[float]]
    """Guaranteed. Default: with children the sum of theirs; else CPU unlimited, GPUs none."""
    limit: NotRequired[pulumi.Input[float]]
    """Maximum, in cores or devices. Default: unlimited."""
    weight: NotRequired[pulumi.Input[float]]
    """Over-quota weight, relative to its siblings. Default: 1."""


class MemoryShareArgs(TypedDict):
    """A queue's share of memory, as Kubernetes quantities."""

    quota: NotRequired[pulumi.Input[str]]
    """Guaranteed: `64Gi`, `unlimited`. Default: with children the sum of theirs; else unlimited."""
    limit: NotRequired[pulumi.Input[str]]
    """Maximum: `64Gi`. Default: `unlimited`."""
    weight: NotRequired[pulumi.Input[float]]
    """Over-quota weight, relative to its siblings. Default: 1."""


class QueueArgs(TypedDict):
    """A queue and its children. Only a queue without children takes pods."""

    display_name: NotRequired[pulumi.Input[str]]
    """Name in the scheduler's messages. Default: the queue's name."""
    priority: NotRequired[pulumi.Input[float]]
    """Queues with a higher one get over-quota first. Default: 100, KAI's."""
    cpu: NotRequired[ShareArgs]
    """Share of CPU, in cores. Default: unlimited; below a queue with a number, none guaranteed."""
    gpu: NotRequired[ShareArgs]
    """Share of GPUs. Default: none guaranteed; of the one top-level queue the rest of `gpus`."""
    memory: NotRequired[MemoryShareArgs]
    """Share of memory. Default: unlimited; below a queue with a number, none guaranteed."""
    preempt_min_runtime: NotRequired[pulumi.Input[str]]
    """How long a job runs before its own queue preempts it: `4h`, `90m`. Default: the shard's."""
    reclaim_min_runtime: NotRequired[pulumi.Input[str]]
    """How long a job runs before another queue reclaims it: `4h`, `90m`. Default: the shard's."""
    shard: NotRequired[pulumi.Input[str]]
    """Top-level queues: the shard that schedules it and its descendants. Default: `default`."""
    # The SDK reads no builtin `dict` with a forward reference.
    children: NotRequired[Dict[str, "QueueArgs"]]  # noqa: UP006
    """Child queues, by name. Default: none; it is a leaf, which takes pods."""


class QueueTreeArgs(TypedDict):
    """A tree of queues on one cluster."""

    queues: dict[str, QueueArgs]
    """Top-level queues, by name. Names are unique in the cluster, at most 63 characters."""
    gpus: NotRequired[pulumi.Input[float]]
    """GPUs of the team: limit of top-level queues without one. Default: unlimited."""
    pools: NotRequired[dict[str, pulumi.Input[float]]]
    """In place of `gpus`: the number of GPUs of each shard, by its name. Default: none."""
    parent: NotRequired[pulumi.Input[str]]
    """Queue of another tree that is the parent of the top-level queues. Default: none."""
    shared: NotRequired[bool]
    """Several teams use the tree: a queue that cannot be as declared does not fail it, and is in
    `refused`. Default: false."""
    tenants: NotRequired[list[str]]
    """Teams whose accounts may write queues `TEAM-…` in the cluster: of those the tree deletes only
    what its state has. Default: none."""
    cluster: NotRequired[pulumi.Input[str]]
    """`cluster` of a VirtualCluster: a new one replaces the tree. Default: the kubeconfig's CA."""
    kubeconfig: NotRequired[pulumi.Input[str]]
    """Content of the cluster's kubeconfig, a secret. Default: `kubernetes:context`."""
    context: NotRequired[str]
    """Context of your kubeconfig, in place of `kubeconfig`. Default: `kubernetes:context`."""


# What a stack file takes: a quota in place of a share, and quantities as numbers or texts.
ALLOWED: Final = Allowed(
    short=dict.fromkeys((ShareArgs, MemoryShareArgs), "quota"), quantities=("quota", "limit")
)


class QueueTree(pulumi.ComponentResource):
    """`scheduling.run.ai/v2` Queues: cluster-scoped, parents before children.

    All queues are one resource of `kai_fleet.cluster.provider`, because the engine writes its whole
    state at each step: a thousand resources would take minutes. A preview still shows each queue's
    change, and a refresh finds changes by hand. Let it depend on the KaiScheduler: KAI's webhook
    refuses Queues until it runs.
    """

    leaves: pulumi.Output[list[str]]
    """Names of its leaf queues, which take pods."""
    refused: pulumi.Output[dict[str, str]]
    """Of a shared tree: why queues are not as declared, by name. Others made or refused them."""

    def __init__(
        self, name: str, args: QueueTreeArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(QUEUE_TREE, name, None, component_options(opts))
        component = f"QueueTree {name}"
        check(component, QueueTreeArgs, args, ALLOWED, lambda: mistakes(args["queues"]))
        queues, parent = args["queues"], args.get("parent")
        connection, names = connection_of(component, args), leaves(queues)

        def specs(*tree: Any) -> dict[str, Any]:
            try:
                return specs_of(*tree)
            except ValueError as why:
                raise pulumi.RunError(f"{component}: {why}") from None

        refused = pulumi.Output.from_input(dict[str, str]())
        if queues:
            properties: dict[str, Any] = {
                "cluster": args["cluster"] if "cluster" in args else connection.identity(),
                "tree": name,
                "queues": resolved(specs, queues, args.get("gpus"), args.get("pools"), parent),
                "labels": resolved(lambda tree: labels_of(tree) or None, queues),
                "parent": parent,
                "shared": args.get("shared"),
                "tenants": args.get("tenants"),
                **connection.properties(),
            }
            tree = _Queues(QUEUES, name, without_none(properties), child_of(self, opts))
            refused = tree.refused.apply(lambda found: found or {})
        self.leaves, self.refused = pulumi.Output.from_input(names), refused
        self.register_outputs({"leaves": names, "refused": refused})


class _Queues(pulumi.CustomResource):
    refused: pulumi.Output[Any]

    def __init__(
        self, kind: str, name: str, properties: dict[str, Any], opts: pulumi.ResourceOptions
    ) -> None:
        # An output, which a property without a value is.
        super().__init__(kind, name, {**properties, "refused": None}, opts)


def check_queues(
    name: str,
    queues: Sequence[pulumi.Input[str]],
    refusal: pulumi.Input[str],
    opts: pulumi.ResourceOptions,
) -> pulumi.Resource:
    """Declare that these queues of a shared tree are as declared: the update fails here, with
    `refusal`, unless that is empty.
    """
    properties = {"queues": list(queues), "refusal": refusal}
    return pulumi.CustomResource(QUEUE_CHECK, name, properties, opts)
