"""Read stack files, `Pulumi.<stack>.yaml`, without the engine; for a team stack its platform's."""

import json
import re
from pathlib import Path
from typing import Any, Final

from kai_fleet.finding import Finding, Level
from kai_fleet.settings import Settings, key_path, load
from kai_fleet.settings.files import yaml_file
from kai_fleet.settings.files.project import ROOT as ROOT
from kai_fleet.settings.files.project import preview_command
from kai_fleet.settings.mistakes import misspelt, own_keys
from kai_fleet.settings.team_stack import Facts, FactsOf, NoPlatformError, is_team_stack
from kai_fleet.values import pairs
from kai_fleet.wording import MASK
from kai_fleet_cli.errors import UserError

PROJECT: Final = "kai-fleet"
SECRET: Final = MASK
_SALT: Final = "encryptionsalt"  # useless without the passphrase
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_WRITE: Final = "write config: and keys such as kai-fleet:cluster below it"
_OF_PULUMI: Final = ("config", "environment", "secretsprovider", "encryptedkey", _SALT)
_OF_OTHERS: Final = tuple(f"{key_path((key,))}." for key in ("teams", "workloads"))


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
    return sorted(path.stem.removeprefix("Pulumi.") for path in ROOT.glob("Pulumi.*.yaml"))


def _known() -> str:
    return ", ".join(stacks()) or f"none in {ROOT}"


def read(path: Path) -> dict[str, Any]:
    """The `kai-fleet:` part of a stack file: `{"cluster": {…}, "teams": {…}}`.

    In place of what is encrypted (`secure:`) stands `[secret]`. Raises UserError; two keys of
    one name are an error here as they are for the engine.
    """
    try:
        return parse(path.read_text(encoding="utf-8"), path.name)
    except FileNotFoundError:
        others = f"; stacks with a file: {_known()}" if path.parent == ROOT else ""
        raise UserError(f"{path.name if others else path} is not there{others}") from None
    except (OSError, UnicodeError) as why:
        raise UserError(f"{path.name} cannot be read: {why}") from None


def parse(text: str, name: str) -> dict[str, Any]:
    """Read a stack file's text; `name` is the file's, for messages. Raises UserError."""
    try:
        document = yaml_file.load(text)
    except yaml_file.RefusedYamlError as why:
        raise UserError(f"{name} {why}") from None
    config = document.get("config") if isinstance(document, dict) else document
    if not isinstance(document, dict) or not isinstance(config, dict | None):
        raise UserError(f"{name} is not a stack file; {_WRITE}")
    if outside := [key for key in document if key not in _OF_PULUMI]:
        raise UserError(f"{name}: {outside[0]} is not read by Pulumi; {_WRITE}")
    if wrong := misspelt(config or ()):
        raise UserError(f"{name}: " + "; ".join(f"{key.path} {key.message}" for key in wrong))
    own: dict[str, Any] = _without_secrets(own_keys(config))
    return own


def beside(file: Path) -> dict[str, str]:
    """Keys of a stack file that the engine reads and no plan shows, with their text: environment,
    decryption, other programs' configuration. None of a file that cannot be read.

    The texts differ where the values do; what is encrypted is left out.
    """
    document = yaml_file.mapping(file)
    config = pairs(document.pop("config", None))
    document.pop(_SALT, None)
    document |= {f"config.{key}": config[key] for key in config if not own_keys({key: None})}
    plain = _without_secrets(document)
    texts = {key: json.dumps(plain[key], sort_keys=True, default=str) for key in plain}
    return {key: text for key, text in texts.items() if plain[key] != SECRET}


def from_environment(file: Path) -> Finding | None:
    """That a stack file takes values of Pulumi ESC, which only the engine reads; None without."""
    if not yaml_file.mapping(file).get("environment"):
        return None
    cause = "takes values of Pulumi ESC, which only the engine has: they are not read here"
    preview = preview_command(file.stem.removeprefix("Pulumi."))
    fix = (
        f"where you are logged in to Pulumi Cloud, which no other backend replaces, run: {preview}."
        " Or write below config: what a plan here needs"
    )
    check = "config-environment"
    return Finding(Level.ADVISORY, "environment", "file", file.name, cause, fix, check)


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"secure"}:
            return SECRET
        return {key: _without_secrets(item) for key, item in value.items()}
    return [_without_secrets(item) for item in value] if isinstance(value, list) else value


def settings_of(stack: str) -> Settings:
    """A stack's settings, which the rules did not judge. Raises UserError for wrong keys."""
    from kai_fleet_policies import validation  # and Pulumi's SDK: half a second

    path = path_of(stack)
    verdict = validation.validate(read(path), facts_of=facts_beside(path), stack=stack, only=())
    if verdict.settings is None:
        unread = from_environment(path)
        raise UserError(str(unread) if unread else validation.report(verdict.refused))
    return verdict.settings


def facts_beside(team_file: Path) -> FactsOf:
    """Facts of the platforms whose files are in the same folder as a team stack's."""

    def facts_of(stack: str) -> Facts:
        _, _, bare = stack.rpartition("/")
        if "/" in stack and stack.split("/")[1] != PROJECT:
            raise NoPlatformError(
                f"is {stack}, of another project, which only the engine can read; run the preview"
            )
        try:
            raw = read(team_file.parent / f"Pulumi.{bare}.yaml")
        except UserError as why:
            raise NoPlatformError(f"is {stack}: {why}") from None
        loaded = load(raw)
        # Mistakes in other teams and their workloads do not matter: a team stack reads neither.
        wrong = [each.path for each in loaded.mistakes if not each.path.startswith(_OF_OTHERS)]
        if loaded.settings is None or wrong or is_team_stack(raw):
            raise NoPlatformError(
                f"is {stack}, whose file is wrong or a team stack's; see: .venv/bin/fleet plan"
                f" --stack {bare}"
            )
        return Facts.of(loaded.settings)

    return facts_of
