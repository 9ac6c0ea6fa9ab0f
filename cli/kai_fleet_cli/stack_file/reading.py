"""Read stack files, `Pulumi.STACK.yaml`, without the engine; for a team stack its platform's."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kai_fleet.values import pairs
from kai_fleet.wording import MASK
from kai_fleet_cli.errors import UserError
from kai_fleet_policies.finding import Finding, Level
from kai_fleet_policies.finding import report as finding_report
from kai_fleet_policies.key_paths import key_path
from kai_fleet_stack import validation
from kai_fleet_stack.project import ROOT as ROOT
from kai_fleet_stack.project import preview_command
from kai_fleet_stack.settings import Settings
from kai_fleet_stack.settings.files import yaml_file
from kai_fleet_stack.settings.loading import load
from kai_fleet_stack.settings.mistakes import misspelt, own_keys
from kai_fleet_stack.settings.team_stack import Facts, FactsOf, NoPlatformError, is_team_stack

PROJECT = "kai-fleet"
SECRET = MASK
_SALT = "encryptionsalt"  # useless without the passphrase
_STACK_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_WRITE = "write config: and keys such as kai-fleet:cluster below it"
_PULUMI_KEYS = ("config", "environment", "secretsprovider", "encryptedkey", _SALT)
# Below these keys a platform's mistakes do not matter to its team stacks, which read neither.
_UNREAD_BY_TEAM_STACKS = tuple(f"{key_path((key,))}." for key in ("teams", "workloads"))


def path_of(stack: str) -> Path:
    """The file of a stack of this project, which need not exist. Raises UserError for a text that
    is no stack's name.
    """
    if not _STACK_NAME.fullmatch(stack):
        raise UserError(
            f"{stack!r} is no stack name; write what stands in the file's name, as in"
            f" Pulumi.NAME.yaml; stacks with a file: {_listed_stacks()}"
        )
    return ROOT / f"Pulumi.{stack}.yaml"


def stacks() -> list[str]:
    """The names of the stacks that have a file in the project's folder, sorted."""
    return sorted(path.stem.removeprefix("Pulumi.") for path in ROOT.glob("Pulumi.*.yaml"))


def _listed_stacks() -> str:
    """The names of `stacks` for a message; `none in FOLDER` if there are none."""
    return ", ".join(stacks()) or f"none in {ROOT}"


def read(path: Path) -> dict[str, Any]:
    """The `kai-fleet:` keys of a stack file without their prefix: `{"cluster": {…}, "teams": {…}}`.

    An encrypted value (`secure:`) is `[secret]`.

    Raises:
        UserError: The file is missing or cannot be read, or `parse` refuses it.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        is_of_project = path.parent == ROOT
        name = path.name if is_of_project else path
        others = f"; stacks with a file: {_listed_stacks()}" if is_of_project else ""
        raise UserError(f"{name} is not there{others}") from None
    except (OSError, UnicodeError) as error:
        raise UserError(f"{path.name} cannot be read: {error}") from None
    return parse(text, path.name)


def parse(text: str, name: str) -> dict[str, Any]:
    """The same keys from a stack file's text; `name` is the file's, for messages.

    Raises:
        UserError: The text is no YAML, has a key twice or is too large; it is no stack file; or a
            key is one that Pulumi does not read, or a misspelt one of ours.
    """
    try:
        document = yaml_file.load(text)
    except yaml_file.RefusedYamlError as error:
        raise UserError(f"{name} {error}") from None
    config = document.get("config") if isinstance(document, dict) else document
    if not isinstance(document, dict) or not isinstance(config, dict | None):
        raise UserError(f"{name} is not a stack file; {_WRITE}")
    unread = [key for key in document if key not in _PULUMI_KEYS]
    if unread:
        raise UserError(f"{name}: {unread[0]} is not read by Pulumi; {_WRITE}")
    mistakes = misspelt(config or ())
    if mistakes:
        sentences = [f"{mistake.path} {mistake.message}" for mistake in mistakes]
        raise UserError(f"{name}: {'; '.join(sentences)}")
    return {key: _masked(value) for key, value in own_keys(config).items()}


def unplanned_values(file: Path) -> dict[str, str]:
    """Keys of a stack file that the engine reads and no plan shows, each with its value as JSON:
    environment, decryption, and other programs' configuration as `config.NAMESPACE:NAME`.

    Left out are `encryptionsalt` and values that are encrypted as a whole. Inside another value an
    encrypted one is `[secret]`. Empty if the file cannot be read.
    """
    document = yaml_file.mapping(file)
    document.pop(_SALT, None)
    for key, value in pairs(document.pop("config", None)).items():
        if not own_keys({key: None}):
            document[f"config.{key}"] = value
    masked = {key: _masked(value) for key, value in document.items()}
    return {
        key: json.dumps(value, sort_keys=True, default=str)
        for key, value in masked.items()
        if value != SECRET
    }


def esc_finding(file: Path) -> Finding | None:
    """The finding, an advisory one, that a stack file takes values of Pulumi ESC, which only the
    engine reads; None if it does not, or cannot be read.
    """
    if not yaml_file.mapping(file).get("environment"):
        return None
    preview = preview_command(file.stem.removeprefix("Pulumi."))
    return Finding(
        level=Level.ADVISORY,
        path="environment",
        kind="file",
        name=file.name,
        cause="takes values of Pulumi ESC, which only the engine has: they are not read here",
        fix=(
            "where you are logged in to Pulumi Cloud, which no other backend replaces, run:"
            f" {preview}. Or write below config: what a plan here needs"
        ),
        check="config-environment",
    )


def _masked(value: object) -> object:
    """The value with SECRET in place of each encrypted one, at any depth."""
    if isinstance(value, dict):
        if set(value) == {"secure"}:
            return SECRET
        return {key: _masked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_masked(item) for item in value]
    return value


def settings_of(stack: str) -> Settings:
    """A stack's settings. No rule is asked about them.

    Of a file that takes values of Pulumi ESC a key that is wrong or missing here counts as unset:
    the engine may have another value.

    Raises:
        UserError: `usable_settings_of` refuses the file; or a key has a wrong value or is missing,
            and the file takes no values of Pulumi ESC. The message names each such key.
    """
    path = path_of(stack)
    verdict = verdict_of_keys(read(path), path, stack)
    if verdict.refused and esc_finding(path) is None:
        raise UserError(finding_report(verdict.refused))
    return _usable(verdict, path)


def usable_settings_of(stack: str) -> Settings:
    """A stack's settings, in which a key that is wrong or missing counts as unset.

    For the cluster's address alone: what a stack made has to be removable whatever its file says.

    Raises:
        UserError: The text is no stack's name; the file cannot be read, or `parse` refuses it; or
            so much of it is wrong that there are no settings, as without a usable `cluster`.
    """
    path = path_of(stack)
    return _usable(verdict_of_keys(read(path), path, stack), path)


def verdict_of_keys(
    raw: Mapping[str, object], path: Path, stack: str
) -> validation.SettingsVerdict:
    """The settings of a stack's file and the mistakes of its keys; no rule is asked.

    `raw` are the keys as `read` returns them. `path` tells where a platform's file is, `stack` is
    for the commands in messages.
    """
    return validation.validate(raw, facts_of=facts_beside(path), stack=stack, only=())


def _usable(verdict: validation.SettingsVerdict, path: Path) -> Settings:
    """The settings of a verdict about a stack file.

    Raises UserError if it has none. The message says what is wrong or, if the file takes values of
    Pulumi ESC, that they are not read here.
    """
    if verdict.settings is None:
        unread = esc_finding(path)
        raise UserError(str(unread) if unread else finding_report(verdict.refused))
    return verdict.settings


def facts_beside(team_file: Path) -> FactsOf:
    """A function that reads the facts of a platform from its file beside a team stack's file.

    It takes the platform's stack as the team stack names it, and raises NoPlatformError if that is
    of another project, or its file is missing, wrong or a team stack's. Mistakes below `teams` and
    `workloads`, which team stacks do not read, do not count.
    """

    def facts_of(stack: str) -> Facts:
        name = stack.rpartition("/")[2]
        if "/" in stack and stack.split("/")[1] != PROJECT:
            raise NoPlatformError(
                f"is {stack}, of another project, which only the engine can read; run the preview"
            )
        try:
            raw = read(team_file.parent / f"Pulumi.{name}.yaml")
        except UserError as error:
            raise NoPlatformError(f"is {stack}: {error}") from None
        settings = _platform_settings(raw)
        if settings is None:
            raise NoPlatformError(
                f"is {stack}, whose file is wrong or a team stack's; see: .venv/bin/fleet plan"
                f" --stack {name}"
            )
        return Facts.of(settings)

    return facts_of


def _platform_settings(raw: Mapping[str, Any]) -> Settings | None:
    """A platform's settings, of which no rule is asked.

    None for a team stack, for mistakes that matter to team stacks, and if too little is right.
    """
    loaded = load(raw)
    mistakes = [
        mistake
        for mistake in loaded.mistakes
        if not mistake.path.startswith(_UNREAD_BY_TEAM_STACKS)
    ]
    if mistakes or is_team_stack(raw):
        return None
    return loaded.settings
