"""Settings from stack files alone: a team stack's with its platform's file beside it."""

from pathlib import Path
from typing import Final

from kai_fleet.settings import Settings, key_path, load
from kai_fleet.settings.team_stack import Facts, FactsOf, NoPlatformError, is_team_stack
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file import reading
from kai_fleet_policies import validation

_OF_OTHERS: Final = tuple(f"{key_path((key,))}." for key in ("teams", "workloads"))


def settings_of(stack: str) -> Settings:
    """A stack's settings, which the rules did not judge. Raises UserError for wrong keys."""
    path = reading.path_of(stack)
    verdict = validation.validate(reading.read(path), facts_of=facts_beside(path), only=())
    if verdict.settings is None:
        raise UserError(validation.report(verdict.refused))
    return verdict.settings


def facts_beside(team_file: Path) -> FactsOf:
    """Facts of the platforms whose files are in the same folder as a team stack's."""

    def facts_of(stack: str) -> Facts:
        _, _, bare = stack.rpartition("/")
        if "/" in stack and stack.split("/")[1] != reading.PROJECT:
            raise NoPlatformError(
                f"is {stack}, of another project, which only the engine can read; run the preview"
            )
        file = team_file.parent / f"Pulumi.{bare}.yaml"
        try:
            raw = reading.read(file)
        except reading.StackFileError as why:
            raise NoPlatformError(f"is {stack}: {why}") from None
        if is_team_stack(raw):
            raise NoPlatformError(f"is {stack}, which is a team stack itself; write its platform's")
        loaded = load(raw)
        # Mistakes in other teams and their workloads do not matter: a team stack reads neither.
        wrong = [each.path for each in loaded.mistakes if not each.path.startswith(_OF_OTHERS)]
        settings = loaded.settings
        if settings is None or wrong:
            raise NoPlatformError(
                f"is {stack}, whose file is wrong; see: .venv/bin/fleet plan --stack {bare}"
            )
        return Facts.of(settings)

    return facts_of
