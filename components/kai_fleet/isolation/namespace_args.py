"""The arguments of a team's namespace, which its component and the guards of the host read."""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from pulumi import Input

from kai_fleet.declaring.inputs import RegistryArgs, TolerationArgs
from kai_fleet.isolation.host_guards import HostGuards
from kai_fleet.monitoring.arguments import MonitoringArgs


class NetworkArgs(TypedDict):
    """The team's NetworkPolicies. Its pods always reach each other and the vCluster's API."""

    enabled: NotRequired[bool]
    """Declare NetworkPolicies in the team's namespace. Default: true."""
    internet: NotRequired[bool]
    """Pods reach public addresses. Default: true."""
    private: NotRequired[Sequence[str]]
    """Public networks (CIDRs) to treat as private, such as those of nodes or of IPv6 pods. Default:
    none.
    """
    cidrs: NotRequired[Sequence[str]]
    """More networks (CIDRs) that pods reach, such as `10.20.0.0/16`. Default: none."""
    namespaces: NotRequired[Sequence[str]]
    """Namespaces of the host that pods reach. Default: none."""
    attachments: NotRequired[bool]
    """Pods may join more networks with Multus. NetworkPolicies do not apply to those. Default:
    false.
    """
    endpoints: NotRequired[bool]
    """Services without a selector may have endpoints with private addresses. Default: false."""
    api_ports: NotRequired[Sequence[int]]
    """Ports of the host's API server and of its Service. Default: 443 and 6443."""
    api_cidrs: NotRequired[Sequence[str]]
    """Networks (CIDRs) of the host's API server and of its Service. Default: every address, at the
    API's ports.
    """
    ingress_from: NotRequired[Sequence[str]]
    """Namespaces of the host that reach the team's pods. Default: none."""
    ingress_cidrs: NotRequired[Sequence[str]]
    """Networks (CIDRs) that reach the team's pods. Load balancers need 0.0.0.0/0. Default: none."""


class BoundsArgs(TypedDict):
    """ResourceQuotas of the namespace. The vCluster's pods and objects count, too."""

    cpu: NotRequired[Input[str]]
    """Sum of CPU requests, in cores: `200`, `500m`. If set, every pod has to request CPU. Default:
    no bound.
    """
    memory: NotRequired[Input[str]]
    """Sum of memory requests, in bytes: `512Gi`. If set, every pod has to request memory. Default:
    no bound.
    """
    ephemeral_storage: NotRequired[Input[str]]
    """Sum of requests of ephemeral storage, in bytes: `200Gi`. If set, every pod has to request
    some. Default: no bound.
    """
    storage: NotRequired[Input[str]]
    """Sum of the sizes of all volume claims, in bytes: `10Ti`. Default: no bound."""
    pods: NotRequired[Input[float]]
    """Number of pods. Default: 2000."""
    volumes: NotRequired[Input[float]]
    """Number of volume claims. The same number bounds volume snapshots. Default: 500."""
    load_balancers: NotRequired[Input[float]]
    """Number of Services of type LoadBalancer. The same number bounds Gateways. Default: 10."""
    node_ports: NotRequired[Input[float]]
    """Number of node ports of all Services. Default: 50."""
    services: NotRequired[Input[float]]
    """Number of Services. Each takes a cluster address of the host. Default: 500."""
    huge_pages: NotRequired[Input[str]]
    """Sum of requests of huge pages, in bytes, for each page size: `64Gi`. Default: 0 on nodes that
    teams share, no bound on nodes of the team's own.
    """
    objects: NotRequired[Input[float]]
    """Number of objects of each other kind in the host's etcd, such as Secrets and roles, and of
    pods that run or ended. Default: 5000.
    """
    grace_seconds: NotRequired[Input[float]]
    """Longest `terminationGracePeriodSeconds` of a pod, in seconds. Default: 3600."""


class IsolationArgs(TypedDict):
    """Isolation of the team from others, and exceptions for its pods on the host."""

    level: NotRequired[str]
    """Pod Security level of the team's pods: `baseline` or `restricted`. `off`: on the host only
    the GPU quota is left. Default: `baseline`.
    """
    priority_classes: NotRequired[Sequence[Input[str]]]
    """PriorityClasses of the host, besides KAI's, that pods may name. Default: none."""
    runtime_classes: NotRequired[Sequence[Input[str]]]
    """RuntimeClasses of the host that give no GPUs, so that any pod may name them. Default: those
    of runc, crun, youki, gVisor and Kata.
    """
    annotations: NotRequired[Sequence[Input[str]]]
    """More annotations that pods, Secrets and ConfigMaps may have, as keys or domains of keys.
    Default: none.
    """
    volumes: NotRequired[Sequence[Input[str]]]
    """Volume types besides those of Pod Security's `restricted`, such as `nfs`. Default: none."""
    volume_classes: NotRequired[Sequence[Input[str]]]
    """StorageClasses and VolumeAttributesClasses that claims may name, besides the host's default
    class. Default: none.
    """
    network: NotRequired[NetworkArgs]
    """NetworkPolicies of the team's namespace. Default: pods reach the internet, and no other team.
    """
    bounds: NotRequired[BoundsArgs]
    """ResourceQuotas of the team's namespace. Default: that of each field."""


class TeamNamespaceArgs(TypedDict):
    """A team on the host: its namespace, quotas, nodes, queues and isolation."""

    name: NotRequired[str]
    """Name of the namespace. Default: `team-` and the component's name."""
    guards: NotRequired[Input[str] | HostGuards]
    """The host's guards: in Python a HostGuards, or its `ready`. Required unless `isolation.level`
    is `off`.
    """
    gpus: NotRequired[Input[float]]
    """Whole GPUs that its pods may request together, as a ResourceQuota. Default: 0."""
    gpu_resource: NotRequired[str]
    """Name by which nodes advertise GPUs. Default: `nvidia.com/gpu`."""
    slices: NotRequired[Mapping[str, Input[float]]]
    """MIG slices that its pods may request, by resource: `nvidia.com/mig-1g.10gb`. Default: none.
    """
    devices: NotRequired[Mapping[str, Input[float]]]
    """Number of devices other than GPUs that its pods may request, by the resource that nodes
    advertise, such as `rdma/hca`. Default: none.
    """
    device_classes: NotRequired[Mapping[str, Input[float]]]
    """Number of devices that its ResourceClaims may request, by DeviceClass. Default: none."""
    node_pool: NotRequired[Mapping[str, Input[str]]]
    """Labels of the nodes that only this team uses. Default: it shares nodes."""
    control_pool: NotRequired[Mapping[str, Input[str]]]
    """Labels of the nodes for its control plane. Default: none."""
    foreign_pools: NotRequired[Sequence[Mapping[str, Input[str]]]]
    """Labels of other teams' nodes, which a team without its own nodes may not use. Default: none.
    """
    scheduler: NotRequired[str]
    """The KAI that schedules its pods: `inside` its vCluster, `host`, `none`. Default: `inside`."""
    isolation: NotRequired[IsolationArgs]
    """Isolation from other teams. Default: that of each field."""
    tolerations: NotRequired[Sequence[TolerationArgs]]
    """Taints that only its pods may tolerate. Default: none."""
    queues: NotRequired[Sequence[Input[str]]]
    """Leaf queues of the host's KAI that its pods may name. Default: none."""
    queue_prefix: NotRequired[Input[str]]
    """Prefix of more queues of the host's KAI that its pods may name. Default: none."""
    foreign_queues: NotRequired[Sequence[Input[str]]]
    """Queues of other teams that begin with `queue_prefix`: its pods may not name them. Default:
    none.
    """
    queue_refusal: NotRequired[Input[str]]
    """Why its queue in a shared QueueTree is not as declared, which fails the namespace. Default:
    it is as declared.
    """
    host_kai: NotRequired[bool]
    """The host has a KAI, whether or not it schedules the team's pods. Default: false."""
    guard: NotRequired[str]
    """What happens to pods that name a wrong queue of the host: `deny`; `audit` warns; `off`.
    Default: `deny`.
    """
    gpu_sharing: NotRequired[Input[bool]]
    """The host's KAI shares GPUs. Default: true."""
    nv_fractions: NotRequired[Input[bool]]
    """The host's KAI is in mode NvFractions: admit its annotations on pods. Default: false."""
    kai_images: NotRequired[Sequence[Input[str]]]
    """Registries of KAI's images, which level `restricted` admits. Default: the release table's."""
    labels: NotRequired[Mapping[str, Input[str]]]
    """Labels of the namespace and the objects declared in it. Default: none."""
    annotations: NotRequired[Mapping[str, Input[str]]]
    """Annotations of the namespace and the objects declared in it. Default: none."""
    registries: NotRequired[Mapping[str, RegistryArgs]]
    """Credentials by registry, for Secret `kai-fleet-registries`. Default: none."""
    vcluster_version: NotRequired[Input[str]]
    """Version of the vCluster, for its RBAC. Default: the rights that every version needs."""
    vcluster_values: NotRequired[Mapping[str, Any]]
    """Chart values of the vCluster, for its RBAC and the PriorityClass of its control plane.
    Default: none.
    """
    account: NotRequired[bool]
    """Give the ServiceAccount of the team's own stack its rights in the namespace. Default: false.
    """
    monitoring: NotRequired[MonitoringArgs]
    """Metrics for Prometheus. Default: none."""
    use_existing: NotRequired[bool]
    """true: the namespace exists; label and annotate it, and keep it on deletion. false: declare
    it, and take over one that is there. Default: declare it, and refuse if it is there already.
    """
