"""CPU, memory and GPUs in the units that KAI's queues count in, and as people write them."""

from typing import Final

from kai_fleet_policies.model.queues import UNLIMITED, Resource

SLACK: Final = 1e-6  # of a GPU, a millicore or a megabyte: what counting in fractions is off by
_DIGITS: Final = 6  # sums of fractions such as 0.1 stay what they were written as
_STEPS: Final = ((10**6, "T"), (10**3, "G"), (1, "M"))
_IN_KAIS_UNITS: Final = {"cpu": "millicores", "memory": "MB"}


def rounded(amount: float) -> float:
    """An amount without what binary fractions add to it."""
    return round(amount, _DIGITS)


def written(resource: Resource, amount: float, path: str) -> str:
    """An amount in KAI's units as its author would write it.

    A Queue takes bare numbers, so the unit follows in words; a stack file takes quantities.
    """
    if amount == UNLIMITED:
        return "-1 (unlimited)" if path.startswith("urn:") else "unlimited"
    number = exact(amount)
    if resource == "gpu":
        return number
    if path.startswith("urn:"):
        return f"{number} ({_IN_KAIS_UNITS[resource]})"
    if resource == "cpu":
        return exact(amount / 1000) if amount % 1000 == 0 else f"{number}m"
    for size, unit in _STEPS:
        if amount and amount % size == 0:
            return exact(amount / size) + unit
    return f"{number}M"


def exact(number: float) -> str:
    """A number without an exponent or zeros behind the point."""
    return f"{number:.10f}".rstrip("0").rstrip(".") if number % 1 else str(int(number))
