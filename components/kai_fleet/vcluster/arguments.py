"""The arguments of a vCluster."""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from pulumi import Input

from kai_fleet.declaring.inputs import Labels, RegistryArgs, TolerationArgs
from kai_fleet.isolation.team_namespace import TeamNamespace


class AccessArgs(TypedDict, total=False):
    """How the vCluster's API is reached from where Pulumi runs."""

    type: str
    """How the API is exposed: `LoadBalancer`, `NodePort`, `ClusterIP` (only inside the host),
    `Ingress` or `Gateway` (TLS passthrough by host name). Default: `LoadBalancer`.
    """
    host: Input[str]
    """Name or address in the kubeconfig: with NodePort of a node, with Ingress and Gateway of the
    API, which has to be a DNS name. Required there. Default: the load balancer's address.
    """
    port: Input[float]
    """NodePort: the node port. Ingress, Gateway: the controller's port. Default: a free node port;
    443.
    """
    class_name: Input[str]
    """Ingress: its IngressClass. Default: the cluster's default class."""
    gateway: Input[str]
    """Gateway: NAMESPACE/NAME of a Gateway that has a TLS listener in mode Passthrough. Required
    there.
    """
    load_balancer_class: Input[str]
    """LoadBalancer: the Service's loadBalancerClass. Default: the cluster's default."""
    load_balancer_source_ranges: Sequence[Input[str]]
    """LoadBalancer: networks (CIDRs) that may reach it. Default: every address."""
    annotations: Labels
    """Annotations of the API's Service, Ingress or TLSRoute, such as those that ask for an internal
    load balancer. Default: none.
    """


class StoreArgs(TypedDict, total=False):
    """The backing store of a vCluster. Its type changes by a restore alone."""

    type: str
    """`embedded`: SQLite on its volume. `etcd`: etcd in pods of its own. `embeddedEtcd`, and
    `external`, a database, need a licence. Default: `embedded`.
    """
    replicas: Input[float]
    """etcd: number of members, odd. Default: 1."""
    data_source: Input[str]
    """external: URL with password, kept as a secret: `mysql://…` or `postgres://…`. Required there.
    """


class OidcArgs(TypedDict):
    """An OpenID Connect provider whose tokens the vCluster's API server accepts."""

    issuer: Input[str]
    """Issuer URL, as in claim `iss` of its tokens: `https://id.example.com`."""
    client_id: Input[str]
    """Client ID, as in claim `aud` of its tokens: `kubernetes`."""
    username_claim: NotRequired[Input[str]]
    """Claim with the user's name, which gets the prefix `oidc:`. Default: `sub`."""
    groups_claim: NotRequired[Input[str]]
    """Claim with the user's groups, which get the prefix `oidc:`. Default: `groups`."""
    ca: NotRequired[Input[str]]
    """Certificate authority of the issuer, as PEM. Default: public authorities."""


class VirtualClusterArgs(TypedDict, total=False):
    """A vCluster in an existing namespace."""

    namespace: Input[str] | TeamNamespace
    """Its namespace: in Python a TeamNamespace, or its `name`. Default: `team-` and the component's
    name.
    """
    version: str
    """Version of vCluster, from the release table. Default: v0.36.1."""
    untested: bool
    """Treat a version that is newer than the release table like the newest of its line. Default:
    false.
    """
    chart: str
    """Another chart: oci://…, https://… or a path. Default: vCluster's own."""
    chart_account: RegistryArgs
    """Credentials to pull `chart`. Default: none."""
    mode: str
    """Scheduler: `virtual`, inside it; `host`, the host's KAI; `default`. Default: `virtual`."""
    node_pool: Labels
    """Labels of the host nodes that it syncs and uses. Default: every node."""
    control_pool: Labels
    """Labels of the nodes for its control plane. Default: every node."""
    kubernetes_version: Input[str]
    """Version of Kubernetes inside, such as `v1.34.4`. It can only rise, by one minor version at a
    time. Default: that of the vCluster version.
    """
    access: AccessArgs
    """How its API is reached. Default: by a Service of type LoadBalancer."""
    availability: str
    """`high`: at least three control plane pods, and in place of SQLite an etcd of three members,
    spread over nodes and zones, with PodDisruptionBudgets. It changes as its store does, by a
    restore. `single`: none of it. Default: `single`.
    """
    priority_class_name: Input[str]
    """PriorityClass of the host for its control plane and the chart's etcd: a full node evicts pods
    of lower classes first. None of Kubernetes' or KAI's own. Default: none.
    """
    replicas: Input[float]
    """Number of control plane pods. More than 1 needs a store that is not embedded. Default: 1."""
    store: StoreArgs
    """Where it keeps its state. Default: SQLite on its volume."""
    storage_class: Input[str]
    """StorageClass of the volume (with etcd: of each member's). Cannot be changed later. Default:
    `""`, the cluster's default class.
    """
    size: Input[str]
    """Size of the volume (with etcd: of each member's), in bytes: `20Gi`. It can only grow, where
    the StorageClass allows that. Default: 5Gi.
    """
    resources: Mapping[str, Mapping[str, Input[str]]]
    """Requests and limits of each control plane pod. Default: requests of 200m CPU, 256Mi of
    memory, 1Gi of ephemeral storage; limits of 4Gi of memory, 10Gi of ephemeral storage (before
    v0.30 2Gi and 8Gi).
    """
    oidc: OidcArgs
    """Identity provider whose users may log in. Default: none."""
    groups: Mapping[str, str]
    """Role of each of the provider's groups in namespace `default`: `view`, `edit` or `admin`.
    Every group may also read everything but Secrets. Default: none.
    """
    isolation: str
    """Level of its TeamNamespace: `baseline`, `restricted` or `off`. Default: `baseline`."""
    tolerations: Sequence[TolerationArgs]
    """Taints that its control plane and all synced pods tolerate. Default: none."""
    affinity: Mapping[str, Any]
    """Affinity of its control plane and DNS, as in a pod's spec. Default: none."""
    image_pull_secrets: Sequence[Input[str]]
    """Secrets in its namespace that pull the images of the control plane and of all synced pods.
    Default: none.
    """
    registries: Mapping[str, RegistryArgs]
    """Credentials by registry, for Secret `kai-fleet-team-registries`. Default: none."""
    labels: Labels
    """Labels of the chart's objects. Default: none."""
    annotations: Labels
    """Annotations of the chart's objects, except pods and ServiceAccounts. Default: none."""
    licensed: bool
    """There is a vCluster licence or its free tier, so use the Pro image and allow its keys.
    Default: false, the open source image.
    """
    values: Mapping[str, Any]
    """Chart values, merged over all others. Default: none."""
    ready_timeout: int
    """Seconds that an update waits until its API answers. Default: 600."""
    stack_key: str
    """Key of a stack file that messages name: `kai-fleet:teams.ml`. Default: they name the
    component.
    """
    kubeconfig: Input[str]
    """Content of the host's kubeconfig, kept as a secret. Default: the provider in the options."""
    context: str
    """Context of your kubeconfig, in place of `kubeconfig`. Default: `kubernetes:context`."""
