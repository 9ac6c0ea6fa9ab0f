"""Turns of phrase that several pages share."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """`1 queue`, `3 queues`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"
