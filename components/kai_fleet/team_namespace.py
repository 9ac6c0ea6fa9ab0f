"""A team's place on the host: its namespace, and everything that bounds what is made there."""

from collections.abc import Mapping
from typing import Any, Final, NotRequired, TypedDict

import pulumi
from pulumi_kubernetes import core
from pulumi_kubernetes.networking import v1 as networking
from pulumi_kubernetes.rbac import v1 as rbac

from kai_fleet.deployed import TEAM_NAMESPACE
from kai_fleet.guards import policies, queue_guard, rights
from kai_fleet.guards.bounds import level, network, node_bindings, pod_bounds
from kai_fleet.guards.network_policies import network_policies
from kai_fleet.guards.quotas import quotas
from kai_fleet.inputs import LEVELS, RegistryArgs, TolerationArgs, one_of, plain
from kai_fleet.monitoring import TeamMonitoring
from kai_fleet.options import child_of, noted
from kai_fleet.registry_secrets import OF_STACK, registry_secret
from kai_fleet.team_stack_access import IN_NAMESPACE

PLACES: Final = ("inside", "host", "none")
GUARD_MODES: Final = ("deny", "audit", "off")
USED: Final = {policies.USED_LABEL: "used"}


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
    """Number of objects of each other kind, and of pods that run or ended. Default: 5000."""
    grace_seconds: NotRequired[pulumi.Input[float]]
    """Most seconds that a pod may take to end: `terminationGracePeriodSeconds`. Default: 3600."""


class IsolationArgs(TypedDict):
    """How the team is kept from others, and what its pods may ask of the host."""

    level: NotRequired[str]
    """Pod Security of its pods: `baseline`, `restricted`; `off`: quotas alone. Default: `baseline`.
    """
    priority_classes: NotRequired[list[pulumi.Input[str]]]
    """Priority classes of the host, besides KAI's, that pods may name. Default: none."""
    runtime_classes: NotRequired[list[pulumi.Input[str]]]
    """Runtime classes without GPUs, which any pod may name. Default: runc, crun, gVisor, Kata."""
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
    scheduler: NotRequired[bool]
    """Alert where no KAI inside the vCluster answers. Default: false."""
    parent_queues: NotRequired[list[pulumi.Input[str]]]
    """Queues of that KAI with others below them, which alerts leave out. Default: none."""


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
    """Number of GPU slices by their names: `nvidia.com/mig-1g.10gb`. Default: none."""
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
    """The KAI that places its pods: `inside` its vCluster, `host`, `none`. Default: `inside`."""
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
    gpu_sharing: NotRequired[pulumi.Input[bool]]
    """The host's KAI gives parts of a GPU. Default: true."""
    nv_fractions: NotRequired[pulumi.Input[bool]]
    """The host's KAI is in mode NvFractions: pods may ask for GPU memory so. Default: false."""
    kai_images: NotRequired[list[pulumi.Input[str]]]
    """Registries of KAI's images, which `restricted` lets run. Default: the release table's."""
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


class TeamNamespace(pulumi.ComponentResource):
    """A namespace with the quotas, network policies, guards and vCluster's rights of a team.

    They go with the namespace, never before it: nobody is to lift a bound by itself.

    Raises:
        pulumi.RunError: a choice is none, or `guards` is missing.
        TypeError: an Output decides which resources are declared.
    """

    name: pulumi.Output[str]
    """Its name, once everything that bounds it is there."""

    def __init__(
        self, name: str, args: TeamNamespaceArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        opts = noted(opts, args.get("labels", {}), args.get("annotations", {}))
        super().__init__(TEAM_NAMESPACE, name, None, opts)
        _check(f"TeamNamespace {name}", args)
        space, namespace = args.get("name", f"team-{name}"), self._namespace(name, args, opts)
        # What is of the whole cluster stands beside the namespace, not after it: while that ends,
        # which takes Kubernetes 5 s, it is removed. What is inside goes with a namespace of ours,
        # and one by one from that of others.
        beside = child_of(self, opts)
        inside = pulumi.ResourceOptions(
            parent=self,
            depends_on=[namespace],
            deleted_with=opts.deleted_with if args.get("use_existing") else namespace,
        )
        declared = [namespace]

        def bound(kind: Any, part: str, own_name: str, **fields: Any) -> None:
            metadata = {"name": own_name, "namespace": space}
            declared.append(kind(f"{name}-{part}", metadata=metadata, **fields, opts=inside))

        for quota, spec in quotas(args).items():
            bound(core.v1.ResourceQuota, quota, quota, spec=spec)
        if level(args) != "off":
            for policy, spec in network_policies(name, args).items():
                part = f"network-{policy.removeprefix('kai-fleet-')}"
                bound(networking.NetworkPolicy, part, policy, spec=spec)
            # On the host the vCluster reads; in the namespace it writes what it syncs.
            account, part = rights.service_account(f"vc-{name}", space), f"{name}-vcluster"
            reads, writes = rights.vcluster_on_host(args), rights.vcluster_in_namespace(name, args)
            of_host = {"name": f"{rights.VCLUSTER}-{name}"}
            of_space = {"name": rights.VCLUSTER, "namespace": space}
            declared += rights.declare_role(part, of_host, reads, account, beside)
            declared += rights.declare_role(f"{part}-inside", of_space, writes, account, inside)
            nodes = node_bindings(name, space, args)
            declared += policies.declare(f"{name}-host-guard", {}, nodes, beside)
        if queue_guard.is_on_host(args):
            queues = queue_guard.bindings(name, args.get("guard", "deny"), namespace=space)
            declared += policies.declare(f"{name}-queue-guard", {}, queues, beside)
        if args.get("account"):
            role_ref = rights.role_ref("ClusterRole", IN_NAMESPACE)
            subjects = [rights.service_account(name, policies.ACCOUNTS)]
            kind, part = rbac.RoleBinding, "account-rights"
            bound(kind, part, IN_NAMESPACE, role_ref=role_ref, subjects=subjects)
        if registries := args.get("registries"):
            declared.append(registry_secret(name, OF_STACK, space, registries, inside))
        if "monitoring" in args:
            child = pulumi.ResourceOptions(parent=self, depends_on=[namespace])
            TeamMonitoring(name, space, args, inside, child)
        # URNs are known in a preview, too.
        urns = pulumi.Output.all(*(resource.urn for resource in declared))
        self.name = urns.apply(lambda _: space)
        self.register_outputs({"name": space})

    def _namespace(
        self, name: str, args: TeamNamespaceArgs, opts: pulumi.ResourceOptions
    ) -> pulumi.Resource:
        metadata: Any = namespace_metadata(name, args)
        kind: Any = core.v1.Namespace
        child = child_of(self, opts)
        if args.get("use_existing"):
            # Ours are these labels and annotations alone. They are left there: below a component,
            # releases of the plugin take the deletion of a patch for that of the namespace.
            metadata["labels"] |= USED
            kind, child = core.v1.NamespacePatch, child_of(self, opts, retain_on_delete=True)
        namespace: pulumi.Resource = kind(f"{name}-namespace", metadata=metadata, opts=child)
        return namespace


def namespace_labels(team: str, args: Mapping[str, Any]) -> dict[str, pulumi.Input[str]]:
    """The labels of a team's namespace: its own, and over them those that decide."""
    labels = {**args.get("labels", {}), policies.TEAM_LABEL: team}
    if level(args) != "off":
        # `restricted` is held by the guard: the label knows no exceptions, and needs some.
        labels |= {policies.ENFORCED: "baseline", f"{policies.ENFORCED}-version": "latest"}
        labels[policies.ISOLATION_LABEL] = level(args)
    return labels


def namespace_metadata(team: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Name, labels, and as annotations what the host's policies let the team's pods do.

    What `annotations` of the arguments add changes no bound: these come last.
    """
    bounds: dict[str, pulumi.Input[str]] = {}
    if queue_guard.is_on_host(args):
        bounds |= queue_guard.host_bounds(team, args)
    if level(args) != "off":
        # What depends on this value comes after the policies; no policy reads it.
        bounds |= {"policies": args.get("guards", ""), **pod_bounds(team, args)}
    return {
        "name": args.get("name", f"team-{team}"),
        "labels": namespace_labels(team, args),
        "annotations": {**args.get("annotations", {}), **policies.as_annotations(bounds)},
    }


def _check(component: str, args: TeamNamespaceArgs) -> None:
    """Raise where a choice is none, or an Output decides what is declared."""
    for key in ("name", "gpu_resource", "host_kai", "account", "use_existing"):
        plain(component, key, args.get(key))
    one_of(component, "scheduler", args.get("scheduler", PLACES[0]), PLACES)
    one_of(component, "guard", args.get("guard", GUARD_MODES[0]), GUARD_MODES)
    one_of(component, "isolation.level", level(args), LEVELS)
    plain(component, "isolation.network", network(args))
    if bounds := [key for key in args.get("annotations", {}) if key.startswith(policies.BOUNDS)]:
        raise pulumi.RunError(
            f"{component}: annotations.{bounds[0]} is a bound, which other arguments write; drop it"
        )
    if "guards" not in args and level(args) != "off":
        raise pulumi.RunError(
            f"{component}: guards is missing, without which its pods would be kept from nothing;"
            ' declare guards = HostGuards("guards", {}) once for the host, and write "guards":'
            " guards.ready, or isolation.level off"
        )
