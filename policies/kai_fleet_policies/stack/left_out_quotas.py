"""Quotas that the file leaves out and that were 0 until now: what they become is said, once.

Before version 0.2 a quota that was left out was 0. Once an update has made them what they mean now,
nothing is said any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kai_fleet.fleet.queues import RESOURCES
from kai_fleet.settings import Settings
from kai_fleet.settings.quota_defaults import left_out
from kai_fleet.settings.sections.queues import Queue, walk
from kai_fleet_policies.amounts import written
from kai_fleet_policies.problem import Problem, advisory

RULE: Final = "quota-left-out"
_NAMED: Final = 5  # queues of one kind in a sentence
Specs = Mapping[str, Any]  # of queues by name, as they were deployed


def problems(settings: Settings, deployed: Mapping[str, Specs]) -> list[Problem]:
    """One for each tree. `deployed` are the specs by the name of the tree."""
    trees = {"host": ("kai-fleet:queues", settings.queues)}
    for name, team in settings.teams.items():
        trees[name] = (f"{settings.team_path(name)}.queues", team.queues)
    found = []
    for owner, (path, tree) in trees.items():
        told = [*_told(tree, deployed.get(f"{owner}-queues", {}))]
        if told:
            whose = "the host" if owner == "host" else f"team {owner}"
            found.append(
                advisory(
                    RULE,
                    f"quotas of {whose}",
                    path,
                    f"that are left out were 0 until now: {'; '.join(told)}. Write 0 where 0 is"
                    " meant, before the update",
                )
            )
    return found


def _told(tree: Mapping[str, Queue], deployed: Specs) -> Iterator[str]:
    """What becomes of quotas, with the queues of which: `cpu unlimited (train, serve)`."""
    found: dict[str, list[str]] = {}
    for placed in walk(tree):
        spec = deployed.get(placed.name)
        for resource in RESOURCES:
            share = getattr(placed.queue, resource)
            if left_out(placed.queue, resource) and share.quota != 0 and _was_zero(spec, resource):
                amount = f"{resource} becomes {written(resource, share.quota, '')}"
                found.setdefault(amount, []).append(placed.name)
    for amount, queues in found.items():
        more = f" and {len(queues) - _NAMED} more" if len(queues) > _NAMED else ""
        yield f"{amount} ({', '.join(queues[:_NAMED])}{more})"


def _was_zero(spec: Any, resource: str) -> bool:
    try:
        return bool(spec["resources"][resource]["quota"] == 0)
    except (KeyError, TypeError):
        return False
