"""Teams that are deployed and not declared any more: they go only when they are named.

A team goes with its vCluster and its volumes. A cut file or a bad merge is not enough for that.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from kai_fleet.settings import Settings, key_path
from kubectl_fleet.rules.problem import Problem, mandatory

RULE: Final = "team-removal"
# Names, with commas between: for one run, in place of kai-fleet:removed in the file.
VARIABLE: Final = "KAI_FLEET_REMOVE_TEAM"


def unnamed(settings: Settings, deployed: Iterable[str]) -> list[str]:
    """The deployed teams that this run would remove without being told to."""
    named = {name.strip() for name in os.environ.get(VARIABLE, "").split(",")}
    kept = settings.teams.keys() | settings.team_stacks.keys()  # a grant has a rule of its own
    return sorted(set(deployed) - kept - named - set(settings.removed))


def problems(settings: Settings, deployed: Iterable[str], stack: str) -> list[Problem]:
    """One for each of them; `stack` is where they are deployed."""
    return [
        mandatory(
            f"team {name}",
            key_path(("teams", name)),
            "is deployed and not in the file any more: its vCluster, its pods and its volumes would"
            f" go. Put it back, or name it: kai-fleet:removed: [{name}] in the file, or for one run"
            f" .venv/bin/fleet up --stack {stack} --remove-team {name}, or"
            f" {VARIABLE}={name} for plain pulumi",
            RULE,
        )
        for name in unnamed(settings, deployed)
    ]
