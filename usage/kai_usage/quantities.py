"""Kubernetes quantities: `16`, `"500m"`, `64Gi`."""

import re
from decimal import Decimal

# A quantity without a sign: digits, then a suffix other than n and u, or an exponent of one or two
# digits.
QUANTITY = re.compile(
    r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]{1,2})?"
)
_SUFFIX = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    **{letter: Decimal(10) ** (3 * i) for i, letter in enumerate("kMGTPE", start=1)},
    **{f"{letter}i": Decimal(2) ** (10 * i) for i, letter in enumerate("KMGTPE", start=1)},
}
_MOST = Decimal(10) ** 18  # every Kubernetes quantity can hold this much
_MOST_CHARACTERS = 64
_TYPES_IN_WORDS = {
    bool: "true or false",
    dict: "a mapping",
    list: "a list",
    type(None): "empty",
}


def parse_quantity(value: object) -> Decimal:
    """The amount of a Kubernetes quantity in its base unit: cores, bytes or devices.

    Only the first 64 characters of a text or a whole number are read, without spaces around them,
    and 15 digits of a float.

    Raises:
        ValueError: The value is no quantity, is above 10^18, or has what Kubernetes allows besides:
            a sign before it, the suffix `n` or `u`, or an exponent of three digits. The message
            begins with the value, such as `'5x' is no Kubernetes quantity`; control characters of
            one that begins with `-` are not escaped. For another type than a number or a text, also
            for a bool, it is a predicate, such as `is no quantity but a list`. A whole number of
            more than 4300 digits has the message of Python.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        words = _TYPES_IN_WORDS.get(type(value), type(value).__name__)
        raise ValueError(f"is no quantity but {words}")
    written = str(value)[:_MOST_CHARACTERS].strip()
    if isinstance(value, float):
        written = f"{value:.15g}"
    if written.startswith("-"):
        raise ValueError(f"{written} is negative")
    match = QUANTITY.fullmatch(written)
    if match is None:
        raise ValueError(f"{written!r} is no Kubernetes quantity")
    digits, suffix = match.groups(default="")
    factor = _SUFFIX.get(suffix)  # None for an exponent
    amount = Decimal(written) if factor is None else Decimal(digits) * factor
    if amount > _MOST:
        raise ValueError(f"{written!r} is larger than any cluster")
    return amount
