"""The stack file of a fleet, and the program that declares what it says.

The program is imported when it is first used: what only reads a stack file starts without the
components.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kai_fleet_stack.stack_program import program as program

__all__ = ["program"]


def __getattr__(name: str) -> object:
    """`program`, imported now. Raises AttributeError for another name."""
    if name != "program":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("kai_fleet_stack.stack_program").program
