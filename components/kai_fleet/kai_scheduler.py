"""The KAI scheduler, on a host cluster or inside a vCluster: its release, and the wait for it."""

from typing import Any, NotRequired, TypedDict

import pulumi

from kai_fleet.inputs import RegistryArgs, TolerationArgs


class ShardArgs(TypedDict):
    """A part of the nodes with a scheduler of its own, as a SchedulingShard."""

    gpu_placement: NotRequired[pulumi.Input[str]]
    """Pods with GPUs: `binpack` fills nodes, `spread` levels them. Default: `binpack`."""
    cpu_placement: NotRequired[pulumi.Input[str]]
    """Pods without GPUs: `binpack` or `spread`. Default: `binpack`."""
    preempt_min_runtime: NotRequired[pulumi.Input[str]]
    """How long a job runs before its own queue preempts it, as h, m, s: `4h`. Default: KAI's."""
    reclaim_min_runtime: NotRequired[pulumi.Input[str]]
    """How long a job runs before another queue reclaims it, as h, m, s: `4h`. Default: KAI's."""
    queue_depth: NotRequired[dict[str, pulumi.Input[float]]]
    """Most jobs of a queue that an action tries, by action: `allocate`, `reclaim`, `preempt`,
    `consolidation`. Default: all.
    """


class FairshareArgs(TypedDict):
    """Fairness over time: past usage counts when over-quota is given out. From KAI v0.10."""

    window: NotRequired[pulumi.Input[str]]
    """How long usage counts, as h, m, s. Default: `168h`, a week."""
    window_type: NotRequired[pulumi.Input[str]]
    """`sliding`; `tumbling`, from `start` on; `cron`, by `cron`. Default: `sliding`."""
    start: NotRequired[pulumi.Input[str]]
    """tumbling: when the first window begins: `2026-01-05T00:00:00Z`. Required there."""
    cron: NotRequired[pulumi.Input[str]]
    """cron: when a window begins: `0 0 * * 1`. Required there."""
    half_life: NotRequired[pulumi.Input[str]]
    """Usage of that long ago counts half, as h, m, s. Default: no decay."""
    k_value: NotRequired[pulumi.Input[float]]
    """How much past usage weighs; 0 is nothing. Default: 1."""
    prometheus: NotRequired[pulumi.Input[str]]
    """URL of the Prometheus that has the usage. Default: one that KAI runs, by the operator."""


class KaiSchedulerArgs(TypedDict):
    """One KAI release, and what it schedules by besides queues."""

    version: str
    """Version of KAI, of the release table: `v0.16.8`. Another one upgrades the release in place,
    or replaces it where that is not known to work.
    """
    untested: NotRequired[bool]
    """Take a version that is newer than the table for its newest line. Default: false."""
    chart: NotRequired[str]
    """Another chart: oci://…, https://… or a path. Default: KAI's own."""
    values: NotRequired[dict[str, Any]]
    """Values of the chart, merged over all others. Default: none."""
    gpu_sharing: NotRequired[bool]
    """Give pods parts of a GPU. Default: true."""
    gpu_sharing_mode: NotRequired[str]
    """How a share is enforced: `NonMemoryEnforced`; `HamiCore`, from v0.16; `NvFractions`, from
    v0.18. Default: `NonMemoryEnforced`.
    """
    isolation: NotRequired[str]
    """How its own pods run: `baseline`, `restricted` or `off`. Default: `baseline`."""
    tolerations: NotRequired[list[TolerationArgs]]
    """Taints that all of its pods tolerate. Default: none."""
    affinity: NotRequired[dict[str, Any]]
    """Affinity of all of its pods, as in a pod's spec. Default: none."""
    labels: NotRequired[dict[str, pulumi.Input[str]]]
    """Labels of its namespaces. Default: none."""
    registries: NotRequired[dict[str, RegistryArgs]]
    """Credentials for its images, by registry. Default: none."""
    shards: NotRequired[dict[str, ShardArgs]]
    """Shards by the value of node label `kai.scheduler/node-pool`; `default`: nodes without it.
    From v0.10. Default: KAI's own, of all nodes without the label.
    """
    fairshare: NotRequired[FairshareArgs]
    """Fairness over time. Default: past usage does not count."""
    topologies: NotRequired[dict[str, list[pulumi.Input[str]]]]
    """Topologies by name: node labels from the widest domain to the narrowest. From v0.12. Default:
    none.
    """
    cluster_policy_crd: NotRequired[bool]
    """Declare CRD ClusterPolicy for versions that wait for it; false where a GPU operator brings
    it. Default: true.
    """
    use_existing: NotRequired[list[str]]
    """What others made on the cluster, used and not declared: `namespace`, `clusterPolicyCrd`,
    `priorityClasses`. Default: none.
    """
    ready_timeout: NotRequired[int]
    """Seconds that an update waits until it works. Default: 300."""
    probe_environment: NotRequired[dict[str, pulumi.Input[str]]]
    """`probe_environment` of the VirtualCluster that it is in: the wait then keeps no copy of the
    kubeconfig. Default: `kubeconfig` or `context`.
    """
    kubeconfig: NotRequired[pulumi.Input[str]]
    """Kubeconfig of its cluster, its content. It is kept as a secret. Default: the Kubernetes
    provider in the options.
    """
    context: NotRequired[str]
    """Context of your own kubeconfig, in place of `kubeconfig`. Default: `kubernetes:context`."""
