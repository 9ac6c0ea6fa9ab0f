"""Amounts as KAI's queues count them: GPUs in devices, CPU in millicores, memory in 10^6 bytes."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

Resource: TypeAlias = Literal["gpu", "cpu", "memory"]
Amounts: TypeAlias = Mapping[str, float]  # by resource
RESOURCES: Final[tuple[Resource, ...]] = ("gpu", "cpu", "memory")
UNLIMITED: Final = (
    -1.0
)  # a quota or a limit in a Queue object; no other negative amount is unlimited
SLACK: Final = 1e-6  # of a GPU, a millicore or a megabyte: the error of sums of fractions


def rounded(amount: float) -> float:
    """An amount with six decimals: sums of 0.1 stay as people write them, without binary errors."""
    return round(amount, 6)


def short(resource: str, amount: float) -> str:
    """An amount with its unit: `2.5` or `500m` for CPU, `64G` for memory, `0.25` for GPUs.

    `resource` is "gpu", "cpu" or "memory", `amount` in GPUs, millicores or 10^6 bytes; -1 gives
    `unlimited`. At most two digits are after the point. CPU is `500m` below one CPU, else in CPUs;
    M, G and T are 10^6, 10^9 and 10^12 bytes. A very small amount is `0`, `0m` or `0M`.
    """
    if amount == UNLIMITED:
        return "unlimited"
    if resource == "gpu":
        return _two_digits(amount)
    if resource == "cpu":
        return f"{amount:.0f}m" if 0 < amount < 1000 else _two_digits(amount / 1000)
    if amount >= 10**6:
        return f"{_two_digits(amount / 10**6)}T"
    if amount >= 10**3:
        return f"{_two_digits(amount / 10**3)}G"
    return f"{_two_digits(amount)}M" if amount else "0"


def exact(resource: str, amount: float) -> str:
    """The same, with all digits of GPUs: sums of fractions may be less than a hundredth apart."""
    return f"{amount:g}" if resource == "gpu" else short(resource, amount)


def in_words(resource: str, amount: float) -> str:
    """An amount for a sentence: `4 GPUs`, `1 GPU`, `2.5 CPUs`, `64G of memory`.

    `resource` and `amount` are as for `short`.
    """
    text = exact(resource, amount)
    if resource == "memory":
        return f"{text} of memory"
    unit = resource.upper()
    return f"{text} {unit}" if text == "1" else f"{text} {unit}s"


def _two_digits(number: float) -> str:
    """A number with two digits after the point at most; `0` for one that rounds to it."""
    return f"{number:.2f}".rstrip("0").rstrip(".")
