"""A team's place on the host: its namespace, and everything that bounds what is made there."""

from typing import Any, NotRequired, TypedDict

import pulumi

from kai_fleet.inputs import RegistryArgs, TolerationArgs


class NetworkArgs(TypedDict):
    """Who reaches whom. Pods of one team always reach each other and their vCluster's API."""

    enabled: NotRequired[bool]
    """Declare NetworkPolicies in the namespace. Default: true."""
    internet: NotRequired[bool]
    """Pods reach public addresses. Default: true."""
    private: NotRequired[list[str]]
    """Public networks (CIDRs) that are no internet: your nodes', or IPv6 pods'. Default: none."""
    cidrs: NotRequired[list[str]]
    """Networks (CIDRs) that pods reach besides: 10.20.0.0/16. Default: none."""
    namespaces: NotRequired[list[str]]
    """Namespaces of the host that pods reach. Default: none."""
    attachments: NotRequired[bool]
    """Pods may join other networks by Multus, which no NetworkPolicy bounds. Default: false."""
    endpoints: NotRequired[bool]
    """Services without a selector may lead to addresses that are not public. Default: false."""
    api_ports: NotRequired[list[int]]
    """Ports of the host's API server and of its Service. Default: 443 and 6443."""
    api_cidrs: NotRequired[list[str]]
    """Networks (CIDRs) of the host's API server and of its Service. Default: every address."""
    ingress_from: NotRequired[list[str]]
    """Namespaces of the host that reach the team's pods. Default: none."""
    ingress_cidrs: NotRequired[list[str]]
    """Networks (CIDRs) that reach the team's pods; 0.0.0.0/0 for load balancers. Default: none."""


class BoundsArgs(TypedDict):
    """The most that the namespace may hold, its vCluster included, as ResourceQuotas."""

    cpu: NotRequired[pulumi.Input[str]]
    """Sum of CPU requests, in cores: `200`, `500m`. With it each pod needs one. Default: none."""
    memory: NotRequired[pulumi.Input[str]]
    """Sum of memory requests: `512Gi`. With it each pod needs one. Default: none."""
    ephemeral_storage: NotRequired[pulumi.Input[str]]
    """Sum of requests of ephemeral storage: `200Gi`. With it each pod needs one. Default: none."""
    storage: NotRequired[pulumi.Input[str]]
    """Sum of all volume claims: `10Ti`. Default: none."""
    pods: NotRequired[pulumi.Input[float]]
    """Number of pods. Default: 2000."""
    volumes: NotRequired[pulumi.Input[float]]
    """Number of volume claims, and of snapshots. Default: 500."""
    load_balancers: NotRequired[pulumi.Input[float]]
    """Number of Services of type LoadBalancer, and of Gateways. Default: 10."""
    node_ports: NotRequired[pulumi.Input[float]]
    """Number of node ports of all Services. Default: 50."""
    objects: NotRequired[pulumi.Input[float]]
    """Number of objects of each other kind in etcd, and of pods with those that ended. Default:
    5000.
    """
    grace_seconds: NotRequired[pulumi.Input[float]]
    """Most seconds that a pod may take to end: `terminationGracePeriodSeconds`. Default: 3600."""


class IsolationArgs(TypedDict):
    """How the team is kept from others, and what its pods may ask of the host."""

    level: NotRequired[str]
    """Pod Security of its pods: `baseline` or `restricted`; `off`: the GPU quota is all that there
    is. Default: `baseline`.
    """
    priority_classes: NotRequired[list[pulumi.Input[str]]]
    """Priority classes of the host, besides KAI's, that pods may name. Default: none."""
    runtime_classes: NotRequired[list[pulumi.Input[str]]]
    """Runtime classes of the host that show no GPU: any pod may name them. Default: those of runc,
    crun, youki, gVisor and Kata, as their guides name them.
    """
    annotations: NotRequired[list[pulumi.Input[str]]]
    """Domains of annotations for runtimes and plugins that pods may have. Default: none."""
    volumes: NotRequired[list[pulumi.Input[str]]]
    """Kinds of volumes besides those of Pod Security `restricted`: `nfs`. Default: none."""
    network: NotRequired[NetworkArgs]
    """Who reaches whom. Default: the internet, and no other team."""
    bounds: NotRequired[BoundsArgs]
    """The most that the namespace may hold. Default: that of each bound."""


class MonitoringArgs(TypedDict):
    """How the host's Prometheus finds the team's metrics."""

    namespace: NotRequired[str]
    """Namespace of the host of Prometheus, which reaches the metrics. Default: `monitoring`."""
    operator: NotRequired[bool]
    """The Prometheus operator is there: declare monitors; else a ConfigMap. Default: false."""
    certificates: NotRequired[bool]
    """With the operator: watch when the vCluster's certificate runs out. Default: true."""
    interval: NotRequired[pulumi.Input[str]]
    """How often metrics are read: `30s`, `1m`. Default: `30s`."""
    labels: NotRequired[dict[str, pulumi.Input[str]]]
    """Labels by which Prometheus selects monitors. Default: none."""


class TeamNamespaceArgs(TypedDict):
    """What a team may have on the host, and what keeps its pods there."""

    name: NotRequired[str]
    """Name of the namespace. Default: `team-` and the component's name."""
    guards: NotRequired[pulumi.Input[str]]
    """`ready` of the host's HostGuards. Required unless `isolation.level` is `off`."""
    gpus: NotRequired[pulumi.Input[float]]
    """Most whole GPUs that its pods hold, as a ResourceQuota. Default: 0."""
    gpu_resource: NotRequired[str]
    """Name by which nodes advertise GPUs. Default: `nvidia.com/gpu`."""
    slices: NotRequired[dict[str, pulumi.Input[float]]]
    """Number of GPU slices by the name that nodes advertise: `nvidia.com/mig-1g.10gb`. Default:
    none.
    """
    devices: NotRequired[dict[str, pulumi.Input[float]]]
    """Number of other devices by the name that nodes advertise: `rdma/hca`. Default: none."""
    device_classes: NotRequired[dict[str, pulumi.Input[float]]]
    """Number of devices that ResourceClaims may ask for, by DRA device class. Default: none."""
    node_pool: NotRequired[dict[str, pulumi.Input[str]]]
    """Labels of the nodes that are the team's own. Default: it has none of its own."""
    control_pool: NotRequired[dict[str, pulumi.Input[str]]]
    """Labels of the nodes for its control plane. Default: none."""
    foreign_pools: NotRequired[list[dict[str, pulumi.Input[str]]]]
    """Labels of nodes that are others', for a team without nodes of its own. Default: none."""
    scheduler: NotRequired[str]
    """Where the KAI is that places its pods: `inside` its vCluster, on the `host`, `none`. Default:
    `inside`.
    """
    isolation: NotRequired[IsolationArgs]
    """How it is kept from others. Default: that of each field."""
    tolerations: NotRequired[list[TolerationArgs]]
    """Taints that its pods tolerate and others' do not. Default: none."""
    queues: NotRequired[list[pulumi.Input[str]]]
    """Leaf queues of the host's KAI that its pods may name. Default: none."""
    queue_prefix: NotRequired[pulumi.Input[str]]
    """Queues of the host's KAI whose names begin so are its, too. Default: none."""
    foreign_queues: NotRequired[list[pulumi.Input[str]]]
    """Queues that begin with `queue_prefix` and are others'. Default: none."""
    host_kai: NotRequired[bool]
    """The host has a KAI, whoever places the team's pods. Default: false."""
    guard: NotRequired[str]
    """Pods that name a wrong queue of the host: `deny`; `audit` warns; `off`. Default: `deny`."""
    outside_queues: NotRequired[str]
    """Pods that ask for GPUs without KAI where the team has queues: `deny`, `warn` or `allow`.
    Default: `deny`.
    """
    gpu_sharing: NotRequired[pulumi.Input[bool]]
    """The host's KAI gives parts of a GPU. Default: true."""
    nv_fractions: NotRequired[pulumi.Input[bool]]
    """The host's KAI is in mode NvFractions: pods may ask for GPU memory so. Default: false."""
    kai_images: NotRequired[list[pulumi.Input[str]]]
    """What names of KAI's images begin with, which `restricted` lets run. Default: the release
    table's.
    """
    labels: NotRequired[dict[str, pulumi.Input[str]]]
    """Labels of the namespace and of what is declared in it. Default: none."""
    annotations: NotRequired[dict[str, pulumi.Input[str]]]
    """Annotations of the namespace and of what is declared in it, pods not. Default: none."""
    registries: NotRequired[dict[str, RegistryArgs]]
    """Credentials by registry, in Secret `kai-fleet-registries` there. Default: none."""
    vcluster_version: NotRequired[pulumi.Input[str]]
    """Version of the vCluster, whose rights it gets. Default: the rights that any version needs."""
    vcluster_values: NotRequired[dict[str, Any]]
    """Values of the vCluster's chart, which decide about its rights. Default: none."""
    account: NotRequired[bool]
    """The account of the team's own stack may work in the namespace. Default: false."""
    monitoring: NotRequired[MonitoringArgs]
    """How Prometheus finds the team's metrics. Default: it does not."""
    use_existing: NotRequired[bool]
    """Others made the namespace: label and annotate it, keep it on deletion. Default: false."""
