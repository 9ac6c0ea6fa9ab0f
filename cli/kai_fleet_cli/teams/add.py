"""A new team: its entry in the platform's stack file, or a stack file of its own with a grant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from kai_fleet.settings.mistakes import NAMESPACE
from kai_fleet.settings.quantities import gpu_devices
from kai_fleet.settings.sections.platform import TeamName
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file import edit, reading
from kai_fleet_cli.stack_file.write import Edit, edited
from kai_fleet_cli.teams.lookup import GRANTS, PLATFORM, TEAM, TEAMS, Platform, own_stack
from kai_fleet_cli.teams.questions import Answers
from kai_fleet_cli.teams.switch import known_version
from kai_fleet_cli.teams.update import Change

_HEAD: Final = (
    "# yaml-language-server: $schema=components/kai_fleet/settings/stack.schema.json\n"
    "# Team {name} of stack {platform}, in a stack of its own.\n"
)


def added(platform: Platform, name: str, answers: Answers, *, own: bool) -> Change:
    """The change that adds a team. Raises UserError."""
    check_new(platform, name)
    if answers.mode == "virtual":
        known_version(answers.version)
    team = entry(name, answers)
    if own:
        return _with_own_stack(platform, name, team)
    place = ("config", f"{NAMESPACE}:{TEAMS}", name)
    edit = edited(platform.file, platform.text, {place: team})
    return Change(platform, (edit,), (words(name, team),), (platform.stack,), (name,))


def check_new(platform: Platform, name: str) -> None:
    """Raise UserError for what is no team's name, before anything is asked; or is there already."""
    try:
        TypeAdapter(TeamName).validate_python(name)
    except ValidationError as why:
        (detail,) = why.errors()
        form = "does not fit; write at most 40 lower-case letters, digits and dashes"
        said = detail["ctx"]["error"] if detail["type"] == "value_error" else form
        raise UserError(f"the name {name!r} {said}") from None
    if name in platform.teams:
        place = platform.teams[name]
        raise UserError(
            f"stack {platform.stack} has a team {name} already, in {place.file.name}; write another"
            " name"
        )


def entry(name: str, answers: Answers) -> dict[str, Any]:
    """A team as a stack file writes it, its keys in the order of the other stack files."""
    scheduler: dict[str, Any] = {"mode": answers.mode}
    if answers.mode == "virtual":
        scheduler["version"] = answers.version
    team: dict[str, Any] = {"scheduler": scheduler}
    if answers.pool:
        team["nodePool"] = dict(answers.pool)
    if answers.mode == "host":
        team["queue"] = next(iter(answers.queues), "")
    team["gpus"] = answers.gpus or 0
    if answers.mode == "virtual":
        team["queues"] = _tree(name, team["gpus"], answers.queues)
    return team


def _tree(name: str, gpus: int, queues: Mapping[str, str]) -> dict[str, Any]:
    """One queue for all GPUs and the given ones below it: two levels schedule in every version."""
    top = next(top for top in ("default", name, f"{name}-all") if top not in queues)
    leaves = {leaf: {"gpu": _amount(leaf, quota)} for leaf, quota in queues.items()}
    return {top: {"gpu": gpus, "children": leaves}}


def _amount(leaf: str, text: str) -> float | int:
    try:
        amount = gpu_devices(text)
    except ValueError as why:
        raise UserError(f"--queue {leaf}={text} {why}") from None
    if amount < 0:
        raise UserError(f"--queue {leaf}={text} cannot be guaranteed; write a number of GPUs")
    return int(amount) if amount.is_integer() else amount


def _with_own_stack(platform: Platform, name: str, team: dict[str, Any]) -> Change:
    """The team's own file, and in the platform's the word that it may have what it asks for."""
    file = own_file(platform, name, team)
    grant: dict[str, Any] = {key: team[key] for key in ("nodePool", "gpus") if key in team}
    if "queue" in team:
        grant["parentQueue"] = team["queue"]
    place = ("config", f"{NAMESPACE}:{GRANTS}", name)
    return Change(
        platform,
        (edited(platform.file, platform.text, {place: grant}), file),
        (words(name, team),),
        (platform.stack, own_stack(platform.stack, name)),
        (name,),
    )


def own_file(platform: Platform, name: str, team: Mapping[str, Any]) -> Edit:
    """The stack file of a new team's own. Raises UserError where there is one of that name."""
    file = reading.path_of(own_stack(platform.stack, name))
    if file.exists():
        raise UserError(f"{file.name} is there already, for something else; write another name")
    config = {
        f"{NAMESPACE}:{PLATFORM}": {"stack": platform.stack},
        f"{NAMESPACE}:{TEAM}": {"name": name} | dict(team),
    }
    head = _HEAD.format(name=name, platform=platform.stack)
    return Edit(file, None, head + edit.block({"config": config}))


def words(name: str, team: Mapping[str, Any]) -> str:
    """What a new team is, in a sentence."""
    scheduler = team["scheduler"]
    pool = ", ".join(f"{key}={value}" for key, value in team.get("nodePool", {}).items())
    who = {
        "virtual": f"KAI {scheduler.get('version')} inside its vCluster",
        "host": f"the host's KAI, in queue {team.get('queue')}",
    }.get(scheduler["mode"], "Kubernetes' own scheduler")
    on = f" on nodes {pool}" if pool else ""
    return (
        f"{name}: new team in mode {scheduler['mode']}: a vCluster{on}, {who}, {team['gpus']} GPUs"
    )
