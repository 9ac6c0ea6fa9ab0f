"""Reading a stack file, `Pulumi.<stack>.yaml`, without the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from ruamel.yaml.error import MarkedYAMLError, YAMLError

from components import yaml_file
from components.settings.mistakes import NAMESPACE

ROOT: Final = Path(__file__).resolve().parent.parent
SECRET: Final = "[secret]"


class Unreadable(Exception):  # noqa: N818 - its message is all a user sees
    """The file is not there, or not a YAML mapping."""


def path_of(stack: str) -> Path:
    """The file of a stack of this project."""
    return ROOT / f"Pulumi.{stack}.yaml"


def stacks() -> list[str]:
    """The stacks that have a file."""
    return sorted(path.name.split(".")[1] for path in ROOT.glob("Pulumi.*.yaml"))


def read(path: Path) -> dict[str, Any]:
    """The `kai-fleet:` part of a stack file: `{"cluster": {…}, "teams": {…}}`.

    What is encrypted (`secure:`) stays out of it: the text `[secret]` stands in its place.
    Raises Unreadable; two keys of one name are an error here as they are for the engine.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        known = ", ".join(stacks())
        raise Unreadable(f"{path.name} is not there; stacks with a file: {known}") from None
    except (OSError, UnicodeDecodeError) as why:
        raise Unreadable(f"{path.name} cannot be read: {why}") from None
    return parse(text, path.name)


def parse(text: str, name: str) -> dict[str, Any]:
    """The same of a file's text; `name` is the file's, for messages. Raises Unreadable."""
    try:
        document = yaml_file.load(text)
    except MarkedYAMLError as why:
        raise Unreadable(f"{name}{yaml_file.place(why)}: {why.problem or why.context}") from None
    except (YAMLError, ValueError, RecursionError) as why:
        raise Unreadable(f"{name} is not YAML: {why}") from None
    config = document.get("config") if isinstance(document, dict) else document
    if not isinstance(document, dict) or not isinstance(config, dict | None):
        raise Unreadable(f"{name} is not a stack file; write config: and keys below it")
    prefix = f"{NAMESPACE}:"
    return {
        key.removeprefix(prefix): _without_secrets(value)
        for key, value in (config or {}).items()
        if isinstance(key, str) and key.startswith(prefix)
    }


def _without_secrets(value: Any, above: tuple[int, ...] = ()) -> Any:
    if id(value) in above:
        return value  # an anchor inside itself; the settings refuse it by its key
    if isinstance(value, dict):
        if set(value) == {"secure"}:
            return SECRET
        return {key: _without_secrets(item, (*above, id(value))) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_secrets(item, (*above, id(value))) for item in value]
    return value
