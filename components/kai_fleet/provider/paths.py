"""Places within a resource's properties, as Pulumi writes them."""

from __future__ import annotations

import re

Path = tuple[str | int, ...]


def spelled(path: Path) -> str:
    """A path as Pulumi writes it: `metadata.annotations["a.b/c"]`, `spec.containers[0].image`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif re.search(r'[."\[\]]', step):
            text += '["{}"]'.format(step.replace('"', '\\"'))
        else:
            text += f".{step}" if text else step
    return text


def parsed(text: str) -> Path:
    """The path that is spelled so, as in a diff or in a resource's `ignore_changes`."""
    steps = re.findall(r'\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.\[\]]+)', text)
    return tuple(
        name or (quoted.replace('\\"', '"') if quoted else int(number))
        for quoted, number, name in steps
    )
