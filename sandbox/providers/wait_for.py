"""The annotation `pulumi.com/waitFor`: conditions of the user's own.

`condition=Type`, `condition=Type=Status`, `jsonpath={.status.phase}` (is there) or
`jsonpath={.status.phase}=Running`; or a JSON list of these, all of which must hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from provider.paths import Path
from provider.plugin import PluginError

from . import diff

_JSONPATH = re.compile(r"^jsonpath=\{?(\.[^}=]*)\}?(?:=(.*))?$", re.DOTALL)


def check(given: str) -> Callable[[dict[str, Any]], str]:
    """What an object still lacks of the conditions `given`; "" once all hold."""
    try:
        listed = json.loads(given)
    except ValueError:
        listed = given
    wanted = [str(item) for item in listed] if isinstance(listed, list) else [given]
    tests = [_test(text) for text in wanted]

    def lacks(live: dict[str, Any]) -> str:
        missing = [text for text, holds in zip(wanted, tests, strict=True) if not holds(live)]
        return f"{', '.join(missing)} does not hold yet" if missing else ""

    return lacks


def _test(text: str) -> Callable[[dict[str, Any]], bool]:
    if text.startswith("condition="):
        name, _, status = text.removeprefix("condition=").partition("=")
        return lambda live: _has_condition(live, name, status or "True")
    found = _JSONPATH.match(text)
    if found is None:
        raise PluginError(
            f"the annotation pulumi.com/waitFor has {text!r}: "
            "write condition=<type>, or jsonpath={.path}=<value> with a plain path"
        )
    path, value = diff.parsed(found[1]), found[2]
    return lambda live: _has_value(live, path, value)


def _has_condition(live: dict[str, Any], name: str, status: str) -> bool:
    listed = (live.get("status") or {}).get("conditions") or []
    return any(
        str(entry.get("type")).lower() == name.lower()
        and str(entry.get("status")).lower() == status.lower()
        for entry in listed
    )


def _has_value(live: Any, path: Path, value: str | None) -> bool:
    for step in path:
        if isinstance(step, int):
            live = live[step] if isinstance(live, list) and step < len(live) else None
        else:
            live = live.get(step) if isinstance(live, dict) else None
        if live is None:
            return False
    if value is None:
        return True
    text = json.dumps(live) if isinstance(live, bool | int | float) else str(live)
    return text == value
