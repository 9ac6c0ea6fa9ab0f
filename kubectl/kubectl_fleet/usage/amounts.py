"""CPU, memory and GPUs in the units that KAI's queues count in, and as people write them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from kubectl_fleet.declared.queues import RESOURCES as RESOURCES
from kubectl_fleet.declared.queues import UNLIMITED as UNLIMITED
from kubectl_fleet.declared.queues import Resource as Resource

SLACK: Final = 1e-6  # of a GPU, a millicore or a megabyte: what counting in fractions is off by
_DIGITS: Final = 6  # sums of fractions such as 0.1 stay what they were written as
_STEPS: Final = ((10**6, "T"), (10**3, "G"), (1, "M"))


@dataclass(frozen=True, slots=True)
class Amounts:
    """`cpu` in millicores, `memory` in 10^6 bytes, `gpu` in devices, fractions allowed."""

    cpu: float = 0.0
    memory: float = 0.0
    gpu: float = 0.0

    def of(self, resource: Resource) -> float:
        """The amount of one resource."""
        return float(getattr(self, resource))

    @classmethod
    def total(cls, amounts: Iterable[Self]) -> Self:
        """The sum of any number of amounts."""
        cpu = memory = gpu = 0.0
        for each in amounts:
            cpu, memory, gpu = cpu + each.cpu, memory + each.memory, gpu + each.gpu
        return cls(rounded(cpu), rounded(memory), rounded(gpu))


def rounded(amount: float) -> float:
    """An amount without what binary fractions add to it."""
    return round(amount, _DIGITS)


def short(resource: Resource, amount: float) -> str:
    """A number with its unit, as a stack file takes it: `2.5` or `500m`, `64G`, `0.25`.

    At most two digits behind the point; `unlimited` for -1.
    """
    if amount == UNLIMITED:
        return "unlimited"
    if resource == "gpu":
        return _plain(amount)
    if resource == "cpu":
        return f"{amount:.0f}m" if 0 < amount < 1000 else _plain(amount / 1000)
    for size, unit in _STEPS:
        if amount >= size:
            return f"{_plain(amount / size)}{unit}"
    return f"{_plain(amount)}M" if amount else "0"


def in_words(resource: Resource, amount: float) -> str:
    """For a sentence: `4 GPUs`, `1 GPU`, `2.5 CPUs`, `64G of memory`."""
    text = short(resource, amount)
    if resource == "memory":
        return f"{text} of memory"
    return f"{text} {resource.upper()}{'' if text == '1' else 's'}"


def _plain(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
