"""Kubernetes quantities, turned into the units that KAI's Queue objects count in.

KAI counts cpu in millicores, memory in 10⁶ bytes and GPUs in devices, fractions allowed (Q3);
-1 means unlimited. A config writes `16`, `"500m"`, `64Gi`, and `unlimited` or, as KAI does, -1.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, TypeAdapter, WithJsonSchema

from kubectl_fleet.quantities import QUANTITY, WORD, parse_quantity

UNLIMITED: Final = -1.0
_MOST_GPUS: Final = 1_000_000  # more is a unit that is none of GPUs, such as 8G
_MOST_CORES: Final = 100_000_000  # more is memory's unit, such as 16Gi


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
    if value in (WORD, -1, "-1"):
        return UNLIMITED
    amount = quantity(value, f"{example}, or {WORD}") * per_unit
    return float(amount if digits is None else round(amount, digits))


def quantity(value: Any, example: str) -> Decimal:
    """A quantity as Kubernetes reads it. Raises ValueError, with what to write."""
    try:
        return parse_quantity(value)
    except ValueError as why:
        raise ValueError(f"{why}; write {example}") from None


def _quantity(parse: Any, unit: str) -> Any:
    schema = {
        "description": f"{unit}, or unlimited",
        "anyOf": [
            {"type": "number", "minimum": 0},
            {"enum": [WORD, -1]},
            {"type": "string", "pattern": f"^({QUANTITY.pattern})$"},
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
