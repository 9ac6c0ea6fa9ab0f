"""The teams that a stack file declares: a platform's, or the one of a team stack."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from kai_fleet.settings.mistakes import NAMESPACE
from kai_fleet.values import pairs
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.edit import Keys
from kai_fleet_cli.stack_file.write import read_text

TEAM: Final = "team"
TEAMS: Final = "teams"
GRANTS: Final = "teamStacks"


@dataclass(frozen=True)
class DeclaredTeam:
    """A team as a stack file has it; `keys` is its place there."""

    name: str
    keys: Keys
    raw: Mapping[str, Any] = field(repr=False)

    @property
    def path(self) -> str:
        """Its place as messages name it: `kai-fleet:teams.ml`."""
        return ".".join(self.keys[1:])

    @property
    def scheduler(self) -> Mapping[str, Any]:
        """Its scheduler's keys."""
        return pairs(self.raw.get("scheduler"))

    @property
    def mode(self) -> str:
        """`virtual`, `host`, `default`, or whatever is written there."""
        return str(self.scheduler.get("mode", "-"))

    @property
    def version(self) -> str | None:
        """The KAI version that is written, in mode virtual."""
        version = self.scheduler.get("version")
        return version if isinstance(version, str) and self.mode == "virtual" else None


@dataclass(frozen=True)
class StackFile:
    """A stack's file as it is now, and its teams."""

    stack: str
    text: str = field(repr=False)
    raw: Mapping[str, Any] = field(repr=False)
    teams: Mapping[str, DeclaredTeam]

    @property
    def file(self) -> Path:
        """Where it is."""
        return reading.path_of(self.stack)

    @property
    def is_team_stack(self) -> bool:
        """Whether it is one team's own, on a platform of another stack."""
        return TEAM in self.raw

    @property
    def grants(self) -> Mapping[str, Any]:
        """What teams with a stack of their own may have, by team."""
        return pairs(self.raw.get(GRANTS))

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


def config_keys(*keys: str) -> Keys:
    """Where something stands in a stack file: `config_keys("teams", "ml")`."""
    return ("config", f"{NAMESPACE}:{keys[0]}", *keys[1:])


def stack_file(stack: str) -> StackFile:
    """A stack's file and its teams. Raises UserError where there is no such file."""
    path = reading.path_of(stack)
    raw = reading.read(path)
    if TEAM in raw:
        own = pairs(raw[TEAM])
        every = {
            str(own.get("name", stack)): DeclaredTeam(
                str(own.get("name", stack)), config_keys(TEAM), own
            )
        }
    else:
        every = {
            str(name): DeclaredTeam(str(name), config_keys(TEAMS, str(name)), pairs(team))
            for name, team in pairs(raw.get(TEAMS)).items()
        }
    return StackFile(stack, read_text(path), raw, every)
