"""What a stack runs now, as its own state knows it: where a transition starts from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi
from pulumi.runtime import invoke

RELEASE: Final = "kubernetes:helm.sh/v3:Release"
COMMAND: Final = "command:local:Command"
STACK: Final = "pulumi:pulumi:Stack"
# The engine's own function; what it returns is the state as the last update left it, also one
# that failed half-way, which a stack's outputs are not.
_READ_STATE: Final = "pulumi:pulumi:readStackResourceOutputs"


@dataclass(frozen=True)
class Past:
    """Chart versions by the name of the Release resource, and what waits were triggered by; the
    URNs of all resources, and the stack's outputs, secrets in clear.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    triggers: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    urns: frozenset[str] = frozenset()
    outputs: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def version(self, release: str) -> str | None:
        """The version that a Release has now; None where there is none yet."""
        return self.versions.get(release)

    def again(self, wait: str, release: str) -> list[str]:
        """What has to be among the triggers of a wait besides its release's id.

        A release that somebody uninstalled is made anew under the same id, which would not
        trigger the wait for it: each such time it gets another number.
        """
        before = self.triggers.get(wait)
        number = int(before[1]) if before and len(before) > 1 else 0
        if before is not None and release not in self.versions:
            number += 1
        return [str(number)] if number else []


def read_past() -> Past:
    """The running stack's past; empty at its first update and in an offline plan."""
    name = "/".join((pulumi.get_organization(), pulumi.get_project(), pulumi.get_stack()))
    try:
        read: Any = invoke(_READ_STATE, {"stackName": name}).value
    except Exception as why:
        # Without a past every change of a version replaces its release, which is always right.
        pulumi.log.debug(f"the stack's past cannot be read: {why}")
        return Past()
    found: dict[str, str] = {}
    triggers: dict[str, Sequence[Any]] = {}
    outputs: Mapping[str, Any] = {}
    resources = (read or {}).get("outputs") or {}
    for urn, resource in resources.items():
        version = resource["outputs"].get("version") if resource["type"] == RELEASE else None
        name = urn.rpartition("::")[2]
        if isinstance(version, str):
            found[name] = version
        if resource["type"] == COMMAND:
            triggers[name] = resource["outputs"].get("triggers") or []
        if resource["type"] == STACK:
            outputs = resource["outputs"]
    return Past(found, triggers, frozenset(resources), outputs)
