"""The edit of each team command: judged, shown, written, and the update that follows."""

import difflib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.prompt import Confirm

from kai_fleet.settings.files.project import FLEET, update_command
from kai_fleet.settings.mistakes import NAMESPACE
from kai_fleet.settings.team_stack import platform_of
from kai_fleet.values import get, pairs
from kai_fleet_cli.display import as_text, terminal
from kai_fleet_cli.engine import runs
from kai_fleet_cli.engine.environment import for_stack, is_elsewhere
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import resume
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.edit import GONE, Keys, changed, put
from kai_fleet_policies import validation


@dataclass(frozen=True)
class DeclaredTeam:
    """A team as a stack file has it. `path` is its key as messages name it, `version` its KAI's."""

    name: str
    path: str
    mode: str
    version: str | None

    @property
    def keys(self) -> Keys:
        """Its place in the file."""
        return ("config", *self.path.split("."))


@dataclass(frozen=True)
class StackFile:
    """A stack's file as it is now, its teams, and the teams to which it grants a stack."""

    stack: str
    path: Path
    text: str = field(repr=False)
    raw: Mapping[str, Any] = field(repr=False)
    teams: Mapping[str, DeclaredTeam]
    is_team_stack: bool

    @property
    def grants(self) -> Mapping[str, Any]:
        """The grants to teams with a stack of their own, by team."""
        return pairs(self.raw.get("teamStacks"))

    def team(self, name: str) -> DeclaredTeam:
        """The team of that name. Raises UserError with the names that there are."""
        if name in self.teams:
            return self.teams[name]
        if name in self.grants:
            raise UserError(
                f"team {name} has a stack of its own; write --stack with that stack's name"
            )
        names = ", ".join(sorted(self.teams)) or "none yet"
        stack = f"; {name} is a stack: write --stack {name}" if name in reading.stacks() else ""
        raise UserError(f"stack {self.stack} has no team {name}; its teams: {names}{stack}")


def stack_file(stack: str) -> StackFile:
    """A stack's file and its teams. Raises UserError where there is no such file."""
    path = reading.path_of(stack)
    raw = reading.read(path)
    own, every = pairs(raw.get("team")), pairs(raw.get("teams"))
    teams, of_all = {}, pairs(raw.get("scheduler"))
    for name, team in [(own.get("name"), own)] if own else every.items():
        key = f"{NAMESPACE}:team" if own else f"{NAMESPACE}:teams.{name}"
        of_team = pairs(get(team, "scheduler"))
        mode = of_team.get("mode") or of_all.get("mode", "virtual")
        same = mode == of_all.get("mode", "virtual")
        version = of_team.get("version", of_all.get("version") if same else None)
        text = version if isinstance(version, str) and mode == "virtual" else None
        teams[str(name)] = DeclaredTeam(str(name), key, str(mode), text)
    return StackFile(stack, path, path.read_bytes().decode(), raw, teams, bool(own))


@dataclass(frozen=True)
class Change:
    """An edit of a stack's file: its text before and after, the team that it is about, what it
    means, and what is so once the update is done. `removes` is the team that goes with it, ""
    where none does.
    """

    file: StackFile
    after: str
    team: str
    sentence: str
    done: str
    removes: str = ""

    def lines(self) -> list[str]:
        """The lines that change, each behind `-` or `+`."""
        old, new = self.file.text.splitlines(), self.after.splitlines()
        diff = [*difflib.unified_diff(old, new, n=0, lineterm="")][2:]
        return [line for line in diff if not line.startswith("@@")]

    def write(self, *, undo: bool = False) -> bool:
        """Write the file, or restore it; False where something else has written it meanwhile."""
        old, new = self.file.text, self.after
        if undo:
            old, new = new, old
        unchanged = self.file.path.read_bytes().decode() == old
        if unchanged:
            put(self.file.path, new)
        return unchanged


def _change(file: StackFile, keys: Keys, value: Any, *words: str) -> Change:
    return Change(file, changed(file.text, keys, value, file.path.name), *words)


def key_values(items: Sequence[str], flag: str, example: str) -> dict[str, str]:
    """`KEY=VALUE` flags as a mapping. Raises UserError."""
    pairs = [item.partition("=") for item in items]
    for key, _, value in pairs:
        if not key or not value:
            raise UserError(f"{flag} {key} is not understood; write {flag} {example}")
    return {key: value for key, _, value in pairs}


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
    team: dict[str, Any] = {"scheduler": {k: flags[k] for k in ("mode", "version") if flags[k]}}
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
    return _change(file, keys, team, name, sentence, f"team {name} is there.")


def _amount(text: str) -> Any:
    """A number of GPUs; what is none stays text, and the rules say what is wrong with it."""
    with suppress(ValueError):
        return json.loads(text)
    return text


def switch(file: StackFile, team: DeclaredTeam, version: str) -> Change:
    """Another KAI version for a team. Raises UserError for one without a KAI of its own."""
    old = written_kai(file, team)
    sentence = f"{team.name}: KAI {old} → {version}; queues and running pods stay"
    if version == old:
        sentence = f"{team.path} has version {version} already: what is left is the update"
    done = f"team {team.name} runs KAI {version}."
    keys = (*team.keys, "scheduler", "version")
    return _change(file, keys, version, team.name, sentence, done)


def written_kai(file: StackFile, team: DeclaredTeam) -> str:
    """The KAI version of a team that has its own. Raises UserError for the others."""
    if team.version is None:
        raise UserError(
            f"team {team.name} is in mode {team.mode}, without a KAI of its own; edit"
            f" {team.path}.scheduler in {file.path.name}, or in mode host kai-fleet:kai.version of"
            " the platform"
        )
    return team.version


def remove(file: StackFile, team: DeclaredTeam) -> Change:
    """A team goes with all that it has. Raises UserError for a team stack."""
    if file.is_team_stack:
        raise UserError(
            f"stack {file.stack} is team {team.name}'s own, and goes as a whole:"
            f" {FLEET} destroy --stack {file.stack}"
        )
    lost = f"namespace team-{team.name} with its volumes, the vCluster, its queues and every pod"
    sentence, done = f"{team.name} goes: {lost}", f"team {team.name} is gone."
    return _change(file, team.keys, GONE, team.name, sentence, done, team.name)


def carry_out(change: Change, *, yes: bool, no_up: bool) -> bool:
    """Carry out a change as far as the flags say; return whether the update was run.

    `yes`: run it without a question; where a team goes its name is asked for. `no_up`: write the
    file only. Raises UserError.
    """
    console, removes, stack = Console(), change.removes, change.file.stack
    sure, name, removed = yes or no_up, change.file.path.name, [removes] if removes else []
    again = update_command(stack)
    if removes:
        command = f"{FLEET} team remove {removes} --stack {stack}"
        terminal.require_answer(command, f"team {removes} and all its pods would be gone", yes=sure)
        again = f"{FLEET} up --stack {stack}{resume.naming(removed)}"
    raw = reading.parse(change.after, name)
    if not is_elsewhere(platform_of(raw)):  # else the program judges it
        facts_of = reading.facts_beside(change.file.path)
        judged = partial(validation.validate, facts_of=facts_of, stack=stack)
        verdict = judged(raw)
        known = judged(reading.parse(change.file.text, name)).problems
        # What the file was warned of before is not about this change.
        new = [problem for problem in verdict.problems if problem not in known]
        as_text.show_problems(verdict.refused or new, console)
        if verdict.refused:
            raise UserError("the rules refuse this; nothing is written")
    for line in change.lines():
        terminal.print_line(console, (f"  {line}", "green" if line.startswith("+") else "red"))
    terminal.result(change.sentence)
    run = yes and not no_up
    if removes and not sure:
        terminal.confirm_name(removes)
        run = True
    elif terminal.asks() and not sure:
        run = Confirm.ask("Run the update now?", default=True)
    if not change.write():
        raise UserError(f"{name} was changed by something else; run the command again")
    if not run:
        unasked = ", and no more: there is no terminal to ask at, and no --yes"
        why = "" if sure or terminal.asks() else unasked
        terminal.result(f"{name} is written{why}. Next:\n  {again}")
        return False
    try:
        environment = for_stack(stack, validated=False)  # the edit was judged already
        runs.up(runs.stack(stack, environment.variables), removed=removed)
    except UserError as why:
        if not getattr(why, "began", False) and change.write(undo=True):
            raise UserError(f"{why}. Nothing was changed, and {name} is as it was") from None
        failed = getattr(why, "teams", ())
        if failed and change.team not in failed:
            terminal.result(f"Done: {change.done}")
        repair, same, _ = str(why).partition("run the same command again")
        then = f"{repair}run: {again}" if same else str(why)
        if not same and resume.up(stack, removed) not in then:
            then += f". Go on with: {again}"
        raise UserError(f"{then}. {name} keeps the edit") from None
    terminal.result(f"Done: {change.done}")
    return True
