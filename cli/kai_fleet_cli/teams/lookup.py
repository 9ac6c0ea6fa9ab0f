"""The teams that a stack file declares: a platform's, or the one of a team stack."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from kai_fleet.settings.mistakes import NAMESPACE
from kai_fleet.values import get, pairs
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.edit import Keys


@dataclass(frozen=True)
class DeclaredTeam:
    """A team as a stack file has it. `path` is its key as messages name it, `version` its KAI's."""

    name: str
    path: str
    mode: str
    version: str | None

    @property
    def keys(self) -> Keys:
        """Its place in the file."""
        return ("config", *self.path.split("."))


@dataclass(frozen=True)
class StackFile:
    """A stack's file as it is now, its teams, and the teams to which it grants a stack."""

    stack: str
    text: str = field(repr=False)
    raw: Mapping[str, Any] = field(repr=False)
    teams: Mapping[str, DeclaredTeam]
    is_team_stack: bool = False

    @property
    def path(self) -> Path:
        """The path of the file."""
        return reading.path_of(self.stack)

    @property
    def grants(self) -> Mapping[str, Any]:
        """The grants to teams with a stack of their own, by team."""
        return pairs(self.raw.get("teamStacks"))

    def team(self, name: str) -> DeclaredTeam:
        """The team of that name. Raises UserError with the names that there are."""
        if name in self.teams:
            return self.teams[name]
        if name in self.grants:
            raise UserError(
                f"team {name} has a stack of its own; write --stack with that stack's name"
            )
        close = get_close_matches(name, self.teams, n=1)
        meant = f"did you mean {close[0]}? Its" if close else "its"
        names = ", ".join(sorted(self.teams)) or "none yet"
        raise UserError(f"stack {self.stack} has no team {name}; {meant} teams: {names}")


def stack_file(stack: str) -> StackFile:
    """A stack's file and its teams. Raises UserError where there is no such file."""
    path = reading.path_of(stack)
    raw = reading.read(path)
    own = pairs(raw.get("team"))
    every = {
        f"{NAMESPACE}:teams.{name}": (name, team) for name, team in pairs(raw.get("teams")).items()
    }
    if own:
        every = {f"{NAMESPACE}:team": (own.get("name"), own)}
    teams = {}
    for key, (name, team) in every.items():
        mode, version = (get(team, "scheduler", part) for part in ("mode", "version"))
        text = version if isinstance(version, str) and mode == "virtual" else None
        teams[str(name)] = DeclaredTeam(str(name), key, str(mode), text)
    return StackFile(stack, path.read_bytes().decode(), raw, teams, bool(own))
