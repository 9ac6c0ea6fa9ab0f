"""What a platform's stack holds for a team with a stack of its own: the parts of one grant."""

from __future__ import annotations

from typing import Final

ACCESS: Final = "kai-fleet:index:TeamStackAccess"
HOST: Final = "host-team-stacks"  # a platform's one
# The end of each part's name, by type. Parts of two teams may have one name, but not one type as
# well: `a-bounds-binding` binds the bounds of team `a`, or the rights of team `a-bounds`.
PARTS: Final = {
    "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy": "bounds",
    "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicyBinding": "bounds-binding",
    "kubernetes:core/v1:ServiceAccount": "account",
    "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole": "role",
    "kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding": "binding",
}


def granted_to(urn: str) -> str:
    """The team that a resource was granted to; "" for every resource that is no part of a grant."""
    kinds, name = urn.split("::", 3)[2:]
    above, _, kind = kinds.rpartition("$")
    if kind not in PARTS or above.rpartition("$")[2] != ACCESS:
        return ""
    first, last = f"{HOST}-", f"-{PARTS[kind]}"
    team = name.removeprefix(first).removesuffix(last)
    return team if name == f"{first}{team}{last}" else ""
