"""TeamNamespace: a namespace on the host with quotas, NetworkPolicies, guards and RBAC."""

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_network
from typing import Any, Final, NotRequired, TypedDict

from pulumi import ComponentResource, Input, Output, Resource, ResourceOptions
from pulumi_kubernetes import core
from pulumi_kubernetes.networking import v1 as networking
from pulumi_kubernetes.rbac import v1 as rbac

from kai_fleet.argument_check import Allowed, check
from kai_fleet.guards import policies, queue_guard, rights
from kai_fleet.guards.bounds import level, node_bindings, pod_bounds
from kai_fleet.guards.limits import network_policies, quotas
from kai_fleet.host_guards import HostGuards
from kai_fleet.inputs import LEVELS, RegistryArgs, TolerationArgs
from kai_fleet.monitoring import MonitoringArgs, TeamMonitoring
from kai_fleet.names import (
    ISOLATION_LABEL,
    NAMESPACE,
    STACK_PULL_SECRET,
    TEAM_LABEL,
    TEAM_NAMESPACE,
    USED_LABEL,
)
from kai_fleet.options import (
    child_options,
    component_options,
    depending_on,
    labelled,
    registry_secrets,
)
from kai_fleet.owners import HostObject, refuse_others
from kai_fleet.queue_check import check_queues
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
_WITH_MASK: Final = "a network with its mask: 10.20.0.0/16, or 10.20.0.1/32 for one address"
# The label of a namespace that existed before the stack, beside the team's labels.
USED: Final = {USED_LABEL: "used"}


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
    """Chart values of the vCluster, for its RBAC. Default: none."""
    account: NotRequired[bool]
    """Give the ServiceAccount of the team's own stack its rights in the namespace. Default: false.
    """
    monitoring: NotRequired[MonitoringArgs]
    """Metrics for Prometheus. Default: none."""
    use_existing: NotRequired[bool]
    """true: the namespace exists; label and annotate it, and keep it on deletion. false: declare
    it, and take over one that is there. Default: declare it, and refuse if it is there already.
    """


class TeamNamespace(ComponentResource):
    """A namespace with a team's quotas, NetworkPolicies, guards and the RBAC of its vCluster.

    These are deleted with the namespace, never before it, so that no bound is lifted alone.

    Raises:
        pulumi.RunError: an argument is not one that it takes, `guards` is missing, or an object
            that it declares belongs to another program; or, in an update, the host cannot be read.
    """

    name: Output[str]
    """Its name, known once its quotas, policies and guards exist."""

    def __init__(
        self, name: str, args: TeamNamespaceArgs, opts: ResourceOptions | None = None
    ) -> None:
        title = f"TeamNamespace {name}"
        check(title, TeamNamespaceArgs, args, ALLOWED, lambda: _mistakes(args))
        opts = labelled(opts, args.get("labels", {}), args.get("annotations", {}))
        super().__init__(TEAM_NAMESPACE, name, None, component_options(opts))
        if "use_existing" not in args:
            refuse_others(self, title, _host_objects(name, args), _INSTEAD)
        self._args = args
        self._namespace = args.get("name", f"team-{name}")
        namespace = self._declare_namespace(name, opts)
        # Cluster-wide objects do not depend on the namespace: they are deleted while it terminates,
        # which takes Kubernetes 5 s. Objects inside are deleted with a namespace that we declare,
        # and one by one in an existing one.
        cluster_wide = child_options(self, opts)
        in_namespace = ResourceOptions(
            parent=self,
            depends_on=[namespace],
            deleted_with=opts.deleted_with if args.get("use_existing") else namespace,
        )
        declared = [
            namespace,
            *self._queue_check(name, cluster_wide),
            *self._quotas(name, in_namespace),
            *self._isolation(name, cluster_wide, in_namespace),
            *self._queue_guard(name, cluster_wide),
            *self._account_rights(name, in_namespace),
            *registry_secrets(
                name, STACK_PULL_SECRET, self._namespace, args.get("registries"), in_namespace
            ),
        ]
        if "monitoring" in args:
            monitored = depending_on(child_options(self, opts, ordered=False), namespace)
            TeamMonitoring(name, self._namespace, args, in_namespace, monitored)
        # URNs are known in a preview, too.
        urns = Output.all(*(resource.urn for resource in declared))
        self.name = urns.apply(lambda _: self._namespace)
        self.register_outputs({"name": self._namespace})

    def _declare_namespace(self, name: str, opts: ResourceOptions) -> Resource:
        metadata: Any = namespace_metadata(name, self._args)
        if not self._args.get("use_existing"):
            return core.v1.Namespace(
                f"{name}-namespace", metadata=metadata, opts=child_options(self, opts)
            )
        # Only these labels and annotations are ours. They stay on deletion: in a component some
        # releases of the plugin delete the namespace with its patch.
        metadata["labels"] |= USED
        kept = child_options(self, opts, retain_on_delete=True)
        return core.v1.NamespacePatch(f"{name}-namespace", metadata=metadata, opts=kept)

    def _queue_check(self, name: str, opts: ResourceOptions) -> Sequence[Resource]:
        """Declare that the team's queue is as declared, if it is one of a shared tree."""
        refusal = self._args.get("queue_refusal")
        if refusal is None:
            return []
        return [check_queues(f"{name}-queue", self._args.get("queues", []), refusal, opts)]

    def _quotas(self, name: str, in_namespace: ResourceOptions) -> Sequence[Resource]:
        specs: Mapping[str, Any] = quotas(self._args)
        return [
            core.v1.ResourceQuota(
                f"{name}-{quota}",
                metadata={"name": quota, "namespace": self._namespace},
                spec=spec,
                opts=in_namespace,
            )
            for quota, spec in specs.items()
        ]

    def _isolation(
        self, name: str, cluster_wide: ResourceOptions, in_namespace: ResourceOptions
    ) -> Sequence[Resource]:
        """Declare NetworkPolicies, the vCluster's rights and the nodes' guard, unless it is off."""
        if level(self._args) == "off":
            return []
        return [
            *self._network_policies(name, in_namespace),
            *self._vcluster_rights(name, cluster_wide, in_namespace),
            *self._node_guard(name, cluster_wide),
        ]

    def _network_policies(self, name: str, in_namespace: ResourceOptions) -> Sequence[Resource]:
        specs: Mapping[str, Any] = network_policies(name, self._args)
        return [
            networking.NetworkPolicy(
                f"{name}-network-{policy.removeprefix('kai-fleet-')}",
                metadata={"name": policy, "namespace": self._namespace},
                spec=spec,
                opts=in_namespace,
            )
            for policy, spec in specs.items()
        ]

    def _vcluster_rights(
        self, name: str, cluster_wide: ResourceOptions, in_namespace: ResourceOptions
    ) -> Sequence[Resource]:
        """Declare the vCluster's rights: it reads on the host, and writes in the namespace."""
        account = rights.service_account(f"vc-{name}", self._namespace)
        on_host = rights.declare_role(
            f"{name}-vcluster",
            {"name": f"{rights.VCLUSTER}-{name}"},
            rights.vcluster_on_host(self._args),
            account,
            cluster_wide,
        )
        inside = rights.declare_role(
            f"{name}-vcluster-inside",
            {"name": rights.VCLUSTER, "namespace": self._namespace},
            rights.vcluster_in_namespace(name, self._args),
            account,
            in_namespace,
        )
        return [*on_host, *inside]

    def _node_guard(self, name: str, cluster_wide: ResourceOptions) -> Sequence[Resource]:
        """Declare the bindings that keep the team off other teams' nodes."""
        bindings = node_bindings(name, self._namespace, self._args)
        return policies.declare(f"{name}-host-guard", {}, bindings, cluster_wide)

    def _queue_guard(self, name: str, cluster_wide: ResourceOptions) -> Sequence[Resource]:
        """Declare the bindings of the guard of the host's queues, if the team's pods use them."""
        if not queue_guard.is_on_host(self._args):
            return []
        mode = self._args.get("guard", "deny")
        bindings = queue_guard.bindings(name, mode, namespace=self._namespace)
        return policies.declare(f"{name}-queue-guard", {}, bindings, cluster_wide)

    def _account_rights(self, name: str, in_namespace: ResourceOptions) -> Sequence[Resource]:
        """Declare the rights of the account of the team's own stack, if it has one."""
        if not self._args.get("account"):
            return []
        binding = rbac.RoleBinding(
            f"{name}-account-rights",
            metadata={"name": IN_NAMESPACE, "namespace": self._namespace},
            role_ref=rights.role_ref("ClusterRole", IN_NAMESPACE),
            subjects=[rights.service_account(name, policies.ACCOUNTS)],
            opts=in_namespace,
        )
        return [binding]


def _host_objects(name: str, args: TeamNamespaceArgs) -> list[HostObject]:
    """Objects on the host that only one team of this name may have."""
    path = f"/api/v1/namespaces/{args.get('name', f'team-{name}')}"
    objects = [HostObject(NAMESPACE, f"{name}-namespace", path)]
    if level(args) != "off":
        path = f"/apis/{rights.GROUP}/v1/clusterroles/{rights.VCLUSTER}-{name}"
        objects.append(HostObject(_CLUSTER_ROLE, f"{name}-vcluster-role", path))
    return objects


def namespace_labels(team: str, args: Mapping[str, Any]) -> dict[str, Input[str]]:
    """Labels of a team's namespace. Those that policies select win over `labels`."""
    labels: dict[str, Input[str]] = {**args.get("labels", {}), TEAM_LABEL: team}
    if level(args) != "off":
        # `restricted` is enforced by the guard: Pod Security's label has no exceptions for KAI.
        labels[policies.ENFORCED] = "baseline"
        labels[f"{policies.ENFORCED}-version"] = "latest"
        labels[ISOLATION_LABEL] = level(args)
    return labels


def namespace_metadata(team: str, args: TeamNamespaceArgs) -> dict[str, Any]:
    """Name, labels and annotations of a team's namespace, with the bounds that policies read.

    The bounds come last, so that no other annotation changes them.
    """
    bounds = dict[str, Input[str]]()
    if queue_guard.is_on_host(args):
        mode = args.get("guard", "deny")
        bounds |= queue_guard.queue_bounds(team, args["queues"], mode, args)
    if level(args) != "off":
        # For the order only; no policy reads it.
        guards = args.get("guards", "")
        bounds["policies"] = guards.ready if isinstance(guards, HostGuards) else guards
        bounds |= pod_bounds(team, args)
    return {
        "name": args.get("name", f"team-{team}"),
        "labels": namespace_labels(team, args),
        "annotations": {**args.get("annotations", {}), **policies.as_annotations(bounds)},
    }


def _mistakes(args: TeamNamespaceArgs) -> Iterator[str]:
    """Sentences about texts that are no networks, bounds as annotations, and missing guards."""
    network = args.get("isolation", {}).get("network", {})
    networks = {
        "private": network.get("private", []),
        "cidrs": network.get("cidrs", []),
        "api_cidrs": network.get("api_cidrs", []),
        "ingress_cidrs": network.get("ingress_cidrs", []),
    }
    for field, cidrs in networks.items():
        for text in cidrs:
            if not _is_network(text):
                yield f"isolation.network.{field} has {text!r}; write {_WITH_MASK}"
    for key in args.get("annotations", {}):
        if key.startswith(policies.BOUNDS):
            yield f"annotations.{key} is a bound, which other arguments write; drop it"
    if "guards" not in args and level(args) != "off":
        yield (
            "guards is missing, without which its pods would be kept from nothing; declare guards ="
            ' HostGuards("guards", {}) once for the host, and write "guards": guards, or'
            " isolation.level off"
        )


def _is_network(text: str) -> bool:
    """Whether the text is a network with its mask, which NetworkPolicies need."""
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text
