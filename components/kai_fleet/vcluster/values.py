"""The values of one vCluster release, by scheduling mode and version."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pulumi

from kai_fleet.fleet.chart_stores import DATA_SOURCE
from kai_fleet.fleet.installed import access_values
from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.options import hidden
from kai_fleet.releases import VclusterRelease
from kai_fleet.releases.chart_values import merged, nested
from kai_fleet.settings.sections.access import Access
from kai_fleet.settings.sections.isolation import Isolation
from kai_fleet.settings.sections.teams import Mode
from kai_fleet.values import value_at
from kai_fleet.vcluster.oidc import with_oidc

# The chart's default image is the Pro one, which crash-loops without a licence (V5).
OSS_IMAGE: Final = {"repository": "loft-sh/vcluster-oss"}
# The control plane, and its etcd where a team has one of its own.
_STATEFUL: Final = ("controlPlane.statefulSet", "controlPlane.backingStore.etcd.deploy.statefulSet")
_DNS: Final = "controlPlane.coredns"


def vcluster_values(
    release: VclusterRelease, team: DeclaredTeam, namespace: pulumi.Input[str]
) -> dict[str, Any]:
    """What the chart of that version gets for a team in its mode, then the team's own values."""
    values = merged(
        _always(team.name, namespace),
        {} if team.licensed else nested("controlPlane.statefulSet.image", dict(OSS_IMAGE)),
        _scheduling(release, team.mode, team.node_pool),
        _isolated(team.isolation or Isolation()),
        # The control plane on the platform's own nodes, or the team's, never another team's (T8).
        _at((f"{it}.scheduling.nodeSelector" for it in _STATEFUL), dict(team.control_pool)),
        _noted(team),
        _scheduled("tolerations", [it.spec for it in team.tolerations]),
        _scheduled("affinity", team.affinity.spec if team.affinity else {}),
        # Of every pod that it syncs. It then shows its own scheduler nodes without these taints.
        _at(["sync.toHost.pods.enforceTolerations"], [it.text for it in team.tolerations]),
        _pulling(team.image_pull_secrets),
        _secret(team.control_plane),
        _reachable(team.name, namespace, team.access or Access()),
        _at(["controlPlane.distro.k8s.image.tag"], team.kubernetes_version),
        hidden(team.values),
    )
    return with_oidc(team, values)


def _always(name: str, namespace: pulumi.Input[str]) -> dict[str, Any]:
    return {
        # The chart's quota and limit range (20 pods, 512Mi) break GPU work (V7).
        "policies": {"resourceQuota": {"enabled": False}, "limitRange": {"enabled": False}},
        # Otherwise every synced node gets a Service on the host (V13).
        "networking": {"advanced": {"proxyKubelets": {"byHostname": False, "byIP": False}}},
        # Otherwise each pod on the host has the tokens of its account in annotations (T19).
        "sync": {"toHost": {"pods": {"useSecretsForSATokens": True}}},
        # The name of the context, for whoever merges several teams' kubeconfigs.
        "exportKubeConfig": {"context": _joined(namespace, f"-{name}")},
    }


def _scheduling(
    release: VclusterRelease, mode: Mode, node_pool: Mapping[str, str]
) -> dict[str, Any]:
    labels = {"labels": dict(node_pool)} if node_pool else {}
    # Fraction pods and KAI's reservation pods name the RuntimeClass nvidia (V8).
    sync: dict[str, Any] = {"runtimeClasses": {"enabled": True}}
    if mode == "virtual":
        # A virtual scheduler needs real nodes to choose from (V2); only the team's (V1).
        sync["nodes"] = {"enabled": True, "selector": labels or {"all": True}}
        return merged({"sync": {"fromHost": sync}}, nested(release.virtual_scheduler_key, True))
    if labels:
        sync["nodes"] = {"selector": labels}  # becomes the node selector of the synced pods
    if mode == "host":
        # Without it the priority class is stripped, and KAI sees no train, build, inference (V8).
        sync["priorityClasses"] = {"enabled": True}
        # KAI's pod-grouper must not follow owners that it may not read (V4).
        return {"sync": {"fromHost": sync}, "experimental": {"syncSettings": {"setOwner": False}}}
    return {"sync": {"fromHost": sync}}


def _isolated(isolation: Isolation) -> dict[str, Any]:
    """What the platform does itself, and what the vCluster can say earlier than the host."""
    if not isolation.on:
        return {}
    return {
        # Its rights are the platform's: what the chart's own roles grant depends on the values.
        "rbac": {"clusterRole": {"enabled": False}, "role": {"enabled": False}},
        # The host denies such pods in any case; with this, `kubectl apply` inside says so.
        "policies": {"podSecurityStandard": "baseline"},
    }


def _scheduled(key: str, value: Any) -> dict[str, Any]:
    """The control plane, its etcd where it has one, and its DNS."""
    return _at([*(f"{it}.scheduling.{key}" for it in _STATEFUL), f"{_DNS}.deployment.{key}"], value)


def _pulling(secrets: Sequence[str]) -> dict[str, Any]:
    """The Secrets of the accounts of the control plane and of all synced pods.

    A pod inside names none, so Kubernetes gives it those of its account on the host: in this way
    they reach KAI's operands as well, which its charts before v0.14 forget (K17).
    """
    if not secrets:
        return {}
    accounts = ("serviceAccount", "workloadServiceAccount")
    named = [{"name": name} for name in secrets]
    return {"controlPlane": {"advanced": {it: {"imagePullSecrets": named} for it in accounts}}}


def _noted(team: DeclaredTeam) -> dict[str, Any]:
    """The labels and annotations of the team's namespace also on what the chart makes there.

    The pods have the labels alone: of annotations the guards let few domains through. Accounts have
    neither: by annotations there clouds give their rights to whoever runs as one.
    """
    notes = {"labels": dict(team.labels), "annotations": dict(team.annotations)}
    kept = {kind: noted for kind, noted in notes.items() if noted}
    services = ("controlPlane.service", "controlPlane.advanced.headlessService", f"{_DNS}.service")
    workloads = (*_STATEFUL, f"{_DNS}.deployment")
    return merged(
        _at((*services, *workloads), kept),
        _at((f"{it}.pods.labels" for it in workloads), dict(team.labels)),
    )


def _reachable(name: str, namespace: pulumi.Input[str], access: Access) -> dict[str, Any]:
    """The Service, and every name the API's certificate must answer to (V11)."""
    inside = _joined(f"{name}.", namespace, ".svc")
    names = [inside, _joined(inside, ".cluster.local")]
    if access.host is not None:
        names.append(access.host)
    return merged(access_values(access), nested("controlPlane.proxy.extraSANs", names))


def _secret(control_plane: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of the control plane, the address of its database encrypted in every state (P6)."""
    url = value_at(control_plane, DATA_SOURCE)
    if url is None:
        return dict(control_plane)
    return merged(control_plane, nested(DATA_SOURCE, pulumi.Output.secret(url)))


def _joined(*parts: pulumi.Input[str]) -> pulumi.Input[str]:
    """Text, as an output only where a part is one: the rest is read by the rules."""
    if all(isinstance(part, str) for part in parts):
        return "".join(str(part) for part in parts)
    return pulumi.Output.concat(*parts)


def _at(keys: Iterable[str], value: Any) -> dict[str, Any]:
    """The same value at several keys of the chart; none where it is empty."""
    return merged(*(nested(key, value) for key in keys)) if value else {}
