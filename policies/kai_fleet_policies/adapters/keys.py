"""The key of the stack file for what a resource declares."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from kai_fleet.names import PACKAGE
from kai_fleet.urns import read_urn
from kai_fleet.values import get, pairs
from kai_fleet.wording import on_one_line

_OWN: Final = "kai-fleet:index:"
# By the component that makes it on the host.
_KEYS: Final = {
    "GpuStack": "kai-fleet:gpu",
    "KaiScheduler": "kai-fleet:kai",
    "QueueTree": "kai-fleet:queues",
    "TeamStackAccess": "kai-fleet:teamStacks",
    "Monitoring": "kai-fleet:monitoring",
}
_URN: Final = re.compile(r"urn:pulumi:[^\s;,]*\w")


def team_keys(config: Mapping[str, str]) -> dict[str, str]:
    """The key of each team in a stack's configuration, as the engine sends it: JSON by key."""
    found = dict[str, str]()
    for section in ("teams", "teamStacks"):
        for name in pairs(_parsed(config.get(f"{PACKAGE}:{section}"))):
            found[str(name)] = f"{PACKAGE}:{section}.{on_one_line(str(name))}"
    if name := get(_parsed(config.get(f"{PACKAGE}:team")), "name"):
        found[str(name)] = f"{PACKAGE}:team"
    return found


def _parsed(value: str | None) -> Any:
    try:
        return json.loads(value or "null")
    except ValueError:
        return None


def _beginnings(team: str) -> tuple[str, ...]:
    """How names of a team's resources begin; what is in a resource follows a dot."""
    return f"{team}-", f"{team}/", f"{team}."


def key_of(urn: str, teams: Mapping[str, str]) -> str:
    """The key for what a resource declares; the URN where none has it. `teams` are theirs."""
    read = read_urn(urn)
    owners = [team for team in teams if f"{read.name}-".startswith(_beginnings(team))]
    types = {kind.removeprefix(_OWN) for kind in read.types}
    if owners and types & {"Team", "TeamNamespace"}:
        return teams[max(owners, key=len)]
    keys = (key for kind, key in _KEYS.items() if kind in types and not owners)
    return next(keys, urn)


def with_keys(text: str, teams: Mapping[str, str]) -> str:
    """A text with keys in place of URNs."""
    return _URN.sub(lambda found: key_of(found[0], teams), text)
