"""The key of the stack file for what a resource declares."""

import json
import re
from collections.abc import Mapping

from kai_fleet.names import COMPONENTS
from kai_fleet.urns import read_urn
from kai_fleet.values import get, pairs
from kai_fleet_policies.key_paths import NAMESPACE, key_path

# By the component on the host that declares something; the first match counts.
_KEYS = {
    "GpuStack": "kai-fleet:gpu",
    "KaiScheduler": "kai-fleet:kai",
    "QueueTree": "kai-fleet:queues",
    "TeamStackAccess": "kai-fleet:teamStacks",
    "Monitoring": "kai-fleet:monitoring",
}
_URN = re.compile(r"urn:pulumi:[^\s;,]*\w")


def team_keys(config: Mapping[str, str]) -> dict[str, str]:
    """The key of each team in a stack's configuration, by the team's name.

    `config` is JSON by key, as the engine sends it. A value that is no JSON has no teams. The key
    of a team is below `teams`, `teamStacks` or `team`; the last of these that names it counts.
    """
    keys = dict[str, str]()
    for section in ("teams", "teamStacks"):
        for name in pairs(_parsed(config.get(f"{NAMESPACE}:{section}"))):
            keys[str(name)] = key_path((section, str(name)))
    name = get(_parsed(config.get(f"{NAMESPACE}:team")), "name")
    if name:
        keys[str(name)] = key_path(("team",))
    return keys


def _parsed(value: str | None) -> object:
    """The value of a text in JSON; None if it is absent or no JSON."""
    try:
        return json.loads(value or "null")
    except ValueError:
        return None


def key_of(urn: str, teams: Mapping[str, str]) -> str:
    """The key for what a resource declares; the URN itself if no key does.

    `teams` has the keys of teams by name. A resource is that of the team with the longest name that
    its own begins with, and has the team's key if it is in a Team or a TeamNamespace. If its name
    begins with no team's, or with `host-`, it has the key of the component that it is in.
    """
    resource = read_urn(urn)
    types = {kind.removeprefix(COMPONENTS) for kind in resource.types}
    owners = [team for team in teams if _is_of_team(resource.name, team)]
    if owners and ("Team" in types or "TeamNamespace" in types):
        return teams[max(owners, key=len)]
    # What the host has is called `host-…`, as a team may be.
    if owners and not resource.name.startswith("host-"):
        return urn
    for component, key in _KEYS.items():
        if component in types:
            return key
    return urn


def _is_of_team(name: str, team: str) -> bool:
    """Whether a resource's name is the team's, or begins with it and a separator."""
    return name == team or name.startswith((f"{team}-", f"{team}/", f"{team}."))


def with_keys(text: str, teams: Mapping[str, str]) -> str:
    """The text with a key in place of each URN that has one.

    A URN ends before white space, `;` or `,`, and with a letter, a digit or `_`.
    """
    return _URN.sub(lambda match: key_of(match[0], teams), text)
