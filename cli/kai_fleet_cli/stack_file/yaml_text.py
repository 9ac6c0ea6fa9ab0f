"""Values as YAML text as the stack files have it: small mappings in braces, others in lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

_WIDE: Final = 10**6


def inline(value: Any, quote: str | None = None) -> str:
    """A value on one line; text keeps the quotes that the value before it had."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(flow_entry(str(k), v) for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(inline(item) for item in value) + "]"
    style = quote if quote in ("'", '"') and isinstance(value, str) else None
    text = yaml.safe_dump(value, default_style=style, allow_unicode=True, width=_WIDE)
    return text.strip().removesuffix("...").strip()


def flow_entry(key: str, value: Any) -> str:
    """`key: value`, for between braces."""
    return f"{inline(key)}: {inline(value)}"


def block(value: Mapping[str, Any], indent: int, newline: str = "\n") -> str:
    """A mapping in lines; what holds no further mapping stands in braces."""
    lines: list[str] = []
    for key, item in value.items():
        start = f"{' ' * indent}{inline(key)}:"
        if isinstance(item, Mapping) and any(isinstance(v, Mapping) for v in item.values()):
            lines += [start + newline, block(item, indent + 2, newline)]
        else:
            lines.append(f"{start} {inline(item)}{newline}")
    return "".join(lines)


def newline(text: str) -> str:
    """How the lines of a text end."""
    return "\r\n" if "\r\n" in text else "\n"


def plain(value: Any) -> Any:
    """A loaded document without shared parts. Raises RecursionError where it contains itself."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value
