"""Read a stack file, `Pulumi.<stack>.yaml`, without the engine."""

import json
import re
from pathlib import Path
from typing import Any, Final

from kai_fleet.settings.files import yaml_file
from kai_fleet.settings.files.project import ROOT as ROOT
from kai_fleet.settings.mistakes import misspelt, own_keys
from kai_fleet.wording import MASK, on_one_line
from kai_fleet_cli.errors import UserError

PROJECT: Final = "kai-fleet"
SECRET: Final = MASK
_SALT: Final = "encryptionsalt"  # useless without the passphrase
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_WRITE: Final = "write config: and keys such as kai-fleet:cluster below it"
_OF_PULUMI: Final = ("config", "environment", "secretsprovider", "encryptedkey", _SALT)


class StackFileError(UserError):
    """The file is not there, or not a YAML mapping."""

    def __init__(self, message: str) -> None:
        super().__init__(on_one_line(message))


def path_of(stack: str) -> Path:
    """The file of a stack of this project. Raises UserError for what is no stack's name."""
    if not _NAME.fullmatch(stack):
        raise UserError(
            f"{stack!r} is no stack name; write what stands in the file's name, as in"
            f" Pulumi.NAME.yaml; stacks with a file: {_known()}"
        )
    return ROOT / f"Pulumi.{stack}.yaml"


def stacks() -> list[str]:
    """The stacks that have a file."""
    names = (path.name for path in ROOT.glob("Pulumi.*.yaml"))
    return sorted(name.removeprefix("Pulumi.").removesuffix(".yaml") for name in names)


def _known() -> str:
    return ", ".join(stacks()) or f"none in {ROOT}"


def read(path: Path) -> dict[str, Any]:
    """The `kai-fleet:` part of a stack file: `{"cluster": {…}, "teams": {…}}`.

    In place of what is encrypted (`secure:`) stands `[secret]`. Raises StackFileError; two keys of
    one name are an error here as they are for the engine.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        others = f"; stacks with a file: {_known()}" if path.parent == ROOT else ""
        name = path.name if others else path
        raise StackFileError(f"{name} is not there{others}") from None
    except UnicodeDecodeError:
        raise StackFileError(f"{path.name} is no UTF-8; save it as UTF-8") from None
    except OSError as why:
        raise StackFileError(f"{path} cannot be read: {why.strerror}") from None
    return parse(text, path.name)


def parse(text: str, name: str) -> dict[str, Any]:
    """Read a stack file's text; `name` is the file's, for messages. Raises StackFileError."""
    try:
        document = yaml_file.load(text)
    except yaml_file.RefusedYamlError as why:
        raise StackFileError(f"{name} {why}") from None
    config = document.get("config") if isinstance(document, dict) else document
    if not isinstance(document, dict) or not isinstance(config, dict | None):
        raise StackFileError(f"{name} is not a stack file; {_WRITE}")
    if outside := [key for key in document if key not in _OF_PULUMI]:
        raise StackFileError(f"{name}: {outside[0]} is not read by Pulumi; {_WRITE}")
    if wrong := misspelt(config or ()):
        raise StackFileError(f"{name}: " + "; ".join(f"{key.path} {key.message}" for key in wrong))
    return {key: _without_secrets(value) for key, value in own_keys(config).items()}


def beside(file: Path) -> dict[str, str]:
    """Keys of a stack file that the engine reads and no plan shows, with their text: environment,
    decryption, other programs' configuration. None of a file that cannot be read.

    The texts differ where the values do; what is encrypted is left out.
    """
    document = yaml_file.mapping(file)
    config = document.get("config")
    found = {
        f"config.{key}": value
        for key, value in (config.items() if isinstance(config, dict) else ())
        if not own_keys({key: None})
    }
    found |= {str(key): document[key] for key in document if key not in ("config", _SALT)}
    plain = {key: _without_secrets(value) for key, value in found.items()}
    return {
        key: json.dumps(value, sort_keys=True, default=str)
        for key, value in plain.items()
        if value != SECRET
    }


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"secure"}:
            return SECRET
        return {str(key): _without_secrets(item) for key, item in value.items()}
    return [_without_secrets(item) for item in value] if isinstance(value, list) else value
