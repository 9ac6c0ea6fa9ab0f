"""Running the Pulumi engine: the same way for every stack, through the Automation API.

A command runs the CLI as a person would, with the checkout's program in this process: the program
takes as an argument which teams a command is about, and no environment variable of a later run can
leave teams out. Plain `pulumi up` runs the same program, by the CLI's Python host.
"""

import os
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CoroutineType
from typing import Any, Final

from pulumi import automation
from rich.console import Console

from kai_fleet.fleet.deployed_state import STACK
from kai_fleet.provider.values import SECRET_MARK
from kai_fleet_cli.display.events import UNTOUCHED, Narration
from kai_fleet_cli.display.preview import PreviewLines
from kai_fleet_cli.display.terminal import Say, passing_line
from kai_fleet_cli.engine import targeting
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import failures, held_up, reconcile, state
from kai_fleet_cli.recovery.resume import Signals, graceful_shutdown
from kai_fleet_cli.stack_file.reading import ROOT
from kai_fleet_policies import policy_pack_program

POLICY_PACK: Final = str(policy_pack_program())


class EngineError(UserError):
    """An update or a preview that did not end well; the engine's own output said why.

    `began`: it had begun to change something.
    """

    def __init__(self, message: str, *, began: bool = True) -> None:
        super().__init__(message)
        self.began = began


@dataclass(frozen=True)
class Outcome:
    """What a run did: `changes` counts resources by what happened to them."""

    changes: Mapping[str, int]
    outputs: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def unchanged(self) -> bool:
        """Whether everything was already as declared."""
        return not any(n for what, n in self.changes.items() if what not in UNTOUCHED)


class Workspace(automation.LocalWorkspace):
    """Its updates end without a look at the stack's outputs: the last event has them, secrets
    masked. The Automation API reads them in clear, by one more start of the CLI.
    """

    def stack_outputs(self, stack_name: str) -> automation.OutputMap:
        """None."""
        return {}


def stack(name: str, environment: Mapping[str, str], directory: Path = ROOT) -> automation.Stack:
    """The stack of that name, created on first use; `directory` holds its file. Raises EngineError.

    `environment` goes over this process's own for the engine, its plugins and, while it runs, the
    program.
    """
    with _set(environment):  # the API looks for the CLI on this process's PATH
        workspace = Workspace(
            work_dir=str(directory), env_vars=dict(environment), program=targeting.program
        )
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


def state_of(stack: automation.Stack, what: str) -> state.ExportedState:
    """The stack's state, secrets in clear, before `what` begins. Raises EngineError."""
    with _before_it_begins(what, stack):
        return state.read(stack)


def up(
    stack: automation.Stack,
    show: Say,
    *,
    teams: Collection[str] | None = None,
    grants: bool = False,
    removes: bool = False,
    refresh: bool = False,
) -> Outcome:
    """Make the cluster as declared, with the policy pack in front.

    `refresh`: look first at what is really there, and mend what an interrupted run left.
    `teams`: only these; everything else in the stack stays as it is. `grants`: with what they were
    granted for stacks of their own. `removes`: one of them goes. Raises EngineError.

    Where the whole stack is updated and a team's own cluster stops it, the others' updates go on by
    a run without that team. The engine's own way, --continue-on-error, may wait for ever: where
    something is to be deleted before it is replaced, and that fails (`DeleteStep.Fail`, v3.274).
    """
    told = _narration(stack, show)
    held: dict[str, dict[str, str]] = {}

    def once(known: state.ExportedState) -> Outcome:
        only = targeting.without(held, known.resources) if held else None
        if teams is not None:
            only = targeting.of_teams(teams, known.resources, grants=grants, removes=removes)
        if teams is not None and only is not None:
            show(only.told(stack.name))
        show(f"Updating ({stack.name}{f', {only.message}' if held and only else ''})")
        targeting.load()
        outputs: dict[str, Any] = {}

        def hear(event: automation.EngineEvent) -> None:
            told.hear(event)
            outputs.update(_outputs_in(event))

        with _set(stack.workspace.env_vars):
            done = stack.up(
                program=partial(targeting.program, only.targets if only else None),
                on_output=told.keep,
                on_event=hear,
                policy_packs=[POLICY_PACK],
                policy_pack_configs=_pack_config(stack),
                color=_color(),
                suppress_outputs=True,  # the table that follows says it better
                target=list(only.urns) if only and not only.others else None,
                target_dependents=True if only and not only.others else None,
                exclude=list(only.others) if only and only.others else None,
                message=only.message if only else None,
                show_secrets=False,
            )
        return Outcome(_counted(done.summary.resource_changes), outputs)

    with _guarded("the update", stack, told) as signals:
        known = reconcile.before(stack, show, refresh=refresh)
        mended: set[str] = set()
        while True:  # what waits for the mended things may stand in the way as well
            told.failed_steps.clear()
            signals.check()
            told.errors.clear()
            try:
                outcome = once(known)
                break
            except automation.errors.CommandError as why:
                signals.check()
                more = {} if teams is not None else _of_teams(stack, told, why)
                failed = {step.urn for step, _ in told.failed_steps}
                try:
                    again = bool(failed - mended) and reconcile.after(
                        stack, told.failed_steps, show, refresh=refresh
                    )
                except UserError as left:
                    more = {team: dict.fromkeys(errors, str(left)) for team, errors in more.items()}
                    if not more:
                        raise
                    again = False
                if again:
                    mended |= failed
                elif more.keys() <= held.keys():
                    raise
                else:
                    held |= more
                known = state.exported(stack)
                sys.unraisablehook = _collected
        if held:
            lead = "the update is done, but for"
            raise EngineError(_explained(lead, stack, held))
        return outcome


def preview(stack: automation.Stack, show: Say, *, details: bool = False) -> Outcome:
    """Say what an update would do, with the policy pack in front. Raises EngineError.

    A line per resource that would change; `details`: the engine's own diff of every property.
    """
    told = _narration(stack, show, steps=False)
    lines = PreviewLines()

    def hear(event: automation.EngineEvent) -> None:
        told.hear(event)
        lines.hear(event)

    targeting.load()
    warnings: list[str] = []  # beside a diff the CLI has them on stderr, somewhere in between
    # The engine's own diff has said what failed.
    with _guarded("the preview", stack, None if details else told), _set(stack.workspace.env_vars):
        try:
            result = stack.preview(
                on_output=show if details else told.keep,
                on_error=warnings.append if details else None,
                on_event=None if details else hear,
                policy_packs=[POLICY_PACK],
                policy_pack_configs=_pack_config(stack),
                color=_color(),
                diff=details,
            )
        except automation.errors.CommandError:
            # What of one team's is wrong says nothing of the others' changes.
            *changes, _ = lines.lines(color=Console().is_terminal)
            for line in changes:
                show(line)
            raise
        outcome = Outcome(_counted(result.change_summary))
        shown = lines.lines(color=Console().is_terminal)
        for line in warnings if details or outcome.unchanged else shown:
            show(line)
        return outcome


def destroy(
    stack: automation.Stack, show: Say, *, remove: bool = False, refresh: bool = False
) -> Outcome:
    """Remove everything that the stack made. Raises EngineError.

    `remove`: then the stack itself as well, with its history and its file. `refresh`: look first
    at what is really there.
    """
    told = _narration(stack, show)

    with _guarded("the removal", stack, told) as signals:
        reconcile.before(stack, show, refresh=refresh, command="destroy")
        signals.check()
        show(f"Destroying ({stack.name})")
        done = stack.destroy(
            on_output=told.keep,
            on_event=told.hear,
            color=_color(),
            remove=remove,
            show_secrets=False,
            continue_on_error=True,
        )
        return Outcome(_counted(done.summary.resource_changes))


def _collected(remains: "sys.UnraisableHookArgs") -> None:
    """Python's own words on what it collects; none on the coroutines of a program that the engine
    left in the middle: their event loop is closed.
    """
    if not isinstance(remains.object, CoroutineType):
        sys.__unraisablehook__(remains)


@contextmanager
def _set(variables: Mapping[str, str]) -> Iterator[None]:
    """Have the variables in this process, while a stack's program runs in it: Pulumi's generated
    SDK takes KUBECONFIG from nowhere else.
    """
    before = {name: os.environ[name] for name in variables if name in os.environ}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


def _narration(stack: automation.Stack, show: Say, *, steps: bool = True) -> Narration:
    home = stack.workspace.env_vars.get("PULUMI_HOME", "")
    passing = passing_line if sys.stdout.isatty() else None
    return Narration(show, color=Console().is_terminal, steps=steps, home=home, passing=passing)


def _color() -> str:
    """Whether the CLI colours what it says: at a terminal, as rich does."""
    return "always" if Console().is_terminal else "never"


def _outputs_in(event: automation.EngineEvent) -> dict[str, Any]:
    """The stack's outputs, without those that hold secrets, where the event is that of its end."""
    ended = event.res_outputs_event
    if ended is None or ended.metadata.type != STACK or ended.metadata.new is None:
        return {}
    outputs = ended.metadata.new.outputs or {}
    return {name: it for name, it in outputs.items() if SECRET_MARK not in str(it)}


def _counted(changes: Mapping[Any, int] | None) -> dict[str, int]:
    return {str(getattr(what, "value", what)): n for what, n in (changes or {}).items()}


def _pack_config(stack: automation.Stack) -> list[str] | None:
    """A stack's own settings of the rules: `rules.<stack>.json` beside its file, if any."""
    file = Path(stack.workspace.work_dir) / f"rules.{stack.name}.json"
    return [str(file)] if file.is_file() else None


@contextmanager
def _before_it_begins(what: str, stack: automation.Stack) -> Iterator[None]:
    """Have a failure of the CLI explained, which has changed nothing. Raises EngineError."""
    try:
        yield
    except automation.errors.CommandError as why:
        explained = failures.explain(what, stack.name, why, stack.workspace.env_vars)
        raise EngineError(explained, began=False) from None


@contextmanager
def _guarded(what: str, stack: automation.Stack, told: Narration | None) -> Iterator[Signals]:
    """Run the engine; raises EngineError, and Interrupted once the engine has stopped."""
    with graceful_shutdown() as signals:
        try:
            yield signals
        except automation.errors.CommandError as why:
            signals.check()
            if told is not None:
                told.failed()
            began = told is None or told.began
            teams = {} if told is None else _of_teams(stack, told, why)
            if teams:
                lead = f"{what} failed for"
                explained = _explained(lead, stack, teams)
            else:
                explained = failures.explain(what, stack.name, why, stack.workspace.env_vars)
            raise EngineError(explained, began=began) from None
        finally:
            if told is not None:
                told.ended()


def _of_teams(
    stack: automation.Stack, told: Narration, why: automation.errors.CommandError
) -> dict[str, dict[str, str]]:
    """The errors of each team, where nothing else failed; else none."""
    if not told.errors or failures.KILLED.search(str(why)):
        return {}
    resources = state.exported(stack).resources
    above = {str(it["urn"]): str(it.get("parent") or "") for it in resources}
    failed = {step.urn for step, _ in told.failed_steps}
    errors = {  # of its own accord: what the run stopped by its end was canceled
        urn: message
        for urn, message in told.errors.items()
        if urn in failed or "context canceled" not in message
    }
    return held_up.by_team(errors, {**above, **told.parents})


def _explained(lead: str, stack: automation.Stack, teams: Mapping[str, Mapping[str, str]]) -> str:
    host = stack.workspace.env_vars.get("KUBECONFIG")
    return held_up.explain(lead, stack.name, teams, state.read(stack), host)
