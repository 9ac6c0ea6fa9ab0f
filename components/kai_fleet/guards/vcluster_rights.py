"""What a vCluster's account may do: its ClusterRole on the host, its Role in its namespace.

They are in place of the chart's own, which depend on values and version: who installs it has to
hold all that it gives, and several versions reach into every pod of a node (`nodes/proxy`). These
are the platform's. On the host the account only reads. Each right in the namespace is there because
the source of that version uses it, and docs/isolation.md says of each what bounds it.
`tests/unit/test_vcluster_role.py` holds it against the role of each version's chart.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pulumi
from pulumi_kubernetes.rbac.v1 import PolicyRuleArgsDict

from kai_fleet.guards.bounds import Args
from kai_fleet.guards.declare import rule
from kai_fleet.inputs import resolved
from kai_fleet.releases import version_key
from kai_fleet.values import value_at

NAME: Final = "kai-fleet-vcluster"  # of the Role, and of its binding

READ: Final = ("get", "list", "watch")
_SYNC: Final = ("create", "delete", "patch", "update", *READ)
_GATEWAY: Final = "gateway.networking.k8s.io"
_CLASSES: Final = {
    "node.k8s.io": "runtimeclasses",
    "storage.k8s.io": "storageclasses csinodes csidrivers",
    "scheduling.k8s.io": "priorityclasses",
    "networking.k8s.io": "ingressclasses",
    _GATEWAY: "gatewayclasses",
    "snapshot.storage.k8s.io": "volumesnapshotclasses",
    "resource.k8s.io": "deviceclasses",
}
_NEWEST: Final = 1_000


def called(team: str) -> str:
    """The name of the ClusterRole and of its binding."""
    return f"kai-fleet-vcluster-{team}"


def account(team: str) -> str:
    """The name of the vCluster's account, in the team's namespace."""
    return f"vc-{team}"


def on_host(args: Args) -> list[PolicyRuleArgsDict]:
    """Classes of every kind; nodes and what runs on them where a scheduler inside chooses them."""
    rules = [rule(group, classes, READ) for group, classes in _CLASSES.items()]
    if args.get("scheduler", "inside") == "inside":
        rules.append(rule("", "nodes nodes/status", READ))
        # Of other teams' pods it takes the sum: what is left on a node that they share. Without
        # these two it waits for good before its first syncer (ModifyController in nodes/syncer.go).
        rules.append(rule("", "pods", ("list", "watch")))
        # What room a driver has on which nodes; they are in the driver's namespace. Without a
        # scheduler inside, `auto` does not sync them (pkg/config/validation.go).
        rules.append(rule("storage.k8s.io", "csistoragecapacities", READ))
    return rules


def in_namespace(team: str, args: Args) -> pulumi.Input[list[PolicyRuleArgsDict]]:
    """The rules of its Role. Without a version and values, as of a team with a stack of its own,
    they are those of every version, and of what it may sync without the platform's word.
    """
    return resolved(_rules, team, args.get("vcluster_version"), args.get("vcluster_values"))


def _rules(
    team: str, version: str | None, values: Mapping[str, Any] | None
) -> list[PolicyRuleArgsDict]:
    if version is not None:
        values = values or {}
    minor = _NEWEST if version is None else version_key(version)[1]
    own = _own_workload(team, minor, values)
    return [*_always(minor), *own, *_synced(minor, values or {}, values is not None)]


def _always(minor: int) -> Iterator[PolicyRuleArgsDict]:
    # Its syncers write these in every mode (pkg/patcher/apply.go); its own Secrets are among them
    # (pkg/certs/ensure.go, pkg/util/kubeconfig/kubeconfig.go), and RBAC knows no prefix of names.
    yield rule("", "configmaps secrets services pods persistentvolumeclaims", _SYNC)
    # Conditions that somebody inside writes: Status().Update in pkg/patcher/apply.go.
    # `kubectl debug`: pkg/controllers/resources/pods/ephemeral_containers.go.
    yield rule("", "pods/status pods/ephemeralcontainers", ["update"])
    if minor >= 32:
        # From v0.32 on, and from Kubernetes 1.35 on: applyResizeSubresource in pods/syncer.go.
        yield rule("", "pods/resize", ["patch"])
    # What kubectl asks inside is sent on to the host: pkg/server/filters/redirect.go.
    yield rule("", "pods/attach pods/exec pods/portforward", ["create", "get"])
    yield rule("", "pods/log", ["get"])
    yield rule("", "events", (*(["create"] if minor >= 29 else []), *READ))
    if minor >= 32:
        yield rule("events.k8s.io", "events", ("create", *READ))


def _own_workload(
    team: str, minor: int, values: Mapping[str, Any] | None
) -> Iterator[PolicyRuleArgsDict]:
    # The open source image reads none of them; what the licensed one reads, nobody can look up.
    yield rule("apps", "statefulsets deployments replicasets", READ)
    if minor < 31:
        return
    # pkg/certs/watcher.go, from v0.31 on: certificates that end within 90 days are made anew, and
    # an annotation of the pod template has the pods start again. It is a Deployment where nothing
    # is kept on a volume.
    own = [team]
    if values is None or _on(values, "controlPlane.backingStore.etcd.deploy.enabled"):
        own.append(f"{team}-etcd")
    yield rule("apps", "statefulsets", ["patch"], *own)
    yield rule("apps", "deployments", ["patch"], team)


# What is synced by a value only: the value, group, kinds, verbs.
_BY_VALUE: Final = (
    ("sync.toHost.ingresses", "networking.k8s.io", "ingresses", _SYNC),
    ("sync.toHost.serviceAccounts", "", "serviceaccounts", _SYNC),
    ("sync.toHost.podDisruptionBudgets", "policy", "poddisruptionbudgets", _SYNC),
    ("sync.toHost.volumeSnapshots", "snapshot.storage.k8s.io", "volumesnapshots", _SYNC),
    ("sync.toHost.resourceClaims", "resource.k8s.io", "resourceclaims", _SYNC),
    ("sync.toHost.resourceClaims", "resource.k8s.io", "resourceclaims/status", ["update"]),
    ("sync.toHost.resourceClaimTemplates", "resource.k8s.io", "resourceclaimtemplates", _SYNC),
    ("sync.toHost.gatewayApi.gateways", _GATEWAY, "gateways", _SYNC),
    ("sync.toHost.gatewayApi.httpRoutes", _GATEWAY, "httproutes", _SYNC),
    ("sync.toHost.gatewayApi.tlsRoutes", _GATEWAY, "tlsroutes", _SYNC),
    ("sync.toHost.gatewayApi.backendTLSPolicies", _GATEWAY, "backendtlspolicies", _SYNC),
    ("sync.toHost.gatewayApi.referenceGrants", _GATEWAY, "referencegrants", _SYNC),
)
# Of these a team with a stack of its own needs no word of the platform.
_UNASKED: Final = ("ingresses", "serviceaccounts", "poddisruptionbudgets")
_ALL_OF_GATEWAY: Final = ("sync.toHost.gatewayApi.gateways", "sync.toHost.gatewayApi.httpRoutes")
_SEVERAL: Final = (  # control planes that agree by a Lease: pkg/leaderelection/leaderelection.go
    "controlPlane.backingStore.etcd.embedded.enabled",
    "privateNodes.enabled",
)


def _synced(minor: int, values: Mapping[str, Any], known: bool) -> Iterator[PolicyRuleArgsDict]:
    # On unless switched off. Slices are synced from v0.30 on.
    written = value_at(values, "sync.toHost.endpoints.enabled") is not False
    yield rule("", "endpoints", _SYNC if written else READ)
    if minor >= 30 and value_at(values, "sync.toHost.endpointSlices.enabled") is not False:
        yield rule("discovery.k8s.io", "endpointslices", _SYNC)
    replicas = value_at(values, "controlPlane.statefulSet.highAvailability.replicas")
    several = isinstance(replicas, int) and replicas > 1
    if not known or several or any(_on(values, key) for key in _SEVERAL):
        yield rule("coordination.k8s.io", "leases", _SYNC)
    gateways = _on(values, "sync.toHost.gatewayApi.enabled")
    for key, group, kinds, verbs in _BY_VALUE:
        unasked = not known and kinds in _UNASKED
        if unasked or _on(values, f"{key}.enabled") or (gateways and key in _ALL_OF_GATEWAY):
            yield rule(group, kinds, verbs)
    routed = any(_on(values, f"{key}.enabled") for key, group, *_ in _BY_VALUE if group == _GATEWAY)
    if gateways or routed:  # it judges grants inside, and syncs none
        yield rule(_GATEWAY, "referencegrants", READ)
    metrics = "integrations.metricsServer"
    if _on(values, f"{metrics}.enabled") and value_at(values, f"{metrics}.pods") is not False:
        yield rule("metrics.k8s.io", "pods", ["get", "list"])


def _on(values: Mapping[str, Any], key: str) -> bool:
    return value_at(values, key) in (True, "true")
