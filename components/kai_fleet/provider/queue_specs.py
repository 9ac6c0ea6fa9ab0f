"""The specs of a tree's queues as the engine carries them: each is one string, in JSON.

The engine copies, compares and writes down every single value several times in a run, and so do the
SDK and the policy pack: with fifteen values to a queue a thousand of them cost three seconds. It
shows what changed within such a string all the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def packed(specs: Mapping[str, Any]) -> dict[str, str]:
    """Each spec as text; what is text stays. Equal specs give equal texts: 2.0 is 2, as in
    Kubernetes' answers.
    """
    return {name: spec if isinstance(spec, str) else _text(spec) for name, spec in specs.items()}


def unpacked(queues: Any) -> Any:
    """The specs by name again. What is no text, of an older state or not known yet, stays."""
    if not isinstance(queues, Mapping):
        return queues
    return {
        name: json.loads(spec) if isinstance(spec, str) and spec.startswith("{") else spec
        for name, spec in queues.items()
    }


def _text(spec: Any) -> str:
    return json.dumps(_counted(spec), sort_keys=True, separators=(",", ":"))


def _counted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _counted(item) for key, item in value.items()}
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
