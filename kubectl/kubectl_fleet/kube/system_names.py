"""Names of users and groups by which Kubernetes and the guards know their own: system:masters."""

from typing import Final

_SYSTEM: Final = "system:"


def may_name_system(prefix: str) -> bool:
    """Whether a name that an identity provider chooses can be Kubernetes' own behind a prefix.

    `sy` before its `stem:masters` is one; `-` is no prefix to the API server.
    """
    return prefix in ("", "-") or _SYSTEM.startswith(prefix) or prefix.startswith("system")
