"""Run the Pulumi engine: the CLI as a person runs it, through the Automation API.

Pulumi's own output is shown as it comes. Engine, state and locks are Pulumi's.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pulumi import automation
from rich.console import Console

from kai_fleet.wording import listed
from kai_fleet_cli.display.terminal import engine_line
from kai_fleet_cli.engine import refreshing
from kai_fleet_cli.engine.program import program
from kai_fleet_cli.engine.report import UNTOUCHED, Report
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import failures, held_up, resume, state
from kai_fleet_cli.recovery.resume import Signals, graceful_shutdown
from kai_fleet_cli.stack_file.reading import ROOT
from kai_fleet_policies import policy_pack_program
from kai_fleet_policies.validation import REMOVE_VARIABLE

POLICY_PACK: Final = str(policy_pack_program())


class EngineError(UserError):
    """An update or a preview that did not end well; the engine's own output says why.

    `began`: it had begun to change something.
    """

    def __init__(self, message: str, *, began: bool = True) -> None:
        super().__init__(message)
        self.began = began


@dataclass(frozen=True)
class Outcome:
    """What a run did: `changes` counts resources by what happened to them, `steps` has each."""

    changes: Mapping[str, int]
    outputs: Mapping[str, Any] = field(default_factory=dict, repr=False)
    steps: Sequence[Any] = field(default=(), repr=False)

    @property
    def unchanged(self) -> bool:
        """Whether everything was already as declared."""
        return not any(count for what, count in self.changes.items() if what not in UNTOUCHED)


class Workspace(automation.LocalWorkspace):
    """Its updates end without two more starts of the CLI: the last event has the stack's outputs,
    secrets masked.
    """

    def stack_outputs(self, stack_name: str) -> automation.OutputMap:
        """None."""
        return {}


def stack(name: str, environment: Mapping[str, str], directory: Path = ROOT) -> automation.Stack:
    """The stack of that name, created on first use; `directory` holds its file. Raises EngineError.

    `environment` goes over this process's own for the engine, its plugins and the program.
    """
    with _set(environment):  # the API looks for the CLI on this process's PATH
        workspace = Workspace(work_dir=str(directory), env_vars=dict(environment), program=program)
    try:
        try:
            return automation.Stack.create_or_select(name, workspace)
        except automation.errors.CommandError as why:
            if "already exists" not in str(why):
                raise
            return automation.Stack.select(name, workspace)  # another command made it meanwhile
    except automation.errors.CommandError as why:
        explained = failures.explain(f"opening stack {name}", name, why, environment)
        raise EngineError(explained, began=False) from None


def up(stack: automation.Stack, *, refresh: bool = False, removed: Sequence[str] = ()) -> Outcome:
    """Make the cluster as declared, with the policy pack in front. Raises EngineError, Interrupted.

    `refresh`: first have the state say what is there. `removed`: teams that may go.

    Where a team's own cluster stops it, the others' updates go on by a run without that team. The
    engine's own way, --continue-on-error, may wait for ever: where something is to be deleted
    before it is replaced, and that fails (`DeleteStep.Fail`, v3.274).
    """
    what, held, failed = "the update", dict[str, dict[str, str]](), dict[str, Any]()
    if removed:
        named = {REMOVE_VARIABLE: ",".join(removed)}
        stack.workspace.env_vars = {**stack.workspace.env_vars, **named}
    with graceful_shutdown() as signals:
        _prepare(what, stack, signals, refresh=refresh)
        while True:
            report = Report()
            try:
                with _set(stack.workspace.env_vars):
                    done = stack.up(
                        exclude=held_up.without(held) or None,
                        exclude_dependents=True if held else None,
                        suppress_outputs=True,  # the table that follows says it better
                        show_secrets=False,
                        **_options(signals, report),
                        **_rules(stack),
                    )
                break
            except automation.errors.CommandError as why:
                signals.check()
                more = _failed_teams(stack, why, report)
                if more.keys() <= held.keys():
                    raise _error(what, stack, why, report) from None
                held |= more
                failed |= report.failed
        if held:
            raise EngineError(_of_teams(f"{what} is done, but for", stack, held, failed))
        return Outcome(_counted(done.summary.resource_changes), report.outputs, report.steps)


def preview(stack: automation.Stack, *, details: bool = False) -> Outcome:
    """Show what an update would do, with the policy pack in front. Raises EngineError.

    `details`: every property, old and new.
    """
    report = Report()
    with graceful_shutdown() as signals, _set(stack.workspace.env_vars):
        with _explained("the preview", stack, signals, report):
            done = stack.preview(diff=details, **_options(signals, report), **_rules(stack))
        return Outcome(_counted(done.change_summary), steps=report.steps)


def destroy(stack: automation.Stack, *, remove: bool = False, refresh: bool = False) -> Outcome:
    """Remove everything that the stack made. Raises EngineError, Interrupted.

    `remove`: then the stack itself as well, with its history and its file. `refresh`: first have
    the state say what is there.
    """
    report, what = Report(), "the removal"
    with graceful_shutdown() as signals:
        _prepare(what, stack, signals, refresh=refresh)
        with _explained(what, stack, signals, report):
            done = stack.destroy(
                remove=remove,
                show_secrets=False,
                continue_on_error=True,
                **_options(signals, report),
            )
        return Outcome(_counted(done.summary.resource_changes))


def _prepare(what: str, stack: automation.Stack, signals: Signals, *, refresh: bool) -> None:
    """Refresh the state; else refuse to go on after a run that was cut off. Raises EngineError."""
    with _explained(what, stack, signals, Report()):
        if refresh:
            refreshing.refresh(stack, signals, lambda report: _options(signals, report))
        elif pending := state.exported(stack).pending():
            again = resume.destroy if what == "the removal" else resume.up
            raise EngineError(
                f"the last run ended in the middle of: {listed(pending, 'and')}. Repair it with:"
                f" {again(stack.name)}",
                began=False,
            )
    signals.check()


def _options(signals: Signals, report: Report) -> dict[str, Any]:
    """The options of every run: its output is shown, in colours where there is a terminal."""

    def show(line: str) -> None:
        signals.hear(line)
        engine_line(line)

    color = "always" if Console().is_terminal else "never"
    return {"on_event": report.hear, "on_output": show, "color": color, "suppress_progress": True}


def _rules(stack: automation.Stack) -> dict[str, Any]:
    """The policy pack, with a stack's own settings of it: `rules.<stack>.json` beside its file."""
    file = Path(stack.workspace.work_dir) / f"rules.{stack.name}.json"
    config = [str(file)] if file.is_file() else None
    return {"policy_packs": [POLICY_PACK], "policy_pack_configs": config}


def _failed_teams(
    stack: automation.Stack, why: automation.errors.CommandError, report: Report
) -> dict[str, dict[str, str]]:
    """The errors of each team by URN, where nothing else failed; else none."""
    if not report.errors or "code: -" in str(why):  # the engine was killed
        return {}
    parents = {**state.exported(stack).parents(), **report.parents}
    return held_up.by_team(report.own_errors(), parents)


def _error(
    what: str, stack: automation.Stack, why: automation.errors.CommandError, report: Report
) -> EngineError:
    """The error of a run: what failed, why, and what repairs it."""
    if teams := _failed_teams(stack, why, report):
        message = _of_teams(f"{what} failed for", stack, teams, report.failed)
    else:
        message = failures.explain(what, stack.name, why, stack.workspace.env_vars)
    return EngineError(message, began=bool(report.steps))


def _of_teams(
    lead: str,
    stack: automation.Stack,
    teams: Mapping[str, Mapping[str, str]],
    failed: Mapping[str, Mapping[str, Any]],
) -> str:
    host = stack.workspace.env_vars.get("KUBECONFIG")  # for a provider that names none
    return held_up.explain(lead, stack.name, teams, state.read(stack, failed), host)


@contextmanager
def _explained(
    what: str, stack: automation.Stack, signals: Signals, report: Report
) -> Iterator[None]:
    """Raise EngineError for a failure of the CLI, or Interrupted where a signal ended it."""
    try:
        yield
    except automation.errors.CommandError as why:
        signals.check()
        raise _error(what, stack, why, report) from None


@contextmanager
def _set(variables: Mapping[str, str]) -> Iterator[None]:
    """Have the variables in this process, while a stack's program runs in it: Pulumi's generated
    SDK takes KUBECONFIG from nowhere else.
    """
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _counted(changes: Mapping[Any, int] | None) -> dict[str, int]:
    return {str(getattr(what, "value", what)): n for what, n in (changes or {}).items()}
