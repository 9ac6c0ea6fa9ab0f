"""The arguments of KAI, its shards and fairness."""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, Required, TypedDict

from pulumi import Input

from kai_fleet.declaring.inputs import Labels, RegistryArgs, TolerationArgs
from kai_fleet.vcluster.virtual_cluster import VirtualCluster


class ShardArgs(TypedDict, total=False):
    """Nodes that one of KAI's schedulers has for itself: a SchedulingShard."""

    placement: Mapping[str, Input[str]]
    """How pods with GPUs (`gpu`) and without (`cpu`) are placed: `binpack` fills one node after
    another, `spread` uses all nodes evenly. Default: `binpack`.
    """
    min_runtime: Mapping[str, Input[str]]
    """How long a job runs before its own queue may `preempt` it, or another queue may `reclaim` its
    resources, such as `4h`. Times of a queue take precedence. Default: KAI's.
    """
    queue_depth: Mapping[str, Input[float]]
    """The most jobs of a queue that KAI tries in a cycle, by action: `allocate`, `reclaim`,
    `preempt`, `consolidation`. Default: all.
    """


class FairshareArgs(TypedDict, total=False):
    """Fairness over time: past usage counts when KAI shares out over-quota. From KAI v0.10."""

    window: Input[str]
    """How far back usage counts, in hours, minutes and seconds. 168h is a week. Default: `168h`."""
    window_type: Input[str]
    """`sliding`. `tumbling`: windows follow each other from `start` on. `cron`: a window begins at
    each time of `cron`. Default: `sliding`.
    """
    start: Input[str]
    """tumbling: when the first window begins: `2026-01-05T00:00:00Z`. Required there."""
    cron: Input[str]
    """cron: when windows begin: `0 0 * * 1`. Required there."""
    half_life: Input[str]
    """Age at which usage counts half, such as `24h`. Default: all usage in the window counts fully.
    """
    k_value: Input[float]
    """How much past usage weighs. 0: it does not count. Default: 1."""
    prometheus: Input[str]
    """URL of the Prometheus with the usage. Default: KAI runs one, by the Prometheus operator."""


class KaiArgs(TypedDict, total=False):
    """One KAI release, with its shards, fairness and topologies."""

    version: Required[str]
    """Version of KAI, from the release table: `v0.16.8`."""
    untested: bool
    """Treat a version that is newer than the release table like the newest of its line. Default:
    false.
    """
    chart: str
    """Another chart: oci://…, https://… or a path. Default: KAI's own."""
    chart_account: RegistryArgs
    """Credentials to pull `chart`. Default: none."""
    values: Mapping[str, Any]
    """Chart values, merged over all others. Default: none."""
    gpu_sharing: bool
    """Give pods parts of a GPU. Default: true."""
    gpu_sharing_mode: str
    """`NonMemoryEnforced`; `HamiCore` from v0.16, `NvFractions` from v0.18. Default: the first."""
    isolation: str
    """Pod Security level of KAI's pods: `baseline`, `restricted`, `off`. Default: `baseline`."""
    tolerations: Sequence[TolerationArgs]
    """Taints that all pods of KAI tolerate. Default: none."""
    affinity: Mapping[str, Any]
    """Affinity of all pods of KAI, as in a pod's spec. Default: none."""
    labels: Labels
    """Labels of the namespace of pods that reserve shared GPUs, from KAI v0.16.7. Default: none."""
    registries: Mapping[str, RegistryArgs]
    """Credentials to pull its images, by registry. Default: none."""
    shards: Mapping[str, ShardArgs]
    """Shards by name, which is the label `kai.scheduler/node-pool` of their nodes, from KAI v0.10.
    Default: one, `default`, with KAI's settings.
    """
    fairshare: FairshareArgs
    """Fairness over time, from KAI v0.10. Default: past usage does not count."""
    topologies: Mapping[str, Sequence[Input[str]]]
    """Node labels of each topology, from the widest domain to the narrowest, from KAI v0.12.
    Default: none.
    """
    use_existing: Sequence[str]
    """What others own, used and not declared: `namespace`, `clusterPolicyCrd`, `priorityClasses`.
    Default: none.
    """
    verify: bool
    """Whether the wait after a change places a gang of two pods and one with a share of a GPU, and
    removes them: a KAI may be Ready and schedule no gangs. Nothing is placed before there are
    queues, and no share where no GPU is free. Default: false.
    """
    ready_timeout: int
    """Seconds that an update waits until KAI is ready. Default: 300."""
    probe_environment: Input[Mapping[str, Input[str]]]
    """`probe_environment` of the VirtualCluster that it runs in. Default: it runs on a host."""
    kubeconfig: Input[str]
    """Content of its cluster's kubeconfig, a secret. Default: the provider in the options."""
    context: str
    """Context of your kubeconfig, in place of `kubeconfig`. Default: `kubernetes:context`."""


class KaiSchedulerArgs(KaiArgs):
    """One KAI release. Other languages have no `vcluster`."""

    vcluster: NotRequired[VirtualCluster]
    """The VirtualCluster that it runs in, in place of `probe_environment` and `kubeconfig`.
    Default: it runs on a host.
    """
