"""Where a team is written: in its platform's stack file, or in a stack file of its own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from kai_fleet.settings.mistakes import NAMESPACE
from kai_fleet.settings.sections.gpu_share import counted
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.write import read_text
from kubectl_fleet.errors import UserError
from kubectl_fleet.paths import value_at

PLATFORM: Final = "platform"
TEAM: Final = "team"
TEAMS: Final = "teams"
GRANTS: Final = "teamStacks"


@dataclass(frozen=True)
class TeamPlace:
    """A team as it is written. `stack` declares it, `keys` is where in that stack's file."""

    platform: str
    name: str
    stack: str
    keys: tuple[str, ...]
    raw: Mapping[str, Any] = field(repr=False)

    @property
    def own(self) -> bool:
        """Whether the team has a stack of its own."""
        return self.stack != self.platform

    @property
    def file(self) -> Path:
        """The file in which it is written."""
        return reading.path_of(self.stack)

    @property
    def path(self) -> str:
        """Its place as messages name it: `kai-fleet:teams.ml`."""
        return ".".join(self.keys[1:])

    @property
    def scheduler(self) -> Mapping[str, Any]:
        """Its scheduler's keys; empty where they are not a mapping."""
        return _mapping(self.raw.get("scheduler"))

    @property
    def mode(self) -> str:
        """`virtual`, `host`, `default`, or whatever is written there."""
        return str(self.scheduler.get("mode", "-"))

    @property
    def version(self) -> str | None:
        """The KAI version that is written, in mode virtual."""
        version = self.scheduler.get("version")
        return version if isinstance(version, str) and self.mode == "virtual" else None

    @property
    def node_pool(self) -> Mapping[str, str]:
        """The labels of its nodes; empty where there are none, or no mapping."""
        return _mapping(self.raw.get("nodePool"))

    @property
    def gpus(self) -> int | None:
        """The most GPUs that it may hold as KAI counts them, 0 unless written; None for nonsense"""
        pools = self.pools
        if pools is None:
            return _counted(self.raw.get("gpus", 0))
        return None if None in pools.values() else sum(n or 0 for n in pools.values())

    @property
    def pools(self) -> Mapping[str, int | None] | None:
        """The GPUs of each of its pools as KAI counts them; None without pools."""
        pools = _mapping(self.raw.get("pools"))
        return {str(name): _counted(gpus) for name, gpus in pools.items()} or None

    @property
    def whole_gpus(self) -> int:
        """Its GPUs, where they are a number; raises UserError where they are written by kind."""
        gpus = self.raw.get("gpus", 0)
        if isinstance(gpus, int) and not self.pools:
            return gpus
        raise UserError(
            f"the GPUs of team {self.name} are by kind or by pool, which no command divides; write"
            f" the second team into {self.file.name} by hand (docs/blue-green.md)"
        )


@dataclass(frozen=True)
class PlatformFile:
    """A platform stack's file as it is now, and its teams."""

    stack: str
    text: str
    raw: Mapping[str, Any]
    teams: Mapping[str, TeamPlace]

    @property
    def file(self) -> Path:
        """Its stack file."""
        return reading.path_of(self.stack)

    @property
    def grants(self) -> Mapping[str, Any]:
        """What it grants to teams with stacks of their own, by team."""
        return _mapping(self.raw.get(GRANTS))

    def team(self, name: str) -> TeamPlace:
        """The team of that name; raises UserError with the names that there are."""
        if name in self.teams:
            return self.teams[name]
        close = get_close_matches(name, self.teams, n=1, cutoff=0.6)
        meant = f"did you mean {close[0]}? Its" if close else "its"
        names = ", ".join(sorted(self.teams)) or "none yet"
        raise UserError(f"stack {self.stack} has no team {name}; {meant} teams: {names}")


def config_keys(*keys: str) -> tuple[str, ...]:
    """Where something stands in a stack file: `config_keys("teams", "ml")`."""
    return ("config", f"{NAMESPACE}:{keys[0]}", *keys[1:])


def own_stack(platform: str, team: str) -> str:
    """The name of a team's own stack."""
    return f"{platform}-{team}"


def platform(stack: str) -> PlatformFile:
    """A platform stack and all its teams, those with own stacks included.

    Raises UserError where there is no such file, or it is one team's own stack.
    """
    raw = reading.read(reading.path_of(stack))
    if TEAM in raw or PLATFORM in raw:
        above, name = _platform_of(raw), _name_of(raw)
        to = f"; write --stack {above}" if above else ""
        raise UserError(f"stack {stack} is team {name or stack}'s own, not a platform's{to}")
    inside = raw.get(TEAMS) or {}
    if not isinstance(inside, Mapping):
        raise UserError(f"{NAMESPACE}:{TEAMS} in Pulumi.{stack}.yaml is not a mapping of teams")
    teams = {
        str(name): TeamPlace(stack, str(name), stack, config_keys(TEAMS, str(name)), _mapping(team))
        for name, team in inside.items()
    }
    return PlatformFile(stack, read_text(reading.path_of(stack)), raw, teams | _own_stacks(stack))


def _own_stacks(platform: str) -> dict[str, TeamPlace]:
    """The teams of a platform that have stacks of their own."""
    teams = {}
    for stack in reading.stacks():
        if not stack.startswith(f"{platform}-"):
            continue
        try:
            raw = reading.read(reading.path_of(stack))
        except reading.StackFileError:
            continue
        name = _name_of(raw)
        if TEAM in raw and name and _platform_of(raw) == platform:
            keys = config_keys(TEAM)
            teams[name] = TeamPlace(platform, name, stack, keys, _mapping(raw[TEAM]))
    return teams


def _platform_of(raw: Mapping[str, Any]) -> str:
    """The last part of `organization/project/stack`."""
    return str(value_at(raw, f"{PLATFORM}.stack") or "").rpartition("/")[2]


def _name_of(raw: Mapping[str, Any]) -> str:
    return str(value_at(raw, f"{TEAM}.name") or "")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _counted(gpus: Any) -> int | None:
    counts = gpus.values() if isinstance(gpus, Mapping) else [gpus]
    return counted(gpus, {}) if all(isinstance(it, int) for it in counts) else None
