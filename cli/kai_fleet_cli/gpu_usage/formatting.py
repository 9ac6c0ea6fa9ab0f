"""Amounts as people write them."""

from __future__ import annotations

from typing import Final

from kai_fleet_cli.gpu_usage.amounts import UNLIMITED, Resource

NO_BOUND: Final = "unlimited"
_STEPS: Final = ((10**6, "T"), (10**3, "G"), (1, "M"))


def short(resource: Resource, amount: float) -> str:
    """A number with its unit, as a stack file takes it: `2.5` or `500m`, `64G`, `0.25`.

    At most two digits behind the point; `unlimited` for -1.
    """
    if amount == UNLIMITED:
        return NO_BOUND
    if resource == "gpu":
        return _plain(amount)
    if resource == "cpu":
        return f"{amount:.0f}m" if 0 < amount < 1000 else _plain(amount / 1000)
    for size, unit in _STEPS:
        if amount >= size:
            return f"{_plain(amount / size)}{unit}"
    return _plain(amount) if amount == 0 else f"{_plain(amount)}M"


def in_words(resource: Resource, amount: float) -> str:
    """For a sentence: `4 GPUs`, `1 GPU`, `2.5 CPUs`, `64G of memory`."""
    text = short(resource, amount)
    if resource == "memory":
        return f"{text} of memory"
    return f"{text} {resource.upper()}{'' if text == '1' else 's'}"


def _plain(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
