"""CPU, memory and GPUs in the units that KAI's queues count in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Resource: TypeAlias = Literal["cpu", "memory", "gpu"]
RESOURCES: Final[tuple[Resource, ...]] = ("cpu", "memory", "gpu")
UNLIMITED: Final = -1.0
_DIGITS: Final = 6  # sums of fractions such as 0.1 stay what they were written as


@dataclass(frozen=True, slots=True)
class Amounts:
    """`cpu` in millicores, `memory` in 10^6 bytes, `gpu` in devices, fractions allowed."""

    cpu: float = 0.0
    memory: float = 0.0
    gpu: float = 0.0

    def __add__(self, other: Amounts) -> Amounts:
        """The sum, resource by resource."""
        return Amounts(self.cpu + other.cpu, self.memory + other.memory, self.gpu + other.gpu)

    def of(self, resource: Resource) -> float:
        """The amount of one resource."""
        return float(getattr(self, resource))

    def record(self) -> dict[str, float]:
        """For JSON."""
        return {resource: self.of(resource) for resource in RESOURCES}


NOTHING: Final = Amounts()


def total(amounts: Iterable[Amounts]) -> Amounts:
    """The sum of any number of amounts."""
    cpu = memory = gpu = 0.0
    for each in amounts:
        cpu, memory, gpu = cpu + each.cpu, memory + each.memory, gpu + each.gpu
    return Amounts(rounded(cpu), rounded(memory), rounded(gpu))


def rounded(amount: float) -> float:
    """An amount without what binary fractions add to it."""
    return round(amount, _DIGITS)
