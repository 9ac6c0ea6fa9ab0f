"""The encrypted values of a stack file: a plan masks them, so a diff looks at the ciphertexts."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml.error import YAMLError

from kai_fleet.settings.files import yaml_file


def encrypted(file: Path) -> dict[str, str]:
    """The ciphertext of each `secure:` value by its key; none of a file that cannot be read."""
    try:
        document = yaml_file.load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, YAMLError, RecursionError):
        return {}
    config = document.get("config") if isinstance(document, dict) else None
    return dict(_walk(config, ""))


def encrypted_anew(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """The keys that are encrypted in both, with another ciphertext; the value may be the same."""
    return sorted(key for key in old.keys() & new.keys() if old[key] != new[key])


def _walk(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        if set(value) == {"secure"}:
            yield path, str(value["secure"])
            return
        for key, item in value.items():
            yield from _walk(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _walk(item, f"{path}[{index}]")
