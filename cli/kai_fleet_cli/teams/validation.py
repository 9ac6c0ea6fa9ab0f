"""What the rules say about a platform and all its teams, before anything of an edit is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kai_fleet.fleet.resolve import platform_facts
from kai_fleet.settings import load
from kai_fleet.settings.mistakes import NAMESPACE
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.write import Edit, read_text
from kai_fleet_cli.teams.lookup import GRANTS, TEAM, TEAMS, Platform
from kai_fleet_policies import validation
from kai_fleet_policies.problem import Problem
from kai_fleet_policies.rules.teams import team_granted, team_parent_queue

_OF_GRANTS: Final = (team_granted.NAME, team_parent_queue.NAME)


def validate(platform: Platform, edits: Sequence[Edit]) -> validation.Verdict:
    """The rules' verdict on the platform with its team stacks, as the edits would leave them.

    Teams with stacks of their own count as the platform's: their pools and GPUs come out of the
    same nodes. Raises UserError where an edited file could not be read any more.
    """
    after = {edit.path: edit.after for edit in edits}
    raw = dict(_parsed(platform.file, after.get(platform.file, platform.text)))
    grants = raw.pop(GRANTS, None)
    own = {place.file for place in platform.teams.values() if place.own}
    files = own | {path for path in after if path != platform.file}
    teams = dict(raw.get(TEAMS) or {})
    names = []
    for file in sorted(files):
        text = after[file] if file in after else read_text(file)
        if text is None:
            continue
        name, team = _own_team(_parsed(file, text), grants)
        teams[name] = team
        names.append(name)
    verdict = validation.validate(raw | {TEAMS: teams})
    problems = [_in_own_file(problem, names) for problem in verdict.problems]
    if grants is not None and verdict.settings is not None:
        problems += _against_grants(raw | {GRANTS: grants}, after, files)
    return validation.Verdict(verdict.settings, tuple(dict.fromkeys(problems)))


def _against_grants(
    platform: Mapping[str, Any], after: Mapping[Path, str | None], files: Iterable[Path]
) -> Iterator[Problem]:
    """What each team stack's own preview would say of what it is granted, and the platform's of
    its grants: there may be teams whose files are somewhere else.
    """
    granting = load(platform).settings
    if granting is None:
        return
    for problem in validation.validate(platform).refused:
        if problem.path.startswith(f"{NAMESPACE}:{GRANTS}."):
            yield problem
    facts = platform_facts(granting)
    for file in sorted(files):
        text = after[file] if file in after else read_text(file)
        if text is None:
            continue
        verdict = validation.validate(_parsed(file, text), facts_of=lambda _: facts)
        yield from (problem for problem in verdict.refused if problem.rule in _OF_GRANTS)


def _own_team(raw: Mapping[str, Any], grants: Any) -> tuple[str, dict[str, Any]]:
    """A team stack's team as an entry of the platform's teams."""
    found = raw.get(TEAM)
    team = dict(found) if isinstance(found, Mapping) else {}
    name = str(team.pop("name", ""))
    scheduler = team.get("scheduler")
    if isinstance(scheduler, Mapping) and scheduler.get("mode") == "host":
        # Its queues are below the granted one, which stands for them here.
        granted = grants.get(name) if isinstance(grants, Mapping) else None
        if team.pop("queues", None) and isinstance(granted, Mapping):
            team["queue"] = granted.get("parentQueue")
    return name, team


def _in_own_file(problem: Problem, names: Sequence[str]) -> Problem:
    for name in names:
        start = f"{NAMESPACE}:{TEAMS}.{name}"
        if problem.path == start or problem.path.startswith(f"{start}."):
            path = f"{NAMESPACE}:{TEAM}{problem.path.removeprefix(start)}"
            return Problem(problem.rule, problem.level, problem.subject, path, problem.message)
    return problem


def _parsed(file: Path, text: str | None) -> Mapping[str, Any]:
    """The `kai-fleet:` part of a file's text as it would be."""
    try:
        return reading.parse(text or "", file.name)
    except reading.Unreadable as why:
        raise UserError(str(why)) from None
