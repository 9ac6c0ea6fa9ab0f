"""What a stack runs now, as its own state knows it: where a transition starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi
from pulumi.runtime import invoke

RELEASE: Final = "kubernetes:helm.sh/v3:Release"
# The engine's own function; what it returns is the state as the last update left it, also one
# that failed half-way, which a stack's outputs are not.
_READ_STATE: Final = "pulumi:pulumi:readStackResourceOutputs"


@dataclass(frozen=True)
class Past:
    """Chart versions by the name of the Release resource."""

    versions: Mapping[str, str] = field(default_factory=dict)

    def version(self, release: str) -> str | None:
        """The version that a Release has now; None where there is none yet."""
        return self.versions.get(release)


def read_past() -> Past:
    """The running stack's past; empty at its first update and in an offline plan."""
    name = "/".join((pulumi.get_organization(), pulumi.get_project(), pulumi.get_stack()))
    try:
        read: Any = invoke(_READ_STATE, {"stackName": name}).value
    except Exception as why:
        # Without a past every change of a version replaces its release, which is always right.
        pulumi.log.debug(f"the stack's past cannot be read: {why}")
        return Past()
    found = {}
    for urn, resource in ((read or {}).get("outputs") or {}).items():
        version = resource["outputs"].get("version") if resource["type"] == RELEASE else None
        if isinstance(version, str):
            found[urn.rpartition("::")[2]] = version
    return Past(found)
