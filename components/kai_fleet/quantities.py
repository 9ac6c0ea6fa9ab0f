"""Kubernetes quantities: `16`, `"500m"`, `64Gi`."""

import re
from decimal import Decimal
from typing import Any, Final

WORD: Final = "unlimited"
QUANTITY: Final = re.compile(
    r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]{1,2})?"
)
_SUFFIX: Final = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    **{letter: Decimal(10) ** (3 * i) for i, letter in enumerate("kMGTPE", start=1)},
    **{f"{letter}i": Decimal(2) ** (10 * i) for i, letter in enumerate("KMGTPE", start=1)},
}
_MOST: Final = Decimal(10) ** 18  # what a Kubernetes quantity can hold at least


def parse_quantity(value: Any) -> Decimal:
    """The number of a Kubernetes quantity in its base unit: cores, bytes or devices.

    Raises ValueError, with a predicate such as `"5x" is no Kubernetes quantity`.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"is no quantity but {_kind(value)}")
    text = f"{value:.15g}" if isinstance(value, float) else str(value)[:64].strip()
    if text.startswith("-"):
        raise ValueError(f"{text} is negative")
    match = QUANTITY.fullmatch(text)
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


def _kind(value: Any) -> str:
    names = {bool: "true or false", dict: "a mapping", list: "a list", type(None): "empty"}
    return names.get(type(value), type(value).__name__)
