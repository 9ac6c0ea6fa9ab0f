"""The sentences of the official plugin, in which the stand-in fails too."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import yaml

_FILE: Final = Path(__file__).with_suffix(".yaml")
_WORDS: Final[dict[str, str]] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))


def officially(sentence: str, **parts: object) -> str:
    """A sentence of the official plugin, with what it is about."""
    return _WORDS[sentence].format(**parts)
