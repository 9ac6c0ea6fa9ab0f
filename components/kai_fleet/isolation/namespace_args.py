"""The arguments of a team's namespace, which its component and the guards of the host read."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from pulumi import Input

from kai_fleet.declaring.inputs import Labels, RegistryArgs, TolerationArgs
from kai_fleet.isolation.host_guards import HostGuards
from kai_fleet.monitoring.arguments import MonitoringArgs


class NetworkArgs(TypedDict, total=False):
    """The team's NetworkPolicies. Its pods always reach each other and the vCluster's API."""

    enabled: bool
    """Declare NetworkPolicies in the team's namespace. Default: true."""
    internet: bool
    """Pods reach public addresses. Default: true."""
    private: Sequence[str]
    """Public networks (CIDRs) to treat as private, such as those of nodes or of IPv6 pods. Default:
    none.
    """
    cidrs: Sequence[str]
    """More networks (CIDRs) that pods reach, such as `10.20.0.0/16`. Default: none."""
    namespaces: Sequence[str]
    """Namespaces of the host that pods reach. Default: none."""
    attachments: bool
    """Pods may join more networks with Multus. NetworkPolicies do not apply to those. Default:
    false.
    """
    endpoints: bool
    """Services without a selector may have endpoints with private addresses. Default: false."""
    api_ports: Sequence[int]
    """Ports of the host's API server and of its Service. Default: 443 and 6443."""
    api_cidrs: Sequence[str]
    """Networks (CIDRs) of the host's API server and of its Service. Default: every address, at the
    API's ports.
    """
    ingress_from: Sequence[str]
    """Namespaces of the host that reach the team's pods. Default: none."""
    ingress_cidrs: Sequence[str]
    """Networks (CIDRs) that reach the team's pods. Load balancers need 0.0.0.0/0. Default: none."""


class BoundsArgs(TypedDict, total=False):
    """ResourceQuotas of the namespace. The vCluster's pods and objects count, too."""

    cpu: Input[str]
    """Sum of CPU requests, in cores: `200`, `500m`. If set, every pod has to request CPU. Default:
    no bound.
    """
    memory: Input[str]
    """Sum of memory requests, in bytes: `512Gi`. If set, every pod has to request memory. Default:
    no bound.
    """
    ephemeral_storage: Input[str]
    """Sum of requests of ephemeral storage, in bytes: `200Gi`. If set, every pod has to request
    some. Default: no bound.
    """
    storage: Input[str]
    """Sum of the sizes of all volume claims, in bytes: `10Ti`. Default: no bound."""
    pods: Input[float]
    """Number of pods. Default: 2000."""
    volumes: Input[float]
    """Number of volume claims. The same number bounds volume snapshots. Default: 500."""
    load_balancers: Input[float]
    """Number of Services of type LoadBalancer. The same number bounds Gateways. Default: 10."""
    node_ports: Input[float]
    """Number of node ports of all Services. Default: 50."""
    services: Input[float]
    """Number of Services. Each takes a cluster address of the host. Default: 500."""
    huge_pages: Input[str]
    """Sum of requests of huge pages, in bytes, for each page size: `64Gi`. Default: 0 on nodes that
    teams share, no bound on nodes of the team's own.
    """
    objects: Input[float]
    """Number of objects of each other kind in the host's etcd, such as Secrets and roles, and of
    pods that run or ended. Default: 5000.
    """
    grace_seconds: Input[float]
    """Longest `terminationGracePeriodSeconds` of a pod, in seconds. Default: 3600."""


class IsolationArgs(TypedDict, total=False):
    """Isolation of the team from others, and exceptions for its pods on the host."""

    level: str
    """Pod Security level of the team's pods: `baseline` or `restricted`. `off`: on the host only
    the GPU quota is left. Default: `baseline`.
    """
    priority_classes: Sequence[Input[str]]
    """PriorityClasses of the host, besides KAI's, that pods may name. Default: none."""
    runtime_classes: Sequence[Input[str]]
    """RuntimeClasses of the host that give no GPUs, so that any pod may name them. Default: those
    of runc, crun, youki, gVisor and Kata.
    """
    annotations: Sequence[Input[str]]
    """More annotations that pods, Secrets and ConfigMaps may have, as keys or domains of keys.
    Default: none.
    """
    volumes: Sequence[Input[str]]
    """Volume types besides those of Pod Security's `restricted`, such as `nfs`. Default: none."""
    volume_classes: Sequence[Input[str]]
    """StorageClasses and VolumeAttributesClasses that claims may name, besides the host's default
    class. Default: none.
    """
    network: NetworkArgs
    """NetworkPolicies of the team's namespace. Default: pods reach the internet, and no other team.
    """
    bounds: BoundsArgs
    """ResourceQuotas of the team's namespace. Default: that of each field."""


class TeamNamespaceArgs(TypedDict, total=False):
    """A team on the host: its namespace, quotas, nodes, queues and isolation."""

    name: str
    """Name of the namespace. Default: `team-` and the component's name."""
    guards: Input[str] | HostGuards
    """The host's guards: in Python a HostGuards, or its `ready`. Required unless `isolation.level`
    is `off`.
    """
    gpus: Input[float]
    """Whole GPUs that its pods may request together, as a ResourceQuota. Default: 0."""
    gpu_resource: str
    """Name by which nodes advertise GPUs. Default: `nvidia.com/gpu`."""
    slices: Mapping[str, Input[float]]
    """MIG slices that its pods may request, by resource: `nvidia.com/mig-1g.10gb`. Default: none.
    """
    devices: Mapping[str, Input[float]]
    """Number of devices other than GPUs that its pods may request, by the resource that nodes
    advertise, such as `rdma/hca`. Default: none.
    """
    device_classes: Mapping[str, Input[float]]
    """Number of devices that its ResourceClaims may request, by DeviceClass. Default: none."""
    node_pool: Labels
    """Labels of the nodes that only this team uses. Default: it shares nodes."""
    control_pool: Labels
    """Labels of the nodes for its control plane. Default: none."""
    foreign_pools: Sequence[Labels]
    """Labels of other teams' nodes, which a team without its own nodes may not use. Default: none.
    """
    scheduler: str
    """The KAI that schedules its pods: `inside` its vCluster, `host`, `none`. Default: `inside`."""
    isolation: IsolationArgs
    """Isolation from other teams. Default: that of each field."""
    tolerations: Sequence[TolerationArgs]
    """Taints that only its pods may tolerate. Default: none."""
    queues: Sequence[Input[str]]
    """Leaf queues of the host's KAI that its pods may name. Default: none."""
    queue_prefix: Input[str]
    """Prefix of more queues of the host's KAI that its pods may name. Default: none."""
    foreign_queues: Sequence[Input[str]]
    """Queues of other teams that begin with `queue_prefix`: its pods may not name them. Default:
    none.
    """
    queue_refusal: Input[str]
    """Why its queue in a shared QueueTree is not as declared, which fails the namespace. Default:
    it is as declared.
    """
    host_kai: bool
    """The host has a KAI, whether or not it schedules the team's pods. Default: false."""
    guard: str
    """What happens to pods that name a wrong queue of the host: `deny`; `audit` warns; `off`.
    Default: `deny`.
    """
    gpu_sharing: Input[bool]
    """The host's KAI shares GPUs. Default: true."""
    nv_fractions: Input[bool]
    """The host's KAI is in mode NvFractions: admit its annotations on pods. Default: false."""
    kai_images: Sequence[Input[str]]
    """Registries of KAI's images, which level `restricted` admits. Default: the release table's."""
    labels: Labels
    """Labels of the namespace and the objects declared in it. Default: none."""
    annotations: Labels
    """Annotations of the namespace and the objects declared in it. Default: none."""
    registries: Mapping[str, RegistryArgs]
    """Credentials by registry, for Secret `kai-fleet-registries`. Default: none."""
    vcluster_version: Input[str]
    """Version of the vCluster, for its RBAC. Default: the rights that every version needs."""
    vcluster_values: Mapping[str, Any]
    """Chart values of the vCluster, for its RBAC and the PriorityClass of its control plane.
    Default: none.
    """
    account: bool
    """Give the ServiceAccount of the team's own stack its rights in the namespace. Default: false.
    """
    monitoring: MonitoringArgs
    """Metrics for Prometheus. Default: none."""
    use_existing: bool
    """true: the namespace exists; label and annotate it, and keep it on deletion. false: declare
    it, and take over one that is there. Default: declare it, and refuse if it is there already.
    """
