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
