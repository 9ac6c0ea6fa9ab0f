"""The platform stack's outputs, read by a team stack before it declares anything."""

import re
from typing import Any, Final

import pulumi
from pulumi.runtime import invoke

from kai_fleet.settings.files.project import update_command
from kai_fleet.settings.files.secret_values import hide_values
from kai_fleet.settings.platform_facts import NoPlatformError, PlatformFacts
from kai_fleet.state.deployed_state import READ_OUTPUTS, full_name

OUTPUT: Final = "platform"
_UNKNOWN_STACK: Final = re.compile("unknown stack|no stack|not found|could not find", re.I)


def read_platform(stack: str) -> PlatformFacts:
    """What the platform stack of that name said at its last update. Raises NoPlatformError."""
    bare = stack.rpartition("/")[2]
    update = f"update it first: {update_command(bare)}"
    if full_name(stack) == full_name(pulumi.get_stack()):
        raise NoPlatformError(f"is {stack}, which is this stack itself; write the platform's stack")
    try:
        # Not by a StackReference: the rules must have the answer before anything is declared.
        read: Any = invoke(READ_OUTPUTS, {"name": full_name(stack)}).value
    except Exception as why:
        if _UNKNOWN_STACK.search(str(why)):
            raise NoPlatformError(f"is {stack}, and there is no such stack; {update}") from None
        raise NoPlatformError(f"is {stack}, whose outputs cannot be read ({_short(why)})") from None
    outputs = (read or {}).get("outputs") or {}
    if OUTPUT not in outputs:
        what = "exports no platform" if outputs else "has never been updated"
        raise NoPlatformError(
            f"is {stack}, which {what}: it is no platform stack of kai-fleet, or an older one;"
            f" {update}"
        )
    if OUTPUT in (read.get("secretOutputNames") or ()):
        hide_values()  # an invoke answers in clear
    try:
        return PlatformFacts.read(outputs[OUTPUT])
    except NoPlatformError as why:
        raise NoPlatformError(f"is {stack}, which {why}") from None


def _short(why: Exception) -> str:
    return str(why).strip().splitlines()[-1][:200]
