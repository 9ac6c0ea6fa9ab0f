"""TeamNamespace: a namespace on the host with quotas, NetworkPolicies, guards and RBAC."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import ip_network
from typing import Any

from pulumi import ComponentResource, Input, Output, Resource, ResourceOptions
from pulumi_kubernetes import core
from pulumi_kubernetes.networking import v1 as networking
from pulumi_kubernetes.rbac import v1 as rbac

from kai_fleet.declaring.argument_check import Allowed, check
from kai_fleet.declaring.inputs import LEVELS
from kai_fleet.declaring.options import (
    adding_labels,
    child_options,
    component_options,
    depending_on,
)
from kai_fleet.declaring.pull_secrets import registry_secrets
from kai_fleet.isolation import policies, queue_guard, rights
from kai_fleet.isolation.bounds import (
    closes_network,
    isolation_level,
    network,
    node_bindings,
    pod_bounds,
    scheduler,
)
from kai_fleet.isolation.host_guards import HostGuards
from kai_fleet.isolation.limits import network_policies, quotas
from kai_fleet.isolation.namespace_args import TeamNamespaceArgs as TeamNamespaceArgs
from kai_fleet.isolation.team_stack_access import IN_NAMESPACE
from kai_fleet.monitoring.arguments import TeamMonitoringArgs
from kai_fleet.monitoring.team_monitoring import TeamMonitoring
from kai_fleet.names import (
    ISOLATION_LABEL,
    NAMESPACE,
    STACK_PULL_SECRET,
    TEAM_LABEL,
    TEAM_NAMESPACE,
    USED_LABEL,
)
from kai_fleet.ownership.owners import HostObject, refuse_others
from kai_fleet.queues.check import check_queues

ALLOWED = Allowed(
    choices={
        "scheduler": ("inside", "host", "none"),
        "guard": ("deny", "audit", "off"),
        "isolation.level": LEVELS,
    }
)
_CLUSTER_ROLE = "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole"
_INSTEAD = (
    "Give the team another name; if the namespace was made for it, and is to stay when this stack"
    " goes, write use_existing: true; if an update of this stack that was cut off made it, write"
    " use_existing: false"
)
_WITH_MASK = "a network with its mask: 10.20.0.0/16, or 10.20.0.1/32 for one address"
# Fields of NetworkArgs that have networks.
_NETWORKS = ("private", "cidrs", "api_cidrs", "ingress_cidrs")
# The label of a namespace that existed before the stack, beside the team's labels.
USED = {USED_LABEL: "used"}


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
        opts = adding_labels(opts, args.get("labels", {}), args.get("annotations", {}))
        super().__init__(TEAM_NAMESPACE, name, None, component_options(opts))
        if "use_existing" not in args:
            refuse_others(self, title, _host_objects(name, args), _INSTEAD)
        self._team = name
        self._args = args
        self._namespace = args.get("name", f"team-{name}")
        namespace = self._declare_namespace(opts)
        # Cluster-wide objects do not depend on the namespace: they are deleted while it terminates,
        # which takes Kubernetes 5 s. Objects inside are deleted with a namespace that we declare,
        # and one by one in an existing one.
        self._cluster_wide = child_options(self, opts)
        self._inside = ResourceOptions(
            parent=self,
            depends_on=[namespace],
            deleted_with=opts.deleted_with if args.get("use_existing") else namespace,
        )
        registries = args.get("registries")
        declared = [
            namespace,
            *self._queue_check(),
            *self._specified(core.v1.ResourceQuota, "", quotas(args)),
            *self._isolation(),
            *self._queue_guard(),
            *self._account_rights(),
            *registry_secrets(name, STACK_PULL_SECRET, self._namespace, registries, self._inside),
        ]
        if "monitoring" in args:
            monitored = depending_on(child_options(self, opts, ordered=False), namespace)
            TeamMonitoring(name, self._namespace, _monitoring_args(args), self._inside, monitored)
        # URNs are known in a preview, too.
        urns = Output.all(*(resource.urn for resource in declared))
        self.name = urns.apply(lambda _: self._namespace)
        self.register_outputs({"name": self._namespace})

    def _declare_namespace(self, opts: ResourceOptions) -> Resource:
        """Declare the namespace; of one that exists only our labels and annotations, which stay."""
        resource = f"{self._team}-namespace"
        metadata: Any = namespace_metadata(self._team, self._args)
        if not self._args.get("use_existing"):
            return core.v1.Namespace(resource, metadata=metadata, opts=child_options(self, opts))
        # Only these labels and annotations are ours. They stay on deletion: in a component some
        # releases of the plugin delete the namespace with its patch.
        metadata["labels"] |= USED
        kept = child_options(self, opts, retain_on_delete=True)
        return core.v1.NamespacePatch(resource, metadata=metadata, opts=kept)

    def _queue_check(self) -> Sequence[Resource]:
        """Declare the check of the team's queues, if those are of a shared tree.

        They are if there is a `queue_refusal`, also an empty one.
        """
        refusal = self._args.get("queue_refusal")
        if refusal is None:
            return []
        queues = self._args.get("queues", [])
        return [check_queues(f"{self._team}-queue", queues, refusal, self._cluster_wide)]

    def _specified(
        self, kind: Callable[..., Resource], prefix: str, specs: Mapping[str, object]
    ) -> Sequence[Resource]:
        """Declare an object in the namespace for each of these specs, by its name.

        `prefix` comes before that name, without `kai-fleet-`, in the name of the resource.
        """
        return [
            kind(
                f"{self._team}-{prefix}{name.removeprefix('kai-fleet-')}",
                metadata={"name": name, "namespace": self._namespace},
                spec=spec,
                opts=self._inside,
            )
            for name, spec in specs.items()
        ]

    def _isolation(self) -> Sequence[Resource]:
        """Declare NetworkPolicies, the vCluster's rights, and the bindings that keep the team off
        other teams' nodes, unless isolation is off.
        """
        if isolation_level(self._args) == "off":
            return []
        bindings = node_bindings(self._team, self._namespace, self._args)
        network_specs = network_policies(self._team, self._args)
        return [
            *self._specified(networking.NetworkPolicy, "network-", network_specs),
            *self._vcluster_rights(),
            *policies.declare(f"{self._team}-host-guard", {}, bindings, self._cluster_wide),
        ]

    def _vcluster_rights(self) -> Sequence[Resource]:
        """Declare the vCluster's rights: it reads on the host, and writes in the namespace."""
        account = rights.service_account(f"vc-{self._team}", self._namespace)
        on_host = rights.declare_role(
            f"{self._team}-vcluster",
            f"{rights.VCLUSTER}-{self._team}",
            rights.vcluster_on_host(self._args),
            account,
            self._cluster_wide,
        )
        inside = rights.declare_role(
            f"{self._team}-vcluster-inside",
            rights.VCLUSTER,
            rights.vcluster_in_namespace(self._team, self._args),
            account,
            self._inside,
            namespace=self._namespace,
        )
        return [*on_host, *inside]

    def _queue_guard(self) -> Sequence[Resource]:
        """Declare the bindings of the guard of the host's queues, if `is_on_host` says so."""
        if not queue_guard.is_on_host(self._args):
            return []
        mode = self._args.get("guard", "deny")
        bindings = queue_guard.bindings(self._team, mode, namespace=self._namespace)
        return policies.declare(f"{self._team}-queue-guard", {}, bindings, self._cluster_wide)

    def _account_rights(self) -> Sequence[Resource]:
        """Declare the rights of the account of the team's own stack, if it has one."""
        if not self._args.get("account"):
            return []
        binding = rbac.RoleBinding(
            f"{self._team}-account-rights",
            metadata={"name": IN_NAMESPACE, "namespace": self._namespace},
            role_ref=rights.role_ref("ClusterRole", IN_NAMESPACE),
            subjects=[rights.service_account(self._team, policies.ACCOUNTS)],
            opts=self._inside,
        )
        return [binding]


def _host_objects(name: str, args: TeamNamespaceArgs) -> list[HostObject]:
    """Objects on the host that only one team of this name may have."""
    path = f"/api/v1/namespaces/{args.get('name', f'team-{name}')}"
    objects = [HostObject(NAMESPACE, f"{name}-namespace", path)]
    if isolation_level(args) != "off":
        path = f"/apis/{rights.GROUP}/v1/clusterroles/{rights.VCLUSTER}-{name}"
        objects.append(HostObject(_CLUSTER_ROLE, f"{name}-vcluster-role", path))
    return objects


def namespace_labels(team: str, args: TeamNamespaceArgs) -> dict[str, Input[str]]:
    """Labels of a team's namespace. Those that policies select win over `labels`.

    With isolation off these are only the team's, so that no binding for all teams applies.
    """
    labels: dict[str, Input[str]] = {**args.get("labels", {}), TEAM_LABEL: team}
    if isolation_level(args) != "off":
        # `restricted` is enforced by the guard: Pod Security's label has no exceptions for KAI.
        labels[policies.ENFORCED] = "baseline"
        labels[f"{policies.ENFORCED}-version"] = "latest"
        labels[ISOLATION_LABEL] = isolation_level(args)
    return labels


def namespace_metadata(team: str, args: TeamNamespaceArgs) -> dict[str, Any]:
    """Name, labels and annotations of a team's namespace, with the bounds that policies read.

    The bounds come last, so that no other annotation changes them. With isolation off they are only
    those of the queue guard; otherwise `pod_bounds` win over these. Raises ValueError and KeyError
    as `pod_bounds` does.
    """
    bounds = dict[str, Input[str]]()
    if queue_guard.is_on_host(args):
        mode = args.get("guard", "deny")
        bounds |= queue_guard.queue_bounds(team, args["queues"], mode, args)
    if isolation_level(args) != "off":
        # For the order only; no policy reads it.
        guards = args.get("guards", "")
        bounds["policies"] = guards.ready if isinstance(guards, HostGuards) else guards
        bounds |= pod_bounds(team, args)
    return {
        "name": args.get("name", f"team-{team}"),
        "labels": namespace_labels(team, args),
        "annotations": {**args.get("annotations", {}), **policies.as_annotations(bounds)},
    }


def _monitoring_args(args: TeamNamespaceArgs) -> TeamMonitoringArgs:
    """The arguments of the team's TeamMonitoring.

    Prometheus scrapes KAI and the vCluster inside the namespace, whose NetworkPolicies keep it out:
    `network` says that a policy has to let it in. `host_queues` are the team's if the host's KAI
    schedules its pods. Raises KeyError without `monitoring`.
    """
    return {
        **args["monitoring"],
        "network": closes_network(args) and scheduler(args) == "inside",
        "host_queues": args.get("queues", []) if scheduler(args) == "host" else [],
    }


def _mistakes(args: TeamNamespaceArgs) -> Iterator[str]:
    """Sentences about wrong networks and ports, bounds as annotations, and missing guards."""
    rules: Mapping[str, Any] = network(args)
    for field in _NETWORKS:
        for text in rules.get(field, []):
            if not _is_network(text):
                yield f"isolation.network.{field} has {text!r}; write {_WITH_MASK}"
    if not rules.get("api_ports", True):
        # Kubernetes takes it for every port.
        yield "isolation.network.api_ports is empty; write a port, or drop it"
    for key in args.get("annotations", {}):
        if key.startswith(policies.BOUNDS):
            yield f"annotations.{key} is a bound, which other arguments write; drop it"
    if "guards" not in args and isolation_level(args) != "off":
        yield (
            "guards is missing, without which its pods would be kept from nothing; declare guards ="
            ' HostGuards("guards", {}) once for the host, and write "guards": guards, or'
            " isolation.level off"
        )


def _is_network(text: str) -> bool:
    """Whether the text is a network with its mask, which NetworkPolicies need.

    False for a mask as an address, `10.20.0.0/255.255.0.0`, which Kubernetes refuses. True for an
    address that is not the network's first.
    """
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return text.partition("/")[2].isdigit()
