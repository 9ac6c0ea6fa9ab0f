"""TeamNamespace: a namespace on the host with quotas, NetworkPolicies, guards and RBAC."""

from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from typing import Any, Final, NotRequired, TypedDict

import pulumi
from pulumi_kubernetes import core
from pulumi_kubernetes.networking import v1 as networking
from pulumi_kubernetes.rbac import v1 as rbac

from kai_fleet.argument_check import Allowed, check
from kai_fleet.guards import policies, queue_guard, rights
from kai_fleet.guards.bounds import level, node_bindings, pod_bounds
from kai_fleet.guards.limits import network_policies, quotas
from kai_fleet.inputs import LEVELS, RegistryArgs, TolerationArgs
from kai_fleet.monitoring import MonitoringArgs, TeamMonitoring
from kai_fleet.names import ISOLATION_LABEL, NAMESPACE, TEAM_LABEL, TEAM_NAMESPACE, USED_LABEL
from kai_fleet.options import after, child_of, component_options, noted, registry_secret
from kai_fleet.owners import HostObject, refuse_others
from kai_fleet.queue_tree import check_queues
from kai_fleet.settings.sections.access import OF_STACK
from kai_fleet.team_stack_access import IN_NAMESPACE

ALLOWED: Final = Allowed(
    choices={
        "scheduler": ("inside", "host", "none"),
        "guard": ("deny", "audit", "off"),
        "isolation.level": LEVELS,
    }
)
_CLUSTER_ROLE: Final = "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole"
_INSTEAD: Final = (
    "Give the team another name; if the namespace was made for it, and is to stay when this stack"
    " goes, write use_existing: true; if an update of this stack that was cut off made it, write"
    " use_existing: false"
)
_NETWORKS: Final = ("private", "cidrs", "api_cidrs", "ingress_cidrs")
_WITH_MASK: Final = "a network with its mask: 10.20.0.0/16, or 10.20.0.1/32 for one address"
USED: Final = {USED_LABEL: "used"}


class NetworkArgs(TypedDict):
    """NetworkPolicies. Pods of one team always reach each other and their vCluster's API."""

    enabled: NotRequired[bool]
    """Declare NetworkPolicies in the namespace. Default: true."""
    internet: NotRequired[bool]
    """Pods reach public addresses. Default: true."""
    private: NotRequired[list[str]]
    """Public networks (CIDRs) to treat as private: of nodes, of IPv6 pods. Default: none."""
    cidrs: NotRequired[list[str]]
    """More networks (CIDRs) that pods reach: 10.20.0.0/16. Default: none."""
    namespaces: NotRequired[list[str]]
    """Namespaces of the host that pods reach. Default: none."""
    attachments: NotRequired[bool]
    """Pods may use Multus networks, which bypass NetworkPolicies. Default: false."""
    endpoints: NotRequired[bool]
    """Services without a selector may have endpoints that are not public. Default: false."""
    api_ports: NotRequired[list[int]]
    """Ports of the host's API server and of its Service. Default: 443 and 6443."""
    api_cidrs: NotRequired[list[str]]
    """Networks (CIDRs) of the host's API server and of its Service. Default: every address."""
    ingress_from: NotRequired[list[str]]
    """Namespaces of the host that reach the team's pods. Default: none."""
    ingress_cidrs: NotRequired[list[str]]
    """Networks (CIDRs) that reach the team's pods; 0.0.0.0/0 for load balancers. Default: none."""


class BoundsArgs(TypedDict):
    """ResourceQuotas of the namespace, which count its vCluster, too."""

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
    services: NotRequired[pulumi.Input[float]]
    """Number of Services. Default: 500."""
    huge_pages: NotRequired[pulumi.Input[str]]
    """Sum of requests of huge pages, of each size: `64Gi`. Default: on shared nodes 0, else none.
    """
    objects: NotRequired[pulumi.Input[float]]
    """Number of objects of each other kind, and of pods that run or ended. Default: 5000."""
    grace_seconds: NotRequired[pulumi.Input[float]]
    """Most seconds that a pod may take to end: `terminationGracePeriodSeconds`. Default: 3600."""


class IsolationArgs(TypedDict):
    """Isolation of the team from others, and exceptions for its pods on the host."""

    level: NotRequired[str]
    """Pod Security level: `baseline`, `restricted`; `off`: GPU quota only. Default: `baseline`.
    """
    priority_classes: NotRequired[list[pulumi.Input[str]]]
    """Priority classes of the host, besides KAI's, that pods may name. Default: none."""
    runtime_classes: NotRequired[list[pulumi.Input[str]]]
    """Runtime classes without GPUs, for any pod. Default: runc, crun, youki, gVisor, Kata."""
    annotations: NotRequired[list[pulumi.Input[str]]]
    """Domains or keys of more annotations of pods, Secrets and ConfigMaps. Default: none."""
    volumes: NotRequired[list[pulumi.Input[str]]]
    """Volume types besides those of Pod Security `restricted`: `nfs`. Default: none."""
    volume_classes: NotRequired[list[pulumi.Input[str]]]
    """StorageClasses and VolumeAttributesClasses that claims may name besides the default class.
    Default: none.
    """
    network: NotRequired[NetworkArgs]
    """NetworkPolicies. Default: pods reach the internet, and no other team."""
    bounds: NotRequired[BoundsArgs]
    """ResourceQuotas. Default: that of each field."""


class TeamNamespaceArgs(TypedDict):
    """Quotas, nodes, queues and isolation of one team on the host."""

    name: NotRequired[str]
    """Name of the namespace. Default: `team-` and the component's name."""
    guards: NotRequired[pulumi.Input[str]]
    """`ready` of the host's HostGuards. Required unless `isolation.level` is `off`."""
    gpus: NotRequired[pulumi.Input[float]]
    """Whole GPUs that its pods may request together, as a ResourceQuota. Default: 0."""
    gpu_resource: NotRequired[str]
    """Name by which nodes advertise GPUs. Default: `nvidia.com/gpu`."""
    slices: NotRequired[dict[str, pulumi.Input[float]]]
    """Number of MIG slices by resource: `nvidia.com/mig-1g.10gb`. Default: none."""
    devices: NotRequired[dict[str, pulumi.Input[float]]]
    """Number of other devices by extended resource: `rdma/hca`. Default: none."""
    device_classes: NotRequired[dict[str, pulumi.Input[float]]]
    """Number of devices that ResourceClaims may request, by DeviceClass. Default: none."""
    node_pool: NotRequired[dict[str, pulumi.Input[str]]]
    """Labels of the nodes that only this team uses. Default: it shares nodes."""
    control_pool: NotRequired[dict[str, pulumi.Input[str]]]
    """Labels of the nodes for its control plane. Default: none."""
    foreign_pools: NotRequired[list[dict[str, pulumi.Input[str]]]]
    """Labels of other teams' nodes, for a team without nodes of its own. Default: none."""
    scheduler: NotRequired[str]
    """The KAI that schedules its pods: `inside` its vCluster, `host`, `none`. Default: `inside`."""
    isolation: NotRequired[IsolationArgs]
    """Isolation from other teams. Default: that of each field."""
    tolerations: NotRequired[list[TolerationArgs]]
    """Taints that only its pods may tolerate. Default: none."""
    queues: NotRequired[list[pulumi.Input[str]]]
    """Leaf queues of the host's KAI that its pods may name. Default: none."""
    queue_prefix: NotRequired[pulumi.Input[str]]
    """Prefix of more queues of the host's KAI that its pods may name. Default: none."""
    foreign_queues: NotRequired[list[pulumi.Input[str]]]
    """Queues of other teams that begin with `queue_prefix`. Default: none."""
    queue_refusal: NotRequired[pulumi.Input[str]]
    """Why its queue of a shared QueueTree is not as declared, which fails it. Default: it is."""
    host_kai: NotRequired[bool]
    """The host has a KAI, whether or not it schedules the team's pods. Default: false."""
    guard: NotRequired[str]
    """Pods that name a wrong queue of the host: `deny`; `audit` warns; `off`. Default: `deny`."""
    gpu_sharing: NotRequired[pulumi.Input[bool]]
    """The host's KAI shares GPUs. Default: true."""
    nv_fractions: NotRequired[pulumi.Input[bool]]
    """The host's KAI is in mode NvFractions: admit its annotations on pods. Default: false."""
    kai_images: NotRequired[list[pulumi.Input[str]]]
    """Registries of KAI's images, which `restricted` admits. Default: the release table's."""
    labels: NotRequired[dict[str, pulumi.Input[str]]]
    """Labels of the namespace and the objects declared in it. Default: none."""
    annotations: NotRequired[dict[str, pulumi.Input[str]]]
    """Annotations of the namespace and the objects declared in it. Default: none."""
    registries: NotRequired[dict[str, RegistryArgs]]
    """Credentials by registry, for Secret `kai-fleet-registries`. Default: none."""
    vcluster_version: NotRequired[pulumi.Input[str]]
    """Version of the vCluster, for its RBAC. Default: the rights that every version needs."""
    vcluster_values: NotRequired[dict[str, Any]]
    """Chart values of the vCluster, for its RBAC. Default: none."""
    account: NotRequired[bool]
    """Grant the ServiceAccount of the team's own stack rights in it. Default: false."""
    monitoring: NotRequired[MonitoringArgs]
    """Metrics for Prometheus. Default: none."""
    use_existing: NotRequired[bool]
    """true: the namespace exists; label and annotate it, keep it on deletion. false: take over what
    is there. Default: declare it, and refuse where it is there already.
    """


class TeamNamespace(pulumi.ComponentResource):
    """A namespace with a team's quotas, NetworkPolicies, guards and the RBAC of its vCluster.

    These are deleted with the namespace, never before it, so that no bound is lifted alone.

    Raises:
        pulumi.RunError: arguments that it does not take, `guards` is missing, or what it declares
            is others' already.
    """

    name: pulumi.Output[str]
    """Its name, known once its quotas, policies and guards exist."""

    def __init__(
        self, name: str, args: TeamNamespaceArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        check(f"TeamNamespace {name}", TeamNamespaceArgs, args, ALLOWED, lambda: _mistakes(args))
        opts = noted(opts, args.get("labels", {}), args.get("annotations", {}))
        super().__init__(TEAM_NAMESPACE, name, None, component_options(opts))
        ns_name, child = args.get("name", f"team-{name}"), child_of(self, opts)
        if "use_existing" not in args:
            refuse_others(self, f"TeamNamespace {name}", _on_host(name, args), _INSTEAD)
        metadata: Any = namespace_metadata(name, args)
        own: Any = core.v1.Namespace
        if args.get("use_existing"):
            # Only these labels and annotations are ours. They stay on deletion: in a component some
            # releases of the plugin delete the namespace with its patch.
            metadata["labels"] |= USED
            own, child = core.v1.NamespacePatch, child_of(self, opts, retain_on_delete=True)
        namespace: pulumi.Resource = own(f"{name}-namespace", metadata=metadata, opts=child)
        # Cluster-wide objects do not depend on the namespace: they are deleted while it terminates,
        # which takes Kubernetes 5 s. Objects inside are deleted with a namespace of ours, and one
        # by one in an existing one.
        beside = child_of(self, opts)
        inside = pulumi.ResourceOptions(
            parent=self,
            depends_on=[namespace],
            deleted_with=opts.deleted_with if args.get("use_existing") else namespace,
        )
        declared = [namespace]
        if (refusal := args.get("queue_refusal")) is not None:
            declared.append(check_queues(f"{name}-queue", args.get("queues", []), refusal, beside))

        def bound(kind: Any, part: str, own_name: str, **fields: Any) -> None:
            metadata = {"name": own_name, "namespace": ns_name}
            declared.append(kind(f"{name}-{part}", metadata=metadata, **fields, opts=inside))

        for quota, spec in quotas(args).items():
            bound(core.v1.ResourceQuota, quota, quota, spec=spec)
        if level(args) != "off":
            for policy, spec in network_policies(name, args).items():
                part = f"network-{policy.removeprefix('kai-fleet-')}"
                bound(networking.NetworkPolicy, part, policy, spec=spec)
            # A vCluster reads on the host, and writes what it syncs in the namespace.
            account, part = rights.service_account(f"vc-{name}", ns_name), f"{name}-vcluster"
            reads, writes = rights.vcluster_on_host(args), rights.vcluster_in_namespace(name, args)
            of_host = {"name": f"{rights.VCLUSTER}-{name}"}
            of_space = {"name": rights.VCLUSTER, "namespace": ns_name}
            declared += rights.declare_role(part, of_host, reads, account, beside)
            declared += rights.declare_role(f"{part}-inside", of_space, writes, account, inside)
            nodes = node_bindings(name, ns_name, args)
            declared += policies.declare(f"{name}-host-guard", {}, nodes, beside)
        if queue_guard.is_on_host(args):
            queues = queue_guard.bindings(name, args.get("guard", "deny"), namespace=ns_name)
            declared += policies.declare(f"{name}-queue-guard", {}, queues, beside)
        if args.get("account"):
            role_ref = rights.role_ref("ClusterRole", IN_NAMESPACE)
            subjects = [rights.service_account(name, policies.ACCOUNTS)]
            kind, part = rbac.RoleBinding, "account-rights"
            bound(kind, part, IN_NAMESPACE, role_ref=role_ref, subjects=subjects)
        if registries := args.get("registries"):
            declared.append(registry_secret(name, OF_STACK, ns_name, registries, inside))
        if "monitoring" in args:
            child = after(child_of(self, opts, ordered=False), namespace)
            TeamMonitoring(name, ns_name, args, inside, child)
        # URNs are known in a preview, too.
        urns = pulumi.Output.all(*(resource.urn for resource in declared))
        self.name = urns.apply(lambda _: ns_name)
        self.register_outputs({"name": ns_name})


def _on_host(name: str, args: TeamNamespaceArgs) -> list[HostObject]:
    """What is of one team of that name on a whole host."""
    path = f"/api/v1/namespaces/{args.get('name', f'team-{name}')}"
    objects = [HostObject(NAMESPACE, f"{name}-namespace", path)]
    if level(args) != "off":
        path = f"/apis/{rights.GROUP}/v1/clusterroles/{rights.VCLUSTER}-{name}"
        objects.append(HostObject(_CLUSTER_ROLE, f"{name}-vcluster-role", path))
    return objects


def namespace_labels(team: str, args: Mapping[str, Any]) -> dict[str, pulumi.Input[str]]:
    """Labels of a team's namespace: its own, overridden by those that policies select."""
    labels = {**args.get("labels", {}), TEAM_LABEL: team}
    if level(args) != "off":
        # `restricted` is enforced by the guard: Pod Security's label has no exceptions for KAI.
        labels |= {policies.ENFORCED: "baseline", f"{policies.ENFORCED}-version": "latest"}
        labels[ISOLATION_LABEL] = level(args)
    return labels


def namespace_metadata(team: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Name, labels, and annotations, among them the bounds that the host's policies read.

    The bounds come last, so that no other annotation changes them.
    """
    bounds: dict[str, pulumi.Input[str]] = {}
    if queue_guard.is_on_host(args):
        mode = args.get("guard", "deny")
        bounds |= queue_guard.queue_bounds(team, args["queues"], mode, args)
    if level(args) != "off":
        # An Output of HostGuards, for the order only; no policy reads it.
        bounds |= {"policies": args.get("guards", ""), **pod_bounds(team, args)}
    return {
        "name": args.get("name", f"team-{team}"),
        "labels": namespace_labels(team, args),
        "annotations": {**args.get("annotations", {}), **policies.as_annotations(bounds)},
    }


def _mistakes(args: TeamNamespaceArgs) -> Iterator[str]:
    """Guards that are missing, bounds that are written twice, and networks that are none."""
    network: Mapping[str, Any] = args.get("isolation", {}).get("network", {})
    for field in _NETWORKS:
        for text in network.get(field, ()):
            if not _is_network(text):
                yield f"isolation.network.{field} has {text!r}; write {_WITH_MASK}"
    for key in args.get("annotations", {}):
        if key.startswith(policies.BOUNDS):
            yield f"annotations.{key} is a bound, which other arguments write; drop it"
    if "guards" not in args and level(args) != "off":
        yield (
            "guards is missing, without which its pods would be kept from nothing; declare guards ="
            ' HostGuards("guards", {}) once for the host, and write "guards": guards.ready, or'
            " isolation.level off"
        )


def _is_network(text: str) -> bool:
    """Whether it is a network with its mask, which NetworkPolicies need."""
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text
