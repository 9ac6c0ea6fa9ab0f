"""Where a team is written: in its platform's stack file, or in a stack file of its own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from kai_fleet.settings.mistakes import NAMESPACE
from kai_fleet.settings.sections.gpu_share import counted
from kai_fleet.values import pairs, value_at
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.edit import changed
from kai_fleet_cli.stack_file.write import Edit, read_text

PLATFORM: Final = "platform"
TEAM: Final = "team"
TEAMS: Final = "teams"
GRANTS: Final = "teamStacks"
Keys = tuple[str, ...]


@dataclass(frozen=True)
class TeamPlace:
    """A team as it is written. `stack` declares it, `keys` is where in that stack's file."""

    platform: str
    name: str
    stack: str
    keys: Keys
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

    @property
    def node_pool(self) -> Mapping[str, str]:
        """The labels of its nodes; empty where there are none, or no mapping."""
        return pairs(self.raw.get("nodePool"))

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
        pools = pairs(self.raw.get("pools"))
        return {str(name): _counted(gpus) for name, gpus in pools.items()} or None

    def edited(self, values: Mapping[Keys, Any]) -> Edit:
        """The edit that sets these places of its file. Raises UserError."""
        text = read_text(self.file)
        return Edit(self.file, text, changed(text, values, self.file.name))

    def removed(self) -> Edit:
        """The edit that removes its file."""
        return Edit(self.file, read_text(self.file), None)


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
        return pairs(self.raw.get(GRANTS))

    def team(self, name: str) -> TeamPlace:
        """The team of that name; raises UserError with the names that there are."""
        if name in self.teams:
            return self.teams[name]
        close = get_close_matches(name, self.teams, n=1, cutoff=0.6)
        meant = f"did you mean {close[0]}? Its" if close else "its"
        names = ", ".join(sorted(self.teams)) or "none yet"
        raise UserError(f"stack {self.stack} has no team {name}; {meant} teams: {names}")

    def edited(self, values: Mapping[Keys, Any]) -> Edit:
        """The edit that sets these places, or takes them out (GONE). Raises UserError."""
        return Edit(self.file, self.text, changed(self.text, values, self.file.name))


def config_keys(*keys: str) -> Keys:
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
        above, name = _names(raw)
        to = f"; write --stack {above}" if above else ""
        raise UserError(f"stack {stack} is team {name or stack}'s own, not a platform's{to}")
    inside = raw.get(TEAMS) or {}
    if not isinstance(inside, Mapping):
        raise UserError(f"{NAMESPACE}:{TEAMS} in Pulumi.{stack}.yaml is not a mapping of teams")
    teams = {
        str(name): TeamPlace(stack, str(name), stack, config_keys(TEAMS, str(name)), pairs(team))
        for name, team in inside.items()
    }
    for own in reading.stacks():
        if own.startswith(own_stack(stack, "")):
            try:
                its = reading.read(reading.path_of(own))
            except reading.StackFileError:
                continue
            above, name = _names(its)
            if above == stack and name:
                teams[name] = TeamPlace(stack, name, own, config_keys(TEAM), pairs(its[TEAM]))
    return PlatformFile(stack, read_text(reading.path_of(stack)), raw, teams)


def _names(raw: Mapping[str, Any]) -> tuple[str, str]:
    """The stack of a team stack's platform, of `organization/project/stack`, and its team."""
    stack, team = value_at(raw, f"{PLATFORM}.stack"), value_at(raw, f"{TEAM}.name")
    return str(stack or "").rpartition("/")[2], str(team or "")


def _counted(gpus: Any) -> int | None:
    counts = gpus.values() if isinstance(gpus, Mapping) else [gpus]
    return counted(gpus, {}) if all(isinstance(it, int) for it in counts) else None
