"""Amounts of a queue's resources: numbers that may be unlimited.

In Python an amount is a float: UNLIMITED is above all others, and None is an amount that nobody
wrote. A Queue's `spec` has -1 for unlimited, which `for_kai` writes and `from_kai` reads.
"""

import math
from typing import TypeVar

T = TypeVar("T")
UNLIMITED = math.inf
# Unlimited as stack files and arguments have it, beside -1.
WORD = "unlimited"
_IN_SPEC = -1.0


def means_unlimited(written: object) -> bool:
    """Whether an amount of a stack file or of arguments is unlimited: `unlimited`, -1 or "-1"."""
    return written in (WORD, _IN_SPEC, "-1")


def is_unlimited_in_spec(amount: object) -> bool:
    """Whether an amount of a Queue's `spec` is unlimited: -1."""
    return amount == _IN_SPEC


def for_kai(amount: float) -> float:
    """An amount as a Queue's `spec` has it."""
    return _IN_SPEC if amount == UNLIMITED else amount


def from_kai(amount: T) -> T | float:
    """An amount of a Queue's `spec`; what is not unlimited is unchanged."""
    return UNLIMITED if is_unlimited_in_spec(amount) else amount
