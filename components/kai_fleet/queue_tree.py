"""QueueTree: a tree of KAI queues, declared as one resource."""

import typing
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NotRequired, Required, TypedDict

import pulumi
from pulumi import ComponentResource, Input, Output, ResourceOptions

from kai_fleet.cluster.connection import connection_of
from kai_fleet.declaring.argument_check import Allowed, check
from kai_fleet.declaring.inputs import resolved, without_none
from kai_fleet.declaring.options import child_options, component_options
from kai_fleet.names import QUEUES
from kai_fleet.queues.specs import Spec, labels_of, leaves, mistakes, named_specs
from kai_fleet.vcluster.virtual_cluster import VirtualCluster


class ShareArgs(TypedDict, total=False):
    """A queue's share of CPU, in cores, or of GPUs, in devices. -1 is unlimited. As in a stack
    file, Python programs may write `3` in place of `{"quota": 3}`, and texts: `500m`, `unlimited`.
    """

    quota: Input[float]
    """Guaranteed amount. Default: that of the queue's `cpu`, `memory` or `gpu`."""
    limit: Input[float]
    """The most that the queue may hold. Default: unlimited."""
    weight: Input[float]
    """Over-quota weight, relative to sibling queues: the part of unused capacity that it gets.
    Default: 1.
    """


class MemoryShareArgs(TypedDict, total=False):
    """A queue's share of memory, as Kubernetes quantities."""

    quota: Input[str]
    """Guaranteed: `64Gi`, `unlimited`. Default: with children the sum of theirs; else unlimited."""
    limit: Input[str]
    """Maximum: `64Gi`. Default: `unlimited`."""
    weight: Input[float]
    """Over-quota weight, relative to its siblings. Default: 1."""


class QueueArgs(TypedDict, total=False):
    """A queue and its children. Only a queue without children takes pods."""

    display_name: Input[str]
    """Name in messages of the scheduler. Default: the queue's name."""
    priority: Input[float]
    """Queues with a higher priority get over-quota first. Default: 100."""
    cpu: ShareArgs
    """Share of CPU, in cores. Default: unlimited; with children the sum of their quotas; below a
    queue with a quota or limit none guaranteed.
    """
    gpu: ShareArgs
    """Share of GPUs, in devices. Default: none guaranteed; with children the sum of their quotas;
    for the only top-level queue without a quota the rest of the team's GPUs.
    """
    memory: MemoryShareArgs
    """Share of memory, in bytes. Default: unlimited; with children the sum of their quotas; below a
    queue with a quota or limit none guaranteed.
    """
    preempt_min_runtime: Input[str]
    """How long a job runs before its own queue may preempt it: a Go duration, `4h` or `90m`,
    without days and weeks, at most 999999h. Default: the shard's.
    """
    reclaim_min_runtime: Input[str]
    """How long a job runs before another queue may reclaim its resources: `4h`, `90m`. Default: the
    shard's.
    """
    shard: Input[str]
    """Top-level queues: the shard that schedules the queue and those below it. Default: `default`.
    """
    # The SDK reads a forward reference only in a type of `typing`.
    children: typing.Mapping[str, "QueueArgs"]
    """Queues below it, by name. Default: none, so that pods may name the queue."""


class TreeArgs(TypedDict, total=False):
    """A tree of queues on one cluster."""

    queues: Required[Mapping[str, QueueArgs]]
    """Top-level queues, by name. Names are unique in the cluster, at most 63 characters."""
    gpus: Input[float]
    """GPUs of the team: the limit of top-level queues without a limit. Default: unlimited."""
    pools: Mapping[str, Input[float]]
    """In place of `gpus`: the number of GPUs of each shard, by its name. Default: none."""
    parent: Input[str]
    """Queue of another tree that is the parent of the top-level queues. Default: none."""
    shared: bool
    """Several teams use the tree: a queue that cannot be as declared does not fail it, but is in
    its output `refused`. Default: false.
    """
    tenants: Sequence[str]
    """Teams whose accounts may write queues `TEAM-…` in the cluster: the tree deletes such a queue
    only if its state has it. Default: none.
    """
    cluster: Input[str]
    """`cluster` of a VirtualCluster: another one replaces the tree. Default: a hash of the
    kubeconfig's CA, or the context.
    """
    kubeconfig: Input[str]
    """Content of the cluster's kubeconfig, a secret. Default: `kubernetes:context`."""
    context: str
    """Context of your kubeconfig, in place of `kubeconfig`. Default: `kubernetes:context`."""


class QueueTreeArgs(TreeArgs):
    """A tree of queues on one cluster. Other languages have no `vcluster`."""

    vcluster: NotRequired[VirtualCluster]
    """The VirtualCluster that it is in, in place of `cluster` and `kubeconfig`. Default: none."""


# What a stack file takes: a quota in place of a share, and quantities as numbers or texts.
ALLOWED = Allowed(
    short=dict.fromkeys((ShareArgs, MemoryShareArgs), "quota"),
    quantities=("quota", "limit"),
    replaces={"vcluster": ("cluster", "kubeconfig", "context")},
)


class QueueTree(ComponentResource):
    """`scheduling.run.ai/v2` Queues: cluster-scoped, parents before children.

    All queues are one resource of `kai_fleet.provider`, because the engine writes its
    complete state at each step: a thousand resources would take minutes. A preview still shows each
    queue's change, and a refresh finds changes by hand. Let it depend on the KaiScheduler: KAI's
    webhook refuses Queues until it runs. Without queues nothing is declared.

    Raises:
        pulumi.RunError: an argument is not one that it takes, two queues have one name, a quantity
            is invalid, or there is no way to the cluster.
    """

    leaves: Output[list[str]]
    """Names of its leaf queues, which take pods."""
    refused: Output[dict[str, str]]
    """Of a shared tree: by name, why a queue is not as declared. Others made or refused it."""

    def __init__(self, name: str, args: QueueTreeArgs, opts: ResourceOptions | None = None) -> None:
        title = f"QueueTree {name}"
        check(title, QueueTreeArgs, args, ALLOWED, lambda: mistakes(args["queues"]))
        vcluster = args.get("vcluster")
        if vcluster is not None:
            opts = ResourceOptions.merge(opts, vcluster.inside())
            args = {**args, "cluster": vcluster.cluster, "kubeconfig": vcluster.kubeconfig}
        super().__init__("kai-fleet:index:QueueTree", name, None, component_options(opts))
        properties = _properties(title, name, args)
        leaf_names = leaves(args["queues"])
        self.leaves = Output.from_input(leaf_names)
        self.refused = Output.from_input({})
        if args["queues"]:
            tree = _Queues(QUEUES, name, properties, child_options(self, opts))
            self.refused = tree.refused.apply(lambda refused: refused or {})
        self.register_outputs({"leaves": leaf_names, "refused": self.refused})


class _Queues(pulumi.CustomResource):
    """All queues of a tree, with `properties` as `_properties` gives them."""

    # Why queues of a shared tree are not as declared, by name; None for another tree.
    refused: Output[dict[str, str] | None]

    def __init__(
        self, kind: str, name: str, properties: Mapping[str, object], opts: ResourceOptions
    ) -> None:
        # A property without a value is an output.
        super().__init__(kind, name, {**properties, "refused": None}, opts)


def _properties(title: str, name: str, args: QueueTreeArgs) -> dict[str, object]:
    """Properties of the resource with all queues.

    `title` begins messages. `vcluster` in `args` is not read: the caller has put its `cluster` and
    `kubeconfig` into `args`. A property that is None is left out; an Output stays.

    Raises:
        pulumi.RunError: there is no way to the cluster, or as `_specs`; with Outputs in the tree
            that is an error of the Output `queues`.
    """
    connection = connection_of(title, args)
    queues = args["queues"]
    parent = args.get("parent")
    specs = partial(_specs, title)
    properties: dict[str, object] = {
        "cluster": args["cluster"] if "cluster" in args else connection.identity(),
        "tree": name,
        "queues": resolved(specs, queues, args.get("gpus"), args.get("pools"), parent),
        "labels": resolved(lambda tree: labels_of(tree) or None, queues),
        "parent": parent,
        "shared": args.get("shared"),
        "tenants": args.get("tenants"),
        **connection.properties(),
    }
    return without_none(properties)


def _specs(title: str, *tree: Any) -> dict[str, Spec]:
    """The specs of a tree by the queues' names, which are unique: `mistakes` has been asked.

    `named_specs` takes the arguments after `title`.

    Raises:
        pulumi.RunError: an invalid quantity or weight; `title` begins the message.
    """
    try:
        return dict(named_specs(*tree))
    except ValueError as why:
        raise pulumi.RunError(f"{title}: {why}") from None
