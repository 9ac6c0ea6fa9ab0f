"""What the rules say about a platform and all its teams, before anything of an edit is written."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from kai_fleet.fleet.resolve import platform_facts
from kai_fleet.settings import load
from kai_fleet.settings.mistakes import NAMESPACE
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.write import Edit, read_text
from kai_fleet_cli.teams.lookup import GRANTS, TEAM, TEAMS, PlatformFile
from kai_fleet_policies import validation
from kubectl_fleet.declared.unknown import pairs
from kubectl_fleet.paths import value_at
from kubectl_fleet.rules.problem import Problem

_OF_GRANTS: Final = ("team-granted", "team-parent-queue")


def validate(platform: PlatformFile, edits: Sequence[Edit]) -> validation.SettingsVerdict:
    """The rules' verdict on the platform with its team stacks, as the edits would leave them.

    Teams with stacks of their own count as the platform's: their pools and GPUs come out of the
    same nodes. Raises UserError where an edited file could not be read any more.
    """
    places = [place for place in platform.teams.values() if place.own and place.file.exists()]
    texts: dict[Path, str | None] = {place.file: read_text(place.file) for place in places}
    texts |= {platform.file: platform.text} | {edit.path: edit.after for edit in edits}
    raw = reading.parse(texts.pop(platform.file) or "", platform.file.name)
    own = [reading.parse(text, file.name) for file, text in sorted(texts.items()) if text]
    grants = raw.pop(GRANTS, None)
    of_own = dict(_own_team(team, grants) for team in own)
    verdict = validation.validate(raw | {TEAMS: dict(raw.get(TEAMS) or {}) | of_own})
    problems = [_in_own_file(problem, of_own) for problem in verdict.problems]
    if grants is not None and verdict.settings is not None:
        problems += _against_grants(raw | {GRANTS: grants}, own)
    return validation.SettingsVerdict(verdict.settings, tuple(dict.fromkeys(problems)))


def _against_grants(
    platform: Mapping[str, Any], own: Iterable[Mapping[str, Any]]
) -> Iterator[Problem]:
    """The problems of each team stack's own preview with its grant, and of the platform's with its
    grants: there may be teams whose files are somewhere else.
    """
    granting = load(platform).settings
    if granting is None:
        return
    start, facts = f"{NAMESPACE}:{GRANTS}.", platform_facts(granting)
    of_platform = validation.validate(platform).refused
    yield from (problem for problem in of_platform if problem.path.startswith(start))
    for raw in own:
        verdict = validation.validate(raw, facts_of=lambda _: facts)
        yield from (problem for problem in verdict.refused if problem.rule in _OF_GRANTS)


def _own_team(raw: Mapping[str, Any], grants: Any) -> tuple[str, dict[str, Any]]:
    """A team stack's team as an entry of the platform's teams."""
    team = dict(pairs(raw.get(TEAM)))
    name = str(team.pop("name", ""))
    # Its queues are below the granted one, which stands for them here.
    if value_at(team, "scheduler.mode") == "host" and team.pop("queues", None):
        team["queue"] = value_at(grants, f"{name}.parentQueue")
    return name, team


def _in_own_file(problem: Problem, names: Container[str]) -> Problem:
    """The problem with its key in the team's own file, where it is about a team that has one."""
    of_team = re.match(rf"{NAMESPACE}:{TEAMS}\.([^.]+)", problem.path)
    if of_team is None or of_team[1] not in names:
        return problem
    return replace(problem, path=f"{NAMESPACE}:{TEAM}{problem.path[of_team.end() :]}")
