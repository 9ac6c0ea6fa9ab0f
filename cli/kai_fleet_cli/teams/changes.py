"""The edit of each team command: judged by the rules, shown, written, and the update after it."""

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.prompt import Confirm

from kai_fleet.names import FLEET
from kai_fleet.values import get, pairs
from kai_fleet_cli.display import as_text, terminal
from kai_fleet_cli.engine import runs, workspace
from kai_fleet_cli.engine.environment import for_stack, is_elsewhere
from kai_fleet_cli.engine.errors import EngineError
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import resume
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.edit import GONE, Keys, with_value, write_atomically
from kai_fleet_policies.finding import report as finding_report
from kai_fleet_policies.key_paths import NAMESPACE
from kai_fleet_stack import validation
from kai_fleet_stack.project import update_command
from kai_fleet_stack.settings.team_stack import platform_of

_DEFAULT_MODE = "virtual"


@dataclass(frozen=True)
class DeclaredTeam:
    """A team as a stack file has it.

    Attributes:
        name: The team.
        path: Its key, as messages name it: `kai-fleet:teams.ml`, or `kai-fleet:team`.
        mode: The mode of its scheduler.
        version: The version of its own KAI; None in another mode than virtual, or if neither the
            team nor the stack's defaults name one.
    """

    name: str
    path: str
    mode: str
    version: str | None

    @property
    def keys(self) -> Keys:
        """The keys that lead to the team in the file."""
        return ("config", *self.path.split("."))


@dataclass(frozen=True)
class StackFile:
    """A stack's file as it is now.

    Attributes:
        stack: The stack.
        path: The file.
        text: Its text.
        raw: Its `kai-fleet:` keys, with `[secret]` for an encrypted value.
        teams: The teams by name.
        is_team_stack: The stack is one team's own: the file has `team`.
    """

    stack: str
    path: Path
    text: str = field(repr=False)
    raw: Mapping[str, object] = field(repr=False)
    teams: Mapping[str, DeclaredTeam]
    is_team_stack: bool

    @property
    def grants(self) -> Mapping[str, object]:
        """The grants to teams with a stack of their own, by team."""
        return pairs(self.raw.get("teamStacks"))

    def team(self, name: str) -> DeclaredTeam:
        """The team of that name.

        Raises UserError if the file has none: it says whether the team has a stack of its own, else
        it names the teams that there are.
        """
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
    """Read a stack's file and its teams.

    Raises:
        UserError: The name is no stack's; the file is missing or cannot be read; or
            `reading.parse` refuses it.
    """
    path = reading.path_of(stack)
    raw = reading.read(path)
    defaults = pairs(raw.get("scheduler"))
    own_team = pairs(raw.get("team"))
    teams: dict[str, DeclaredTeam] = {}
    for key, values in pairs(raw.get("teams")).items():
        name = str(key)
        teams[name] = _declared_team(name, f"{NAMESPACE}:teams.{name}", values, defaults)
    if own_team:
        name = str(own_team.get("name"))
        teams = {name: _declared_team(name, f"{NAMESPACE}:team", own_team, defaults)}
    return StackFile(
        stack,
        path,
        text=path.read_bytes().decode(),
        raw=raw,
        teams=teams,
        is_team_stack=bool(own_team),
    )


def _declared_team(
    name: str, path: str, values: object, defaults: Mapping[str, object]
) -> DeclaredTeam:
    """A team of a stack file, whose scheduler takes what it leaves out from `defaults`.

    `values` are the team's keys, `defaults` those of the stack's `scheduler`. It takes the version
    only if its mode is that of the defaults, by default virtual.
    """
    scheduler = pairs(get(values, "scheduler"))
    default_mode = defaults.get("mode", _DEFAULT_MODE)
    mode = scheduler.get("mode") or default_mode
    default_version = defaults.get("version") if mode == default_mode else None
    version = scheduler.get("version", default_version)
    has_kai = isinstance(version, str) and mode == "virtual"
    return DeclaredTeam(name, path, str(mode), version if has_kai else None)


@dataclass(frozen=True)
class Change:
    """An edit of a stack's file.

    Attributes:
        file: The file before.
        after: Its text after.
        team: The team that changes.
        sentence: What the edit means.
        done: What is true after the update.
        removed: The team, if it is removed; else empty.
    """

    file: StackFile
    after: str
    team: str
    sentence: str
    done: str
    removed: Sequence[str] = ()

    def lines(self) -> list[str]:
        """The lines that change, each behind `-` or `+`."""
        before = self.file.text.splitlines()
        after = self.after.splitlines()
        diff = list(difflib.unified_diff(before, after, n=0, lineterm=""))
        return [line for line in diff[2:] if not line.startswith("@@")]

    def write(self) -> bool:
        """Write the file. False, and nothing is written, if something else changed or deleted it.

        Raises UserError if it cannot be written.
        """
        return self._replace(self.file.text, self.after)

    def undo(self) -> bool:
        """Restore the file as it was before `write`, which returns and raises the same."""
        return self._replace(self.after, self.file.text)

    def _replace(self, expected: str, text: str) -> bool:
        """Write a text if the file has the expected one; return and raise as `write`."""
        path = self.file.path
        if not path.is_file() or path.read_bytes() != expected.encode():
            return False
        write_atomically(path, text.encode())
        return True


def _edited(file: StackFile, keys: Keys, value: object) -> str:
    """The file's text with a value at `keys`.

    Raises UserError if YAML anchors prevent that; or, with the findings of `fleet plan`, if a key
    above it has a value that is no mapping. To remove a key that is not there raises KeyError.
    """
    try:
        return with_value(file.text, keys, value, file.path.name)
    except AttributeError:
        verdict = reading.verdict_of_keys(file.raw, file.path, file.stack)
        raise UserError(finding_report(verdict.refused)) from None


def key_values(flags: Sequence[str], name: str, example: str) -> dict[str, str]:
    """`KEY=VALUE` flags as a mapping. Of a key that is written twice the last value counts.

    Args:
        flags: What was written behind each flag.
        name: The flag, for messages.
        example: A value that it takes, for messages.

    Raises:
        UserError: A key or a value is missing.
    """
    values: dict[str, str] = {}
    for flag in flags:
        key, _, value = flag.partition("=")
        if not key or not value:
            raise UserError(f"{name} {key} is not understood; write {name} {example}")
        values[key] = value
    return values


def add(
    file: StackFile,
    name: str,
    *,
    mode: str,
    version: str,
    pool: Mapping[str, str],
    gpus: int,
    queues: Mapping[str, str],
) -> Change:
    """Add a team to a platform. The rules judge these values, not this function.

    `version` is "" for none, `pool` the labels of the team's nodes, `gpus` a number of whole GPUs.
    `queues` has leaf queues with their GPUs in mode virtual, and the leaf that the team gets in
    mode host, with "". The rules refuse them in another mode.

    Raises:
        UserError: The team exists, here or with a stack of its own; the stack is a team's; or as
            `_edited`.
    """
    if name in file.teams or name in file.grants:
        raise UserError(
            f"stack {file.stack} has a team {name} already, in {file.path.name}; write another"
            f" name, or make what is written: {update_command(file.stack)}"
        )
    if file.is_team_stack:
        raise UserError(f"stack {file.stack} is one team's own; write --stack with its platform's")
    scheduler = {"mode": mode, "version": version}
    team: dict[str, object] = {
        "scheduler": {key: value for key, value in scheduler.items() if value}
    }
    if pool:
        team["nodePool"] = pool
    team["gpus"] = gpus
    if mode == "host":
        team["queue"] = ", ".join(queues)  # the rules refuse more than one
    elif queues or mode == "virtual":
        team["queues"] = _queue_tree(name, gpus, queues)
    return Change(
        file,
        after=_edited(file, ("config", f"{NAMESPACE}:teams", name), team),
        team=name,
        sentence=f"{name}: a new team in mode {mode}, with its own vCluster",
        done=f"team {name} is there.",
    )


def _queue_tree(name: str, gpus: int, queues: Mapping[str, str]) -> dict[str, object]:
    """One queue with all GPUs, and the leaves below it: each version of KAI schedules two levels.

    `queues` are the leaves with their GPUs as texts. Without leaves the team gets one of its own
    name, with all of `gpus`. The queue above is the first of `default`, NAME, NAME-all and so on
    that is no leaf.
    """
    leaves = queues or {name: str(gpus)}
    children = {leaf: {"gpu": _number_or_text(share)} for leaf, share in leaves.items()}
    top = name if "default" in leaves else "default"
    while top in leaves:
        top = f"{top}-all"
    return {top: {"gpu": gpus, "children": children}}


def _number_or_text(text: str) -> object:
    """The JSON value in a text, such as a number; the text itself if it is no JSON. The rules
    refuse what is no amount.
    """
    try:
        return json.loads(text)
    except ValueError:
        return text


def switch(file: StackFile, team: DeclaredTeam, version: str) -> Change:
    """Give a team another version of KAI, of whatever form: the rules judge it, not this function.

    Raises UserError if the team has no KAI of its own, or as `_edited`.
    """
    before = own_kai_version(file, team)
    sentence = f"{team.name}: KAI {before} → {version}; queues and running pods stay"
    if version == before:
        sentence = f"{team.path} has version {version} already: what is left is the update"
    return Change(
        file,
        after=_edited(file, (*team.keys, "scheduler", "version"), version),
        team=team.name,
        sentence=sentence,
        done=f"team {team.name} runs KAI {version}.",
    )


def own_kai_version(file: StackFile, team: DeclaredTeam) -> str:
    """The version of a team's own KAI. Raises UserError if the team has none."""
    if team.version is None:
        raise UserError(
            f"team {team.name} is in mode {team.mode}, without a KAI of its own; edit"
            f" {team.path}.scheduler in {file.path.name}, or in mode host kai-fleet:kai.version of"
            " the platform"
        )
    return team.version


def remove(file: StackFile, team: DeclaredTeam) -> Change:
    """Remove a team with everything in it.

    Raises UserError if the stack is the team's own, or as `_edited`; KeyError for a team whose name
    has a dot.
    """
    if file.is_team_stack:
        raise UserError(
            f"stack {file.stack} is team {team.name}'s own, and goes as a whole:"
            f" {FLEET} destroy --stack {file.stack}"
        )
    lost = f"namespace team-{team.name} with its volumes, the vCluster, its queues and every pod"
    backup = f"{FLEET} team backup {team.name} --to {team.name}.backup --stack {file.stack}"
    return Change(
        file,
        after=_edited(file, team.keys, GONE),
        team=team.name,
        sentence=f"{team.name} goes: {lost}. To keep what is in its vCluster, first: {backup}",
        done=f"team {team.name} is gone.",
        removed=[team.name],
    )


def carry_out(change: Change, *, yes: bool, no_up: bool) -> bool:
    """Judge, show and write a change, and run the update; return whether the update was run.

    Args:
        change: The change.
        yes: Run the update without a question. Else a terminal is asked: for the name of a team
            that is removed, which also runs the update, or whether to run it. Without a terminal
            the file is written, and the command that runs the update is printed.
        no_up: Write the file without a question and without an update, also with `yes`.

    Raises:
        UserError: There is nobody to ask about a removal, or the answer is no; the rules refuse the
            change; something else changed or deleted the file, or it cannot be written; or the
            update failed. If its last run began nothing, the file is as it was.
        EOFError: stdin ends at a question.
        Interrupted: A signal ended the update. The file keeps the edit.
    """
    is_agreed = yes or no_up
    name = change.file.path.name
    if change.removed:
        command = f"{FLEET} team remove {change.team} --stack {change.file.stack}"
        loss = f"team {change.team} and all its pods would be gone"
        terminal.require_answer(command, loss, yes=is_agreed)
    _judge(change)
    _show(change)
    runs_update = _ask(change, yes=yes, no_up=no_up)
    if not change.write():
        raise UserError(f"{name} was changed or deleted by something else; run the command again")
    if not runs_update:
        reason = ""
        if not is_agreed and not terminal.can_ask():
            reason = ", and no more: there is no terminal to ask at, and no --yes"
        terminal.result(f"{name} is written{reason}. Next:\n  {_update_command(change)}")
        return False
    _update(change)
    terminal.result(f"Done: {change.done}")
    return True


def _judge(change: Change) -> None:
    """Print on stdout what the rules say of a change: refusals, else the warnings that are new.

    A team stack whose platform's file is missing here is judged by the program instead. Raises
    UserError if the rules or `reading.parse` refuse the file as it will be, or if its platform is
    no stack's name.
    """
    raw = reading.parse(change.after, change.file.path.name)
    if is_elsewhere(platform_of(raw)):
        return
    facts_of = reading.facts_beside(change.file.path)
    stack = change.file.stack
    verdict = validation.validate(raw, facts_of=facts_of, stack=stack)
    if verdict.refused:
        as_text.show_problems(verdict.refused)
        raise UserError("the rules refuse this; nothing is written")
    before = validation.validate(change.file.raw, facts_of=facts_of, stack=stack).problems
    new = [problem for problem in verdict.problems if problem not in before]
    as_text.show_problems(new)


def _show(change: Change) -> None:
    """Print on stdout the lines that change, and what that means."""
    for line in change.lines():
        colour = "green" if line.startswith("+") else "red"
        terminal.result((f"  {line}", colour))
    terminal.result(change.sentence)


def _ask(change: Change, *, yes: bool, no_up: bool) -> bool:
    """Whether to run the update: as the flags say, `no_up` before `yes`, else as a person answers.

    Without a terminal it is not run. Raises UserError if the name of a removed team is not typed,
    EOFError at the end of stdin.
    """
    if yes or no_up:
        return not no_up
    if change.removed:
        terminal.confirm_name(change.team)
        return True
    return terminal.can_ask() and Confirm.ask("Run the update now?", default=True)


def _update_command(change: Change) -> str:
    """The command that runs the update of a change, and agrees to a removal."""
    stack = change.file.stack
    if change.removed:
        return f"{FLEET} up --stack {stack}{resume.yes_flag(change.removed)}"
    return update_command(stack)


def _update(change: Change) -> None:
    """Run the update of a change that is written.

    If it fails, and no run of the engine began anything, restore the file, unless something else
    changed the file meanwhile. If it fails for other teams only, print that the change is
    done.

    Raises:
        UserError: The update failed. The message says what became of the file, or which command
            goes on. Or the file cannot be restored.
        Interrupted: A signal ended the update. The file keeps the edit.
    """
    stack = change.file.stack
    try:
        environment = for_stack(stack, validated=False)  # the edit was judged already
        opened = workspace.open_stack(stack, environment.variables)
        runs.up(opened, removed=change.removed)
    except UserError as error:
        began = isinstance(error, EngineError) and error.began
        name = change.file.path.name
        if not began:
            is_restored = change.undo()
            file = "is as it was" if is_restored else "was changed or deleted by something else"
            raise UserError(f"{error}. Nothing was changed, and {name} {file}") from None
        failed_teams = error.teams if isinstance(error, EngineError) else ()
        if failed_teams and change.team not in failed_teams:
            terminal.result(f"Done: {change.done}")
        raise UserError(f"{_way_on(change, str(error))}. {name} keeps the edit") from None


def _way_on(change: Change, message: str) -> str:
    """A failed update's message with the command that goes on after the edit.

    The same command would edit again, so the message names the update in its place. A message with
    the command that refreshes and goes on is returned as it is.
    """
    repair, same_command, _ = message.partition("run the same command again")
    if same_command:
        return f"{repair}run: {_update_command(change)}"
    if resume.up_command(change.file.stack, change.removed) in message:
        return message
    return f"{message}. Go on with: {_update_command(change)}"
