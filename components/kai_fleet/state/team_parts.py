"""Which resources of a state belong to one team, and which to the grant of a team stack."""

from typing import Final

TEAM: Final = "kai-fleet:index:Team"  # what moves with a team between stacks
TEAM_NAMESPACE: Final = "kai-fleet:index:TeamNamespace"  # what stays with the platform
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
    """The team that a resource was granted to; "" for every resource outside of a grant."""
    kinds, name = urn.split("::", 3)[2:]
    above, _, kind = kinds.rpartition("$")
    if kind not in PARTS or above.rpartition("$")[2] != ACCESS:
        return ""
    first, last = f"{HOST}-", f"-{PARTS[kind]}"
    team = name.removeprefix(first).removesuffix(last)
    return team if name == f"{first}{team}{last}" else ""
