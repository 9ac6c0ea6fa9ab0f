"""What groups of an identity provider may do inside a team's vCluster.

Everywhere they read, with Kubernetes' own role `view`: it shows no Secrets. What they change is in
the namespace `default`: who may `edit` every namespace may take the accounts of kube-system, and
with them everything.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from kai_fleet.fleet.model import DeclaredTeam

READERS: Final = "kai-fleet-readers"
_NAMESPACE: Final = "default"
_API: Final = "rbac.authorization.k8s.io"


def group_roles(team: DeclaredTeam) -> Iterator[dict[str, Any]]:
    """The objects, as the API has them; none where no group is declared."""
    if team.oidc is None or not team.groups:
        return
    # Kubernetes takes it into view, and by that into edit and admin.
    labels = {f"{_API}/aggregate-to-view": "true"}
    yield {
        "kind": "ClusterRole",
        "metadata": {"name": READERS, "labels": labels},
        "rules": [
            _reading("", "nodes"),
            _reading("scheduling.run.ai", "queues", "podgroups"),
        ],
    }
    yield _bound("ClusterRoleBinding", "view", team, team.groups)
    for role in ("edit", "admin"):
        if groups := [group for group, its in team.groups.items() if its == role]:
            yield _bound("RoleBinding", role, team, groups)


def _reading(group: str, *resources: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": list(resources), "verbs": ["get", "list", "watch"]}


def _bound(kind: str, role: str, team: DeclaredTeam, groups: Iterable[str]) -> dict[str, Any]:
    place = {"namespace": _NAMESPACE} if kind == "RoleBinding" else {}
    prefix = team.oidc.groups_prefix if team.oidc is not None else ""
    return {
        "kind": kind,
        "metadata": {"name": f"kai-fleet-{role}", **place},
        "roleRef": {"apiGroup": _API, "kind": "ClusterRole", "name": role},
        "subjects": [
            {"apiGroup": _API, "kind": "Group", "name": f"{prefix}{group}"}
            for group in sorted(groups)
        ],
    }
