"""What a stack runs now, as its own state knows it: where a transition starts from."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi
from pulumi.runtime.invoke import invoke, invoke_async

from components import focus
from components.stack_outputs import READ_OUTPUTS, full_name

RELEASE: Final = "kubernetes:helm.sh/v3:Release"
COMMAND: Final = "command:local:Command"
STACK: Final = "pulumi:pulumi:Stack"
# The engine's own function. It returns the state as the last update left it, also one that failed
# half-way, which a stack's outputs are not.
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
    if (known := focus.known_past()) is not None:
        return known
    try:
        read: Any = invoke(_READ_STATE, {"stackName": full_name(pulumi.get_stack())}).value
    except Exception as why:
        # Without a past every change of a version replaces its release, which is always right.
        pulumi.log.debug(f"the stack's past cannot be read: {why}")
        return Past()
    resources = (read or {}).get("outputs") or {}
    return past_of((urn, it["type"], it["outputs"]) for urn, it in resources.items())


def past_of(resources: Iterable[tuple[str, str, Mapping[str, Any]]]) -> Past:
    """The past of which these are the resources: URN, type and outputs of each."""
    versions: dict[str, str] = {}
    triggers: dict[str, Sequence[Any]] = {}
    urns: set[str] = set()
    said: Mapping[str, Any] = {}
    for urn, kind, outputs in resources:
        urns.add(urn)
        name = urn.rpartition("::")[2]
        version = outputs.get("version") if kind == RELEASE else None
        if isinstance(version, str):
            versions[name] = version
        if kind == COMMAND:
            triggers[name] = outputs.get("triggers") or []
        if kind == STACK:
            said = outputs
    return Past(versions, triggers, frozenset(urns), said)


async def own_outputs() -> Mapping[str, Any]:
    """The running stack's outputs as the last update left them, secrets in clear.

    Asked again where the engine is just writing what it reads.
    """
    for seconds in (0.2, 1.0):
        try:
            return await _own_outputs()
        except Exception as why:
            pulumi.log.debug(f"the stack's outputs cannot be read yet: {why}")
        await asyncio.sleep(seconds)
    return await _own_outputs()


async def _own_outputs() -> Mapping[str, Any]:
    read: Any = await invoke_async(READ_OUTPUTS, {"name": full_name(pulumi.get_stack())})
    outputs: Mapping[str, Any] = read["outputs"]
    return outputs
