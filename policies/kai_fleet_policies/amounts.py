"""Amounts of a resource in the words of whoever wrote them."""

from kubectl_fleet.declared.queues import Resource

_UNITS = {"cpu": "millicores", "memory": "MB", "gpu": "GPUs"}
_STEPS = ((10**6, "T"), (10**3, "G"))


def written(resource: Resource, amount: float, path: str) -> str:
    """An amount in KAI's units as its author would write it.

    A Queue takes bare numbers, so the unit follows in words; a stack file takes quantities.
    """
    if amount == -1:
        return "-1 (unlimited)" if path.startswith("urn:") else "unlimited"
    number = plain(amount)
    if resource == "gpu":
        return number
    if path.startswith("urn:"):
        return f"{number} ({_UNITS[resource]})"
    if resource == "cpu":
        return plain(amount / 1000) if amount % 1000 == 0 else f"{number}m"
    for size, unit in _STEPS:
        if amount and amount % size == 0:
            return plain(amount / size) + unit
    return f"{number}M"


def plain(number: float) -> str:
    """A number without an exponent or zeros behind the point."""
    return f"{number:.10f}".rstrip("0").rstrip(".") if number % 1 else str(int(number))
