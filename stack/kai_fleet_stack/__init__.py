"""The stack file of a fleet, and the program that declares what it says."""

from kai_fleet_stack.stack_program import program as program

__all__ = ["program"]
