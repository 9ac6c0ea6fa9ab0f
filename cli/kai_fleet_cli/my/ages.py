"""How long ago something was, as kubectl says it."""

from __future__ import annotations

from datetime import datetime


def age(stamp: str, now: datetime) -> str:
    """`45s`, `12m`, `3h`, `9d`; "" where there is no time stamp."""
    if not stamp:
        return ""
    seconds = (now - datetime.fromisoformat(stamp.replace("Z", "+00:00"))).total_seconds()
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f}{unit}"
    return f"{max(0.0, seconds):.0f}s"
