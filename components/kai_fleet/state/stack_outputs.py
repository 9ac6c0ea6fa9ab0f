"""How a program asks the engine for the outputs of a stack, another's or its own."""

from __future__ import annotations

from typing import Final

import pulumi

# The engine's own function, which a StackReference asks too.
READ_OUTPUTS: Final = "pulumi:pulumi:readStackOutputs"


def full_name(stack: str) -> str:
    """`organization/project/stack`; a bare name is a stack of this project."""
    if "/" in stack:
        return stack
    return "/".join((pulumi.get_organization(), pulumi.get_project(), stack))
