"""What a platform's stack holds for a team with a stack of its own: the parts of one grant."""

from __future__ import annotations

from typing import Final

ACCESS: Final = "kai-fleet:index:TeamStackAccess"
# The end of each part's name, by type. Parts of two teams may have one name, but not one type as
# well: `a-bounds-binding` binds the bounds of team `a`, or the rights of team `a-bounds`.
PARTS: Final = {
    "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy": "bounds",
    "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicyBinding": "bounds-binding",
    "kubernetes:core/v1:ServiceAccount": "account",
    "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole": "role",
    "kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding": "binding",
}


def is_access(urn: str) -> bool:
    """Whether a resource is the component that holds all grants."""
    return bool(urn) and urn.split("::", 3)[2].rpartition("$")[2] == ACCESS


def granted_to(urn: str, parent: str) -> str:
    """The team that a resource was granted to; "" for every resource that is no part of a grant."""
    kind, name = urn.split("::", 3)[2].rpartition("$")[2], urn.rpartition("::")[2]
    if kind not in PARTS or not is_access(parent):
        return ""
    first, last = f"{parent.rpartition('::')[2]}-", f"-{PARTS[kind]}"
    team = name.removeprefix(first).removesuffix(last)
    return team if name == f"{first}{team}{last}" else ""
