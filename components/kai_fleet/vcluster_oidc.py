"""OIDC login to a vCluster: flags of its API server, the issuer's CA, and roles of groups.

vCluster's proxy takes tokens as it takes certificates: it has the API server review them
(TokenReview), and forwards the user and groups of the answer (pkg/authentication).
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pulumi

from kai_fleet.inputs import joined, resolved
from kai_fleet.releases.chart_values import merged, nested
from kai_fleet.values import value_at

FILE: Final = "ca.crt"
ROLES: Final = ("view", "edit", "admin")
# Defaults are written out: for claim `email` the API server's default is no prefix.
_DEFAULTS: Final = {
    "username_claim": "sub",
    "username_prefix": "oidc:",
    "groups_claim": "groups",
    "groups_prefix": "oidc:",
}
_FLAGS: Final = "controlPlane.distro.k8s.apiServer.extraArgs"
_PERSISTENCE: Final = "controlPlane.statefulSet.persistence"
_FOLDER: Final = "/etc/kai-fleet/oidc"
_VOLUME: Final = "kai-fleet-oidc"
_RBAC: Final = "rbac.authorization.k8s.io"
Oidc = Mapping[str, Any]


def with_oidc(values: dict[str, Any], name: str, oidc: Oidc | None) -> dict[str, Any]:
    """The values with the provider's flags, volume and mount in front of their lists."""
    if oidc is None:
        return values
    lists: dict[str, list[Any]] = {_FLAGS: flags(oidc)}
    if "ca" in oidc:
        volume = {"name": _VOLUME, "configMap": {"name": authority_name(name, oidc["ca"])}}
        mount = {"name": _VOLUME, "mountPath": _FOLDER, "readOnly": True}
        lists |= {
            f"{_PERSISTENCE}.addVolumes": [volume],
            f"{_PERSISTENCE}.addVolumeMounts": [mount],
        }
    more = (nested(key, [*own, *(value_at(values, key) or ())]) for key, own in lists.items())
    return merged(values, *more)


def flags(oidc: Oidc) -> list[pulumi.Input[str]]:
    """The API server's flags."""
    named = {
        "issuer-url": oidc["issuer"],
        "client-id": oidc["client_id"],
        **{key.replace("_", "-"): oidc.get(key, unset) for key, unset in _DEFAULTS.items()},
        **({"ca-file": f"{_FOLDER}/{FILE}"} if "ca" in oidc else {}),
    }
    return [joined("", [f"--oidc-{name}=", value]) for name, value in named.items()]


def authority_name(name: str, ca: pulumi.Input[str]) -> pulumi.Input[str]:
    """Name of the ConfigMap with the issuer's CA, with a hash of it: a new CA gives a new name, and
    so a new pod that reads it.
    """
    return resolved(lambda pem: f"{name}-oidc-{hashlib.sha256(pem.encode()).hexdigest()[:8]}", ca)


def group_roles(oidc: Oidc, groups: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """RBAC objects inside the vCluster for groups; none without groups.

    All groups may read every namespace by ClusterRole `view`, which shows no Secrets. `edit` and
    `admin` are bound in namespace `default` only: `edit` in kube-system would allow pods with its
    ServiceAccounts, and so everything.
    """
    if not groups:
        return
    # Kubernetes aggregates it into view, and so into edit and admin.
    labels = {f"{_RBAC}/aggregate-to-view": "true"}
    yield {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "kai-fleet-readers", "labels": labels},
        "rules": [_reading("", "nodes"), _reading("scheduling.run.ai", "queues", "podgroups")],
    }
    prefix = oidc.get("groups_prefix", _DEFAULTS["groups_prefix"])
    yield _bound("ClusterRoleBinding", "view", prefix, groups)
    for role in ("edit", "admin"):
        if members := [group for group, granted in groups.items() if granted == role]:
            yield _bound("RoleBinding", role, prefix, members)


def _reading(group: str, *resources: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": list(resources), "verbs": ["get", "list", "watch"]}


def _bound(kind: str, role: str, prefix: Any, groups: Any) -> dict[str, Any]:
    place = {"namespace": "default"} if kind == "RoleBinding" else {}
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": kind,
        "metadata": {"name": f"kai-fleet-{role}", **place},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [
            {"apiGroup": _RBAC, "kind": "Group", "name": joined("", [prefix, group])}
            for group in sorted(groups)
        ],
    }
