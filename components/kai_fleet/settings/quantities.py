"""Kubernetes quantities, turned into the units that KAI's Queue objects count in.

KAI counts cpu in millicores, memory in 10⁶ bytes and GPUs in devices, fractions allowed (Q3);
-1 means unlimited. A config writes `16`, `"500m"`, `64Gi`, and `unlimited` or, as KAI does, -1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, TypeAdapter, WithJsonSchema

UNLIMITED: Final = -1.0
_WORD: Final = "unlimited"
_QUANTITY = re.compile(
    r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]{1,2})?"
)
_SUFFIX: Final = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    **{letter: Decimal(10) ** (3 * i) for i, letter in enumerate("kMGTPE", start=1)},
    **{f"{letter}i": Decimal(2) ** (10 * i) for i, letter in enumerate("KMGTPE", start=1)},
}
_MOST_GPUS: Final = 1_000_000  # more is a unit that is none of GPUs, such as 8G
_MOST_CORES: Final = 100_000_000  # more is memory's unit, such as 16Gi
_MOST = Decimal(10) ** 18  # what a Kubernetes quantity can hold at least


def parse_quantity(value: Any) -> Decimal:
    """The number a Kubernetes quantity stands for, in its base unit (cores, bytes, devices).

    Raises ValueError with a sentence for what is not one.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"is no quantity but {_kind(value)}")
    text = f"{value:.15g}" if isinstance(value, float) else str(value)[:64].strip()
    if text.startswith("-"):
        raise ValueError(f"is negative; write {_WORD} for no bound, or a quantity from 0 up")
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no Kubernetes quantity")
    number, suffix = match.group(1), match.group(2) or ""
    if suffix[:1] in "eE" and len(suffix) > 1 and suffix != "Ei":
        amount = Decimal(number).scaleb(int(suffix[1:]))
    else:
        amount = Decimal(number) * _SUFFIX[suffix]
    if amount > _MOST:
        raise ValueError(f"{text!r} is larger than any cluster")
    return amount


def cpu_millicores(value: Any) -> float:
    """Millicores of a cpu quantity; -1 for `unlimited`."""
    amount = _convert(value, Decimal(1000), 'cores such as 16, "500m"')
    if amount > _MOST_CORES * 1000:
        raise ValueError(f"{value} is {amount / 1000:,.0f} cores; write a number such as 16")
    return amount


def memory_megabytes(value: Any) -> float:
    """10⁶ bytes of a memory quantity, rounded to whole ones; -1 for `unlimited`."""
    amount = _convert(value, Decimal("1e-6"), "memory such as 64Gi", digits=None)
    if 0 < amount < 1:
        number = str(value).strip().removesuffix("m")
        raise ValueError(f"{value} is less than a megabyte; write {number}Gi or {number}M")
    return float(round(amount))


def gpu_devices(value: Any) -> float:
    """GPUs of a quantity, fractions allowed; -1 for `unlimited`."""
    amount = _convert(value, Decimal(1), "GPUs such as 4, 0.5", digits=6)
    if amount > _MOST_GPUS:
        raise ValueError(f"{value} is {amount:,.0f} GPUs; write a number such as 4")
    return amount


def _convert(value: Any, per_unit: Decimal, example: str, digits: int | None = 3) -> float:
    if value in (_WORD, -1, "-1"):
        return UNLIMITED
    try:
        amount = parse_quantity(value) * per_unit
    except ValueError as why:
        raise ValueError(f"{why}; write {example}, or {_WORD}") from None
    return float(amount if digits is None else round(amount, digits))


def _kind(value: Any) -> str:
    names = {bool: "true or false", dict: "a mapping", list: "a list", type(None): "empty"}
    return names.get(type(value), type(value).__name__)


def _quantity(parse: Any, unit: str) -> Any:
    schema = {
        "description": f"{unit}, or unlimited",
        "anyOf": [
            {"type": "number", "minimum": 0},
            {"enum": [_WORD, -1]},
            {"type": "string", "pattern": f"^({_QUANTITY.pattern})$"},
        ],
    }
    return Annotated[float, BeforeValidator(parse), WithJsonSchema(schema)]


Cpu = _quantity(cpu_millicores, 'cores: 16 or "500m"')
Memory = _quantity(memory_megabytes, "bytes with a suffix: 64Gi")
Gpu = _quantity(gpu_devices, "GPUs, fractions allowed")


def short_or_whole(quantity: Any) -> Callable[[dict[str, Any]], None]:
    """For a field's JSON Schema: a mapping as the field describes it, or a quantity alone."""

    def change(schema: dict[str, Any]) -> None:
        whole = {key: schema.pop(key) for key in tuple(schema) if key != "description"}
        schema["anyOf"] = [whole, TypeAdapter(quantity).json_schema()]

    return change
