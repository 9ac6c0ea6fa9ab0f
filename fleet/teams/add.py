"""A new team: its entry in the platform's stack file, or a stack file of its own with a grant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from components.settings.mistakes import NAMESPACE
from components.settings.quantities import gpu_devices
from fleet import stack_file, yaml_text
from fleet.environment import NotPossible
from fleet.stack_edit import NotEditable, with_value
from fleet.stack_write import Edit
from fleet.teams.places import GRANTS, PLATFORM, TEAM, TEAMS, Platform, own_stack
from fleet.teams.questions import Answers
from fleet.teams.switch import known_version
from fleet.teams.update import Change

_HEAD: Final = (
    "# yaml-language-server: $schema=fleet/stack.schema.json\n"
    "# Team {name} of stack {platform}, in a stack of its own.\n"
)
_UNLIMITED: Final = {"cpu": {"quota": "unlimited"}, "memory": {"quota": "unlimited"}}


def added(platform: Platform, name: str, answers: Answers, *, own: bool) -> Change:
    """The change that adds a team. Raises NotPossible."""
    check_new(platform, name)
    if answers.mode == "virtual":
        known_version(answers.version)
    team = entry(name, answers)
    if own:
        return _with_own_stack(platform, name, team)
    try:
        after = with_value(platform.text, ("config", f"{NAMESPACE}:{TEAMS}", name), team)
    except NotEditable as why:
        raise NotPossible(f"{platform.file.name}: {why}") from None
    edit = Edit(platform.file, platform.text, after)
    return Change(platform, (edit,), (words(name, team),), (platform.stack,), (name,))


def check_new(platform: Platform, name: str) -> None:
    """Raise NotPossible where a team of that name is there already."""
    if name in platform.teams:
        place = platform.teams[name]
        raise NotPossible(
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
    leaves = {
        leaf: _UNLIMITED | {"gpu": {"quota": _amount(leaf, quota)}}
        for leaf, quota in queues.items()
    }
    return {top: _UNLIMITED | {"gpu": {"quota": gpus}, "children": leaves}}


def _amount(leaf: str, text: str) -> float | int:
    try:
        amount = gpu_devices(text)
    except ValueError as why:
        raise NotPossible(f"--queue {leaf}={text} {why}") from None
    if amount < 0:
        raise NotPossible(f"--queue {leaf}={text} cannot be guaranteed; write a number of GPUs")
    return int(amount) if amount.is_integer() else amount


def _with_own_stack(platform: Platform, name: str, team: dict[str, Any]) -> Change:
    """The team's own file, and in the platform's the word that it may have what it asks for."""
    file = own_file(platform, name, team)
    grant: dict[str, Any] = {key: team[key] for key in ("nodePool", "gpus") if key in team}
    if "queue" in team:
        grant["parentQueue"] = team["queue"]
    try:
        after = with_value(platform.text, ("config", f"{NAMESPACE}:{GRANTS}", name), grant)
    except NotEditable as why:
        raise NotPossible(f"{platform.file.name}: {why}") from None
    return Change(
        platform,
        (Edit(platform.file, platform.text, after), file),
        (words(name, team),),
        (platform.stack, own_stack(platform.stack, name)),
        (name,),
    )


def own_file(platform: Platform, name: str, team: Mapping[str, Any]) -> Edit:
    """The stack file of a new team's own. Raises NotPossible where there is one of that name."""
    file = stack_file.path_of(own_stack(platform.stack, name))
    if file.exists():
        raise NotPossible(f"{file.name} is there already, for something else; write another name")
    config = {
        f"{NAMESPACE}:{PLATFORM}": {"stack": platform.stack},
        f"{NAMESPACE}:{TEAM}": {"name": name} | dict(team),
    }
    head = _HEAD.format(name=name, platform=platform.stack)
    return Edit(file, None, head + yaml_text.block({"config": config}, 0))


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
