"""Amounts as KAI's queues count them: GPUs in devices, CPU in millicores, memory in 10^6 bytes."""

from collections.abc import Mapping
from typing import Literal

Resource = Literal["gpu", "cpu", "memory"]
Amounts = Mapping[str, float]  # by each of `RESOURCES`
RESOURCES: tuple[Resource, ...] = ("gpu", "cpu", "memory")
# A quota or a limit in a Queue object; no other negative amount is unlimited.
UNLIMITED = -1.0
SLACK = 1e-6  # of a GPU, a millicore or a megabyte: the error of sums of fractions


def rounded(amount: float) -> float:
    """An amount rounded to six decimals, so that sums of 0.1 have no binary errors."""
    return round(amount, 6)


def short(resource: str, amount: float) -> str:
    """An amount with its unit: `2.5` or `500m` for CPU, `64G` for memory, `0.25` for GPUs.

    `resource` is "gpu", "cpu" or "memory", `amount` in GPUs, millicores or 10^6 bytes; -1 gives
    `unlimited`. At most two digits are after the point. CPU is `500m` below one CPU, else in CPUs;
    M, G and T are 10^6, 10^9 and 10^12 bytes. 0 is `0`, a very small amount `0`, `0m` or `0M`.
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
    """An amount as `short` has it, but GPUs with up to six significant digits: `0.333333`.

    Sums of fractions may be less than a hundredth apart. An unlimited amount of GPUs is `-1`, one
    of a million and more is as `1e+06`.
    """
    return f"{amount:g}" if resource == "gpu" else short(resource, amount)


def in_words(resource: str, amount: float) -> str:
    """An amount for a sentence: `4 GPUs`, `1 GPU`, `2.5 CPUs`, `500m CPUs`, `64G of memory`.

    `resource` and `amount` are as for `short`; the number is as `exact` writes it.
    """
    text = exact(resource, amount)
    if resource == "memory":
        return f"{text} of memory"
    unit = resource.upper()
    return f"{text} {unit}" if text == "1" else f"{text} {unit}s"


def _two_digits(number: float) -> str:
    """A number with two digits after the point at most; `0`, or `-0`, for one that rounds to it."""
    return f"{number:.2f}".rstrip("0").rstrip(".")
