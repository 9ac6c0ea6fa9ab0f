"""Teams that are deployed and not declared any more: they go only when they are named.

A team goes with its vCluster and its volumes. A cut file or a bad merge is not enough for that.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kai_fleet.settings import key_path
from kai_fleet.settings.mistakes import within
from kubectl_fleet.rules.problem import Problem, mandatory

if TYPE_CHECKING:
    from kai_fleet_policies.validation import SettingsVerdict

RULE: Final = "team-removal"
# Names, with commas between: for one run, in place of kai-fleet:removed in the file.
VARIABLE: Final = "KAI_FLEET_REMOVE_TEAM"


def unnamed(verdict: SettingsVerdict, deployed: Iterable[str]) -> list[str]:
    """The deployed teams that a run would remove without being told to.

    None that the file may have in a part that could not be read.
    """
    settings = verdict.settings
    if settings is None or within(key_path(("removed",)), verdict.dropped):
        return []
    named = {name.strip() for name in os.environ.get(VARIABLE, "").split(",")}
    kept = settings.teams.keys() | settings.team_stacks.keys()  # a grant has a rule of its own
    gone = sorted(set(deployed) - kept - named - set(settings.removed))
    return [
        name
        for name in gone
        if not any(within(key_path((it, name)), verdict.dropped) for it in ("teams", "teamStacks"))
    ]


def problems(verdict: SettingsVerdict, deployed: Iterable[str], stack: str) -> list[Problem]:
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
        for name in unnamed(verdict, deployed)
    ]
