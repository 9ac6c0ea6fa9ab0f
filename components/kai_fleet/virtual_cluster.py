"""One vCluster: its release, the wait until it answers, and a kubeconfig that works from here."""

from typing import Any, NotRequired, TypedDict

import pulumi

from kai_fleet.inputs import RegistryArgs, TolerationArgs


class AccessArgs(TypedDict):
    """How the vCluster's API is reached from where Pulumi runs."""

    type: NotRequired[str]
    """`LoadBalancer`, `NodePort`, `ClusterIP` (from inside the host alone), `Ingress` or `Gateway`
    (TLS passed through by host name). Default: `LoadBalancer`.
    """
    host: NotRequired[pulumi.Input[str]]
    """Name or address to use: a node's for NodePort, that of the API for Ingress and Gateway.
    Default: the load balancer's.
    """
    port: NotRequired[pulumi.Input[float]]
    """Port. NodePort: a fixed one; Ingress, Gateway: the controller's. Default: Kubernetes' choice;
    443.
    """
    class_name: NotRequired[pulumi.Input[str]]
    """Ingress: its class. Default: the cluster's default class."""
    gateway: NotRequired[pulumi.Input[str]]
    """Gateway: NAMESPACE/NAME of one with a TLS listener in mode Passthrough. Required there."""
    load_balancer_class: NotRequired[pulumi.Input[str]]
    """LoadBalancer: the controller that makes it. Default: the cluster's default."""
    load_balancer_source_ranges: NotRequired[list[pulumi.Input[str]]]
    """LoadBalancer: networks (CIDRs) that reach it. Default: every address."""
    annotations: NotRequired[dict[str, pulumi.Input[str]]]
    """Annotations of the API's Service, Ingress or TLSRoute. Default: none."""


class StoreArgs(TypedDict):
    """Where the vCluster keeps its state. The type stays as it is."""

    type: NotRequired[str]
    """`embedded`: SQLite on its volume; `etcd`: pods of its own; with a licence `embeddedEtcd`, or
    `external`, a database. Default: `embedded`.
    """
    replicas: NotRequired[pulumi.Input[float]]
    """etcd: how many pods, an odd number. Default: 1."""
    storage_class: NotRequired[pulumi.Input[str]]
    """etcd: StorageClass of each one's volume. Default: `storage_class` of the vCluster."""
    size: NotRequired[pulumi.Input[str]]
    """etcd: size of each one's volume: `20Gi`. Default: `size` of the vCluster."""
    data_source: NotRequired[pulumi.Input[str]]
    """external: address with password: `postgres://…` or `mysql://…`. It is kept as a secret.
    Required there.
    """


class OidcArgs(TypedDict):
    """An OpenID Connect provider whose tokens the vCluster's API server takes."""

    issuer: pulumi.Input[str]
    """Address of the provider, as tokens have it in `iss`: `https://id.example.com`."""
    client_id: pulumi.Input[str]
    """Client for which tokens are, as they have it in `aud`: `kubernetes`."""
    username_claim: NotRequired[pulumi.Input[str]]
    """Claim that is a user's name. Default: `sub`."""
    groups_claim: NotRequired[pulumi.Input[str]]
    """Claim that lists groups. Default: `groups`."""
    username_prefix: NotRequired[pulumi.Input[str]]
    """Text before each user's name inside. Default: `oidc:`."""
    groups_prefix: NotRequired[pulumi.Input[str]]
    """Text before each group's name inside. Default: `oidc:`."""
    ca: NotRequired[pulumi.Input[str]]
    """PEM of the authority of its certificate. Default: public authorities."""


class ResourceAmountsArgs(TypedDict):
    """Amounts of what a node has."""

    cpu: NotRequired[pulumi.Input[str]]
    """CPU in cores: `200m`. Default: requests `200m`, limits none."""
    memory: NotRequired[pulumi.Input[str]]
    """Memory: `4Gi`. Default: requests `256Mi`, limits `4Gi`; `2Gi` before v0.30."""
    ephemeral_storage: NotRequired[pulumi.Input[str]]
    """The node's own disk: `10Gi`. Default: requests `1Gi`, limits `10Gi`; `8Gi` before v0.30."""


class ResourcesArgs(TypedDict):
    """Resources of each pod of the control plane."""

    requests: NotRequired[ResourceAmountsArgs]
    """What each pod is promised. Default: that of each amount, of the chart."""
    limits: NotRequired[ResourceAmountsArgs]
    """The most that each pod may take. Default: that of each amount, of the chart."""


class VirtualClusterArgs(TypedDict):
    """A vCluster, in a namespace that is there."""

    namespace: NotRequired[pulumi.Input[str]]
    """Namespace for it: `name` of a TeamNamespace. Default: `team-` and the component's name."""
    version: NotRequired[str]
    """Version of vCluster, of the release table: `v0.36.1`. Default: the newest tested one."""
    untested: NotRequired[bool]
    """Take a version that is newer than the table for its newest line. Default: false."""
    chart: NotRequired[str]
    """Another chart: oci://…, https://… or a path. Default: vCluster's own."""
    mode: NotRequired[str]
    """Who places its pods: `virtual`, a scheduler inside, `host`, the host's KAI, or `default`, the
    host's Kubernetes. Default: `virtual`.
    """
    node_pool: NotRequired[dict[str, pulumi.Input[str]]]
    """Labels of the host's nodes that it has inside. Default: every node."""
    control_pool: NotRequired[dict[str, pulumi.Input[str]]]
    """Labels of the nodes for its control plane. Default: every node."""
    kubernetes_version: NotRequired[pulumi.Input[str]]
    """Kubernetes inside: `v1.34.4`. Default: that of the version's chart."""
    access: NotRequired[AccessArgs]
    """How its API is reached. Default: by a load balancer."""
    replicas: NotRequired[pulumi.Input[float]]
    """Number of pods of its control plane; more than 1 needs another store. Default: 1."""
    store: NotRequired[StoreArgs]
    """Where it keeps its state. Default: SQLite on its volume."""
    storage_class: NotRequired[pulumi.Input[str]]
    """StorageClass of its volume. It stays as it is. Default: the cluster's default."""
    size: NotRequired[pulumi.Input[str]]
    """Size of its volume: `20Gi`. It stays as it is. Default: `5Gi`, of the chart."""
    resources: NotRequired[ResourcesArgs]
    """Resources of each pod of its control plane. Default: the chart's."""
    oidc: NotRequired[OidcArgs]
    """Identity provider by whose accounts people enter. Default: none."""
    groups: NotRequired[dict[str, str]]
    """Groups of that provider, and what each may do in namespace `default`: `view`, `edit` or
    `admin`. Default: none.
    """
    isolation: NotRequired[str]
    """`isolation.level` of its TeamNamespace: `baseline`, `restricted` or `off`. Default:
    `baseline`.
    """
    tolerations: NotRequired[list[TolerationArgs]]
    """Taints that its control plane and all synced pods tolerate. Default: none."""
    affinity: NotRequired[dict[str, Any]]
    """Affinity of its control plane and DNS, as in a pod's spec. Default: none."""
    image_pull_secrets: NotRequired[list[pulumi.Input[str]]]
    """Secrets of the namespace by which its and all synced pods' images are pulled. Default: none.
    """
    registries: NotRequired[dict[str, RegistryArgs]]
    """Credentials by registry, in Secret `kai-fleet-team-registries` there. Default: none."""
    labels: NotRequired[dict[str, pulumi.Input[str]]]
    """Labels of what its chart makes. Default: none."""
    annotations: NotRequired[dict[str, pulumi.Input[str]]]
    """Annotations of what its chart makes, pods and accounts not. Default: none."""
    licensed: NotRequired[bool]
    """There is a vCluster licence: the Pro image, and its keys. Default: false, the open image."""
    values: NotRequired[dict[str, Any]]
    """Values of the chart, merged over all others. Default: none."""
    ready_timeout: NotRequired[int]
    """Seconds that an update waits until its API answers. Default: 600."""
    kubeconfig: NotRequired[pulumi.Input[str]]
    """Kubeconfig of the host, its content. It is kept as a secret. Default: the Kubernetes provider
    in the options.
    """
    context: NotRequired[str]
    """Context of your own kubeconfig, in place of `kubeconfig`. Default: `kubernetes:context`."""
