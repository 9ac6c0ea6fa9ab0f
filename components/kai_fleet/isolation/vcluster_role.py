"""What a vCluster's account may do in `team-NAME`: one Role per team, in place of the chart's own.

The chart's role depends on values and version, and who installs it has to hold all that it gives.
This one is the platform's: each right is in it because the source of that version uses it, and
docs/isolation.md says of each what bounds it. `tests/unit/test_vcluster_role.py` holds it against
the role of each version's chart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kai_fleet.fleet.model import DeclaredTeam
from kubectl_fleet.releases import VclusterRelease, vcluster

if TYPE_CHECKING:
    from pulumi_kubernetes.rbac.v1 import PolicyRuleArgsDict

NAME: Final = "kai-fleet-vcluster"  # of the role, and of its binding

_READ: Final = ("get", "list", "watch")
_SYNC: Final = ("create", "delete", "patch", "update", *_READ)
_GATEWAY: Final = "gateway.networking.k8s.io"


def rules(
    team: str, release: VclusterRelease | None = None, values: Mapping[str, Any] | None = None
) -> list[PolicyRuleArgsDict]:
    """The rules of the role. Without a release and values, as of a team with a stack of its own,
    they are those of every version, and of what it may sync without the platform's word.
    """
    minor = _NEWEST if release is None else int(release.line.split(".")[1])
    known = values is not None
    own = _own_workload(team, minor, values)
    return [*_always(minor), *own, *_synced(minor, values or {}, known)]


def of_team(team: DeclaredTeam) -> list[PolicyRuleArgsDict]:
    """The rules of a team's role; raises UnknownVersion."""
    if team.granted or team.version is None:
        return rules(team.name)
    return rules(team.name, vcluster(team.version, untested=team.untested), team.chart_values)


_NEWEST: Final = 1_000


def _rule(
    group: str, resources: str, verbs: Sequence[str], names: Sequence[str] = ()
) -> PolicyRuleArgsDict:
    rule: PolicyRuleArgsDict = {
        "api_groups": [group],
        "resources": resources.split(),
        "verbs": list(verbs),
    }
    if names:
        rule["resource_names"] = list(names)
    return rule


def _always(minor: int) -> Iterator[PolicyRuleArgsDict]:
    # Its syncers write these in every mode (pkg/patcher/apply.go); its own Secrets are among them
    # (pkg/certs/ensure.go, pkg/util/kubeconfig/kubeconfig.go), and RBAC knows no prefix of names.
    yield _rule("", "configmaps secrets services pods persistentvolumeclaims", _SYNC)
    # Conditions that somebody inside writes: Status().Update in pkg/patcher/apply.go.
    # `kubectl debug`: pkg/controllers/resources/pods/ephemeral_containers.go.
    yield _rule("", "pods/status pods/ephemeralcontainers", ["update"])
    if minor >= 32:
        # From v0.32 on, and from Kubernetes 1.35 on: applyResizeSubresource in pods/syncer.go.
        yield _rule("", "pods/resize", ["patch"])
    # What kubectl asks inside is sent on to the host: pkg/server/filters/redirect.go.
    yield _rule("", "pods/attach pods/exec pods/portforward", ["create", "get"])
    yield _rule("", "pods/log", ["get"])
    yield _rule("", "events", (*(["create"] if minor >= 29 else []), *_READ))
    if minor >= 32:
        yield _rule("events.k8s.io", "events", ("create", *_READ))


def _own_workload(
    team: str, minor: int, values: Mapping[str, Any] | None
) -> Iterator[PolicyRuleArgsDict]:
    # The open source image reads none of them; what the licensed one reads, nobody can look up.
    yield _rule("apps", "statefulsets deployments replicasets", _READ)
    if minor < 31:
        return
    # pkg/certs/watcher.go, from v0.31 on: certificates that end within 90 days are made anew, and
    # an annotation of the pod template has the pods start again. It is a Deployment where nothing
    # is kept on a volume.
    own = [team]
    if values is None or _on(values, "controlPlane.backingStore.etcd.deploy.enabled"):
        own.append(f"{team}-etcd")
    yield _rule("apps", "statefulsets", ["patch"], own)
    yield _rule("apps", "deployments", ["patch"], [team])


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
    written = _get(values, "sync.toHost.endpoints.enabled") is not False
    yield _rule("", "endpoints", _SYNC if written else _READ)
    if minor >= 30 and _get(values, "sync.toHost.endpointSlices.enabled") is not False:
        yield _rule("discovery.k8s.io", "endpointslices", _SYNC)
    replicas = _get(values, "controlPlane.statefulSet.highAvailability.replicas")
    several = isinstance(replicas, int) and replicas > 1
    if not known or several or any(_on(values, key) for key in _SEVERAL):
        yield _rule("coordination.k8s.io", "leases", _SYNC)
    gateways = _on(values, "sync.toHost.gatewayApi.enabled")
    for key, group, kinds, verbs in _BY_VALUE:
        unasked = not known and kinds in _UNASKED
        if unasked or _on(values, f"{key}.enabled") or (gateways and key in _ALL_OF_GATEWAY):
            yield _rule(group, kinds, verbs)
    routed = any(_on(values, f"{key}.enabled") for key, group, *_ in _BY_VALUE if group == _GATEWAY)
    if gateways or routed:  # it judges grants inside, and syncs none
        yield _rule(_GATEWAY, "referencegrants", _READ)
    metrics = "integrations.metricsServer"
    if _on(values, f"{metrics}.enabled") and _get(values, f"{metrics}.pods") is not False:
        yield _rule("metrics.k8s.io", "pods", ["get", "list"])


def _on(values: Mapping[str, Any], key: str) -> bool:
    return _get(values, key) in (True, "true")


def _get(values: Mapping[str, Any], key: str) -> Any:
    found: Any = values
    for part in key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found
