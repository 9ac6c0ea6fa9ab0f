"""The `fleet` commands that messages name, as they work in the state that they are named in.

A team that may go and that the stack file does not have any more has to be named to `fleet up`, or
the rule `team-removal` refuses the update; without a terminal `fleet destroy` wants `--yes`.
"""

from collections.abc import Iterable
from typing import Any, Final

from kai_fleet.settings.files.project import FLEET as FLEET
from kai_fleet_cli.display.terminal import Screen
from kai_fleet_cli.stack_file import reading

_KEYS: Final = ("teams", "teamStacks", "removed")


def up(stack: str, going: Iterable[str] = ()) -> str:
    """`fleet up --refresh` of a stack. `going` are teams of it that may go."""
    kept = _declared(stack)
    named = naming(team for team in going if team not in kept)
    return f"{FLEET} up --refresh --stack {stack}{named}"


def naming(teams: Iterable[str]) -> str:
    """The options that name teams that may go, with a space before each."""
    return "".join(f" --remove-team {team}" for team in teams)


def destroy(stack: str) -> str:
    """`fleet destroy --refresh` of a stack."""
    yes = "" if Screen.standard().asks else " --yes"
    return f"{FLEET} destroy --refresh{yes} --stack {stack}"


def _declared(stack: str) -> set[str]:
    """The teams for which the file as it is now needs no flag."""
    try:
        raw: Any = reading.read(reading.path_of(stack))
    except reading.StackFileError:
        return set()
    written = [raw.get(key) for key in _KEYS]
    return {str(team) for names in written if isinstance(names, dict | list) for team in names}
