"""An identity provider of a vCluster: the flags of its API server, its authority, roles of groups.

Through vCluster's own proxy a token is as good as a certificate: it asks the API server whose it is
(TokenReview), and passes on the name and the groups that come back (pkg/authentication).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kai_fleet.releases.chart_values import merged, nested
from kai_fleet.values import value_at

if TYPE_CHECKING:
    from kai_fleet.fleet.model import DeclaredTeam
    from kai_fleet.settings.sections.vcluster import Oidc

FILE: Final = "ca.crt"
_FLAGS: Final = "controlPlane.distro.k8s.apiServer.extraArgs"
_VOLUMES: Final = "controlPlane.statefulSet.persistence.addVolumes"
_MOUNTS: Final = "controlPlane.statefulSet.persistence.addVolumeMounts"
_FOLDER: Final = "/etc/kai-fleet/oidc"
_VOLUME: Final = "kai-fleet-oidc"
_RBAC: Final = "rbac.authorization.k8s.io"


def with_oidc(team: DeclaredTeam, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with those of the team's identity provider before what their lists have."""
    oidc, file = team.oidc, authority(team)
    if oidc is None:
        return dict(values)
    lists: dict[str, list[Any]] = {_FLAGS: list(flags(oidc))}
    if file is not None:
        lists[_VOLUMES] = [{"name": _VOLUME, "configMap": {"name": file[0]}}]
        lists[_MOUNTS] = [{"name": _VOLUME, "mountPath": _FOLDER, "readOnly": True}]
    more = (nested(key, [*own, *(value_at(values, key) or ())]) for key, own in lists.items())
    return merged(values, *more)


def flags(oidc: Oidc) -> tuple[str, ...]:
    """The API server's, every default written out: its own prefix of an email is none."""
    named = {
        "issuer-url": oidc.issuer,
        "client-id": oidc.client_id,
        "username-claim": oidc.username_claim,
        "username-prefix": oidc.username_prefix,
        "groups-claim": oidc.groups_claim,
        "groups-prefix": oidc.groups_prefix,
        **({"ca-file": f"{_FOLDER}/{FILE}"} if oidc.ca else {}),
    }
    return tuple(f"--oidc-{name}={value}" for name, value in named.items())


def runs_with(oidc: Oidc, values: Mapping[str, Any]) -> bool:
    """Whether the API server of a release with these values takes the provider's tokens."""
    return set(flags(oidc)) <= set(value_at(values, _FLAGS) or ())


def authority(team: DeclaredTeam) -> tuple[str, str] | None:
    """The ConfigMap with the provider's authority, and its content; None where that is public.

    Its name has a digest of the content: another one is read by a new pod.
    """
    text = team.oidc.ca if team.oidc is not None else None
    if text is None:
        return None
    return f"{team.name}-oidc-{hashlib.sha256(text.encode()).hexdigest()[:8]}", text


def group_roles(team: DeclaredTeam) -> Iterator[dict[str, Any]]:
    """What groups may do inside, as objects of the API; none where no group is declared.

    Everywhere they read, with Kubernetes' own role `view`: it shows no Secrets. What they change is
    in the namespace `default`: who may `edit` every namespace may take the accounts of kube-system,
    and with them everything.
    """
    if team.oidc is None or not team.groups:
        return
    # Kubernetes takes it into view, and by that into edit and admin.
    labels = {f"{_RBAC}/aggregate-to-view": "true"}
    yield {
        "kind": "ClusterRole",
        "metadata": {"name": "kai-fleet-readers", "labels": labels},
        "rules": [_reading("", "nodes"), _reading("scheduling.run.ai", "queues", "podgroups")],
    }
    yield _bound("ClusterRoleBinding", "view", team, team.groups)
    for role in ("edit", "admin"):
        if groups := [group for group, its in team.groups.items() if its == role]:
            yield _bound("RoleBinding", role, team, groups)


def _reading(group: str, *resources: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": list(resources), "verbs": ["get", "list", "watch"]}


def _bound(kind: str, role: str, team: DeclaredTeam, groups: Iterable[str]) -> dict[str, Any]:
    place = {"namespace": "default"} if kind == "RoleBinding" else {}
    prefix = team.oidc.groups_prefix if team.oidc is not None else ""
    return {
        "kind": kind,
        "metadata": {"name": f"kai-fleet-{role}", **place},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [
            {"apiGroup": _RBAC, "kind": "Group", "name": f"{prefix}{group}"}
            for group in sorted(groups)
        ],
    }
