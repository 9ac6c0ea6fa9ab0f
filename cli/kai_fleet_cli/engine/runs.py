"""Run the Pulumi engine: the CLI as a person runs it, through the Automation API.

Pulumi's own output is shown, repeated lines once. Engine, state and locks are Pulumi's.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CoroutineType
from typing import Any, Final

from pulumi import automation
from rich.console import Console

from kai_fleet.wording import listed
from kai_fleet_cli.display.terminal import engine_line
from kai_fleet_cli.engine import refreshing
from kai_fleet_cli.engine.program import program
from kai_fleet_cli.engine.report import Report
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import failures, held_up, resume, state
from kai_fleet_cli.stack_file.reading import ROOT
from kai_fleet_policies import policy_pack_program
from kai_fleet_policies.validation import REMOVE_VARIABLE

POLICY_PACK: Final = str(policy_pack_program())
_REPEATED: Final = re.compile(r" \((\d+m)?[\d.]+s\)| using pulumi-resource-| resource plugin ")


class EngineError(UserError):
    """An update or a preview that did not end well; the engine's own output says why.

    `began`: it had begun to change something.
    """

    def __init__(self, message: str, *, began: bool = True) -> None:
        super().__init__(message)
        self.began = began


class Workspace(automation.LocalWorkspace):
    """A workspace that reads no outputs after an update: the CLI would start twice more, and the
    last event has them, secrets masked.
    """

    def stack_outputs(self, stack_name: str) -> automation.OutputMap:
        """Return none, whatever the stack: the SDK calls this after an update."""
        return {}


def stack(name: str, environment: Mapping[str, str], directory: Path = ROOT) -> automation.Stack:
    """The stack of that name, created on first use; `directory` holds its file. Raises EngineError.

    `environment` goes over this process's own for the engine, its plugins and the program.
    """
    with _set(environment):  # the API looks for the CLI on this process's PATH
        workspace = Workspace(work_dir=str(directory), env_vars=dict(environment), program=program)
    try:
        return automation.Stack.create_or_select(name, workspace)
    except automation.errors.CommandError as why:
        what = f"opening stack {name}"
        explained = failures.explain(what, name, why, environment, resume.up(name))
        raise EngineError(explained, began=False) from None


def up(stack: automation.Stack, *, refresh: bool = False, removed: Sequence[str] = ()) -> Report:
    """Make the cluster as declared, with the policy pack in front. Raises EngineError, Interrupted.

    `refresh`: refresh the state first. `removed`: teams that may be removed.

    Where a team's own cluster stops it, the others' updates go on by a run without that team. The
    engine's own way, --continue-on-error, may wait for ever: where something is to be deleted
    before it is replaced, and that fails (`DeleteStep.Fail`, v3.274).
    """
    held, failed = dict[str, dict[str, str]](), dict[str, Mapping[str, Any]]()
    if removed:
        named = {REMOVE_VARIABLE: ",".join(removed)}
        stack.workspace.env_vars = {**stack.workspace.env_vars, **named}
    with _running("the update", stack, resume.up(stack.name, removed)) as run:
        run.prepare(refresh=refresh)
        while True:
            run.report = Report()
            try:
                with _set(stack.workspace.env_vars), _left_out(held):
                    stack.up(
                        exclude=held_up.without(held) or None,
                        exclude_dependents=True if held else None,
                        suppress_outputs=True,  # the table that follows says it better
                        show_secrets=False,
                        **run.options(run.report),
                        **_rules(stack),
                    )
                break
            except automation.errors.CommandError as why:
                run.signals.check()
                more = run.failed_teams(why)
                if more.keys() <= held.keys():
                    raise
                held |= more
                failed |= run.report.failed
                sys.unraisablehook = _print_unraisable
        if held:
            raise EngineError(run.explain("is done, but for", held, failed))
        return run.report


def preview(stack: automation.Stack, *, details: bool = False) -> Report:
    """Show what an update would do, with the policy pack in front. Raises EngineError.

    `details`: every property, old and new.
    """
    with (
        _running("the preview", stack, resume.up(stack.name)) as run,
        _set(stack.workspace.env_vars),
    ):
        stack.preview(diff=details, **run.options(run.report), **_rules(stack))
        return run.report


def destroy(stack: automation.Stack, *, refresh: bool = False) -> None:
    """Remove everything that the stack made. Raises EngineError, Interrupted.

    `refresh`: refresh the state first.
    """
    with _running("the removal", stack, resume.destroy(stack.name)) as run:
        run.prepare(refresh=refresh)
        stack.destroy(show_secrets=False, continue_on_error=True, **run.options(run.report))


@dataclass
class _Run:
    """An operation of a stack: what it is called in messages, and the command that goes on."""

    what: str
    stack: automation.Stack
    again: str
    signals: resume.Signals
    report: Report = field(default_factory=Report)

    def prepare(self, *, refresh: bool) -> None:
        """Refresh the state; else refuse to go on after a run that was cut off."""
        if refresh:
            refreshing.refresh(self.stack, self.signals, self.options)
        elif pending := state.exported(self.stack).pending:
            kinds = [
                f"{resource['type'].rpartition(':')[2]} {resource['urn'].rpartition('::')[2]}"
                f" ({operation})"
                for operation, resource in pending
            ]
            left = f"the last run ended in the middle of: {listed(kinds, 'and')}"
            raise EngineError(f"{left}. Repair it with: {self.again}", began=False)
        self.signals.check()

    def options(self, report: Report) -> dict[str, Any]:
        """Show the output, each step and each warning about a plugin once; report the events."""
        shown = set[str]()

        def show(line: str) -> None:
            self.signals.note(line)
            step = _REPEATED.sub("", line)
            if step == line or step not in shown:
                engine_line(line)
            shown.add(step)

        return {
            "on_event": report.note,
            "on_output": show,
            "color": "always" if Console().is_terminal else "never",
            "suppress_progress": True,
        }

    def failed_teams(self, why: automation.errors.CommandError) -> dict[str, dict[str, str]]:
        """The errors of each team by URN, where nothing else failed; else none."""
        if not self.report.errors or "code: -" in str(why):  # the engine was killed
            return {}
        parents = {**state.exported(self.stack).parents(), **self.report.parents}
        return held_up.by_team(self.report.own_errors(), parents)

    def explain(
        self,
        verb: str,
        teams: Mapping[str, Mapping[str, str]],
        failed: Mapping[str, Mapping[str, Any]],
    ) -> str:
        """Explain the failures in these teams' clusters, with the commands that repair them."""
        known = state.exported(self.stack, failed)
        kubeconfig = partial(state.kubeconfig, self.stack)
        explanation = held_up.Explanation(self.stack.name, known, self.again, kubeconfig)
        return explanation.text(f"{self.what} {verb}", teams)


@contextmanager
def _running(what: str, stack: automation.Stack, again: str) -> Iterator[_Run]:
    """Raise EngineError for a failure of the CLI, and Interrupted where a signal ended it."""
    with resume.graceful_shutdown() as signals:
        run = _Run(what, stack, again, signals)
        try:
            yield run
        except automation.errors.CommandError as why:
            signals.check()
            if teams := run.failed_teams(why):
                message = run.explain("failed for", teams, run.report.failed)
            else:
                environment = stack.workspace.env_vars
                message = failures.explain(what, stack.name, why, environment, again)
            raise EngineError(message, began=run.report.began) from None


def _rules(stack: automation.Stack) -> dict[str, Any]:
    """The policy pack, with a stack's own settings of it: `rules.<stack>.json` beside its file."""
    file = Path(stack.workspace.work_dir) / f"rules.{stack.name}.json"
    config = [str(file)] if file.is_file() else None
    return {"policy_packs": [POLICY_PACK], "policy_pack_configs": config}


@contextmanager
def _set(variables: Mapping[str, str]) -> Iterator[None]:
    """Set the variables in this process while a stack's program runs in it: Pulumi's generated
    SDK takes KUBECONFIG from nowhere else.
    """
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _left_out(teams: Iterable[str]) -> Iterator[None]:
    """Have the program leave out these teams: in spite of --exclude, the engine would create a new
    team's provider, and write a state that it cannot read.
    """
    from kai_fleet.program import LEFT_OUT

    LEFT_OUT.update(teams)
    try:
        yield
    finally:
        LEFT_OUT.clear()


def _print_unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
    """Print what Python prints of errors in garbage collection, but for coroutines of a program
    that the engine aborted: their event loop is closed.
    """
    if not isinstance(unraisable.object, CoroutineType):
        sys.__unraisablehook__(unraisable)
