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
