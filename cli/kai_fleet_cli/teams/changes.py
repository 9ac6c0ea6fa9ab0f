"""The edit of each team command, and the sentences that describe it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from kai_fleet import releases
from kai_fleet.settings.files.project import FLEET, update_command
from kai_fleet.settings.mistakes import NAMESPACE
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file.edit import GONE, Keys, changed
from kai_fleet_cli.stack_file.write import Edit
from kai_fleet_cli.teams.lookup import DeclaredTeam, StackFile


@dataclass(frozen=True)
class Change(Edit):
    """An edit of a stack's file: what it means, and what is so once the update is done.

    `removes` is the team that goes with it, "" where none does.
    """

    stack: str
    sentence: str
    done: str
    removes: str = ""


def _change(file: StackFile, keys: Keys, value: Any, *words: str) -> Change:
    after = changed(file.text, keys, value, file.path.name)
    return Change(file.path, file.text, after, file.stack, *words)


def key_values(items: Sequence[str], flag: str, example: str) -> dict[str, str]:
    """`KEY=VALUE` flags as a mapping. Raises UserError."""
    values: dict[str, str] = {}
    for item in items:
        key, _, value = item.partition("=")
        if not key or not value:
            raise UserError(f"{flag} {item} is not understood; write {flag} {example}")
        if key in values:
            raise UserError(f"{flag} has {key} twice; write it once")
        values[key] = value
    return values


def add(file: StackFile, name: str, flags: Mapping[str, Any]) -> Change:
    """A new team of a platform. Raises UserError for one that is there; the rules judge the flags.

    In mode virtual `queue` has leaf queues with their GPUs, in mode host the leaf that it gets.
    """
    if name in file.teams or name in file.grants:
        raise UserError(
            f"stack {file.stack} has a team {name} already, in {file.path.name}; write another"
            f" name, or make what is written: {update_command(file.stack)}"
        )
    if file.is_team_stack:
        raise UserError(f"stack {file.stack} is one team's own; write --stack with its platform's")
    mode, gpus = flags["mode"], flags["gpus"]
    scheduler = {"mode": mode, "version": flags["version"]}
    team: dict[str, Any] = {"scheduler": {key: value for key, value in scheduler.items() if value}}
    team |= {"nodePool": flags["pool"]} if flags["pool"] else {}
    if mode == "host":
        team["queue"] = ", ".join(flags["queue"])  # of more than one the rules say so
    team["gpus"] = gpus
    if mode == "virtual":
        # One queue for all GPUs and the others below it: two levels schedule in every version.
        leaves = flags["queue"] or {name: str(gpus)}
        top = next(top for top in ("default", name, f"{name}-all") if top not in leaves)
        children = {leaf: {"gpu": _amount(text)} for leaf, text in leaves.items()}
        team["queues"] = {top: {"gpu": gpus, "children": children}}
    keys = ("config", f"{NAMESPACE}:teams", name)
    sentence = f"{name}: a new team in mode {mode}, with its own vCluster"
    return _change(file, keys, team, sentence, f"team {name} is there.")


def _amount(text: str) -> float | int | str:
    """A number of GPUs; what is none stays text, and the rules say what is wrong with it."""
    with suppress(ValueError):
        amount = float(text)
        return int(amount) if amount.is_integer() else amount
    return text


def switch(file: StackFile, team: DeclaredTeam, version: str) -> Change:
    """Another KAI version for a team. Raises UserError for one without a KAI of its own."""
    old = written_kai(file, team)
    sentence = f"{team.path} has version {version} already: what is left is the update"
    if version != old:
        with suppress(releases.UnknownVersionError):  # which the rules refuse
            before, after = (releases.kai(name, untested=True) for name in (old, version))
            why = releases.why_replaced(before, after)
            way = f"{why}, so the release is replaced" if why else "helm upgrades it in place"
            step = f"KAI {old} → {version}: {way}"
            sentence = f"{team.name}: {step}; queues and running pods stay"
    done = f"team {team.name} runs KAI {version}."
    return _change(file, (*team.keys, "scheduler", "version"), version, sentence, done)


def written_kai(file: StackFile, team: DeclaredTeam) -> str:
    """The KAI version of a team that has its own. Raises UserError for the others."""
    if team.version is not None:
        return team.version
    edit = f"{team.path}.scheduler: {{mode: virtual, version: …}} in {file.path.name}"
    if team.mode == "host":
        edit = "kai-fleet:kai.version in the platform's file, which is of all such teams"
    raise UserError(
        f"team {team.name} is in mode {team.mode}, without a KAI of its own; edit {edit}"
    )


def remove(file: StackFile, team: DeclaredTeam) -> Change:
    """A team goes with all that it has. Raises UserError for a team stack."""
    if file.is_team_stack:
        raise UserError(
            f"stack {file.stack} is team {team.name}'s own, and goes as a whole:"
            f" {FLEET} destroy --stack {file.stack}"
        )
    kai = f", its KAI {team.version} with every queue" if team.version else ""
    lost = f"{team.name} goes: namespace team-{team.name} with its volumes, the vCluster{kai}"
    sentence, done = f"{lost}, and every pod in it", f"team {team.name} is gone."
    return _change(file, team.keys, GONE, sentence, done, team.name)
