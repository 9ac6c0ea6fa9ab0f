"""Running the Pulumi engine: the same way for every stack, through the Automation API.

A command runs the CLI as a person would, with the checkout's program in this process: the program
takes as an argument which teams a command is about, and no environment variable of a later run can
leave teams out. Plain `pulumi up` runs the same program, by the CLI's Python host.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from pulumi import automation

from kai_fleet_cli.display.narration import Narration
from kai_fleet_cli.engine import targeting
from kai_fleet_cli.engine.interruption import Signals, graceful_shutdown
from kai_fleet_cli.engine.preview_lines import PreviewLines
from kai_fleet_cli.engine.steps import UNTOUCHED, Steps
from kai_fleet_cli.engine.workspace import Workspace
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.program import program
from kai_fleet_cli.recovery import cluster_refresh, failures, reconcile, state
from kai_fleet_cli.recovery.state import State
from kai_fleet_cli.stack_file.reading import ROOT
from kai_fleet_policies import policy_pack_program

POLICY_PACK: Final = str(policy_pack_program())
Show = Callable[[str], None]


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


def stack(name: str, environment: Mapping[str, str], directory: Path = ROOT) -> automation.Stack:
    """The stack of that name, created on first use; `directory` holds its file.

    `environment` goes over this process's own, for the engine, its plugins and the program.
    """
    os.environ.update(environment)
    try:
        workspace = Workspace(work_dir=str(directory), env_vars=dict(environment), program=program)
        try:
            return automation.Stack.create_or_select(name, workspace)
        except automation.errors.CommandError as why:
            if "already exists" not in str(why):
                raise
            return automation.Stack.select(name, workspace)  # another command made it meanwhile
    except automation.errors.CommandError as why:
        raise EngineError(
            failures.explain(f"opening stack {name}", name, why), began=False
        ) from None


def up(
    stack: automation.Stack,
    show: Show,
    *,
    color: bool,
    parallel: int | None = None,
    teams: Collection[str] | None = None,
    grants: bool = False,
    removes: bool = False,
    refresh: bool = False,
) -> Outcome:
    """Make the cluster as declared, with the policy pack in front.

    `refresh`: look first at what is really there, and mend what an interrupted run left.

    `teams`: only these; everything else in the stack stays as it is. `grants`: with what they were
    granted for stacks of their own. `removes`: one of them goes. Raises EngineError.
    """
    steps = Steps()
    told = Narration(show, color=color)

    def note(event: automation.EngineEvent) -> None:
        steps.note(event)
        told.hear(event)

    def run(signals: Signals) -> Outcome:
        known = reconcile.before(stack, show, refresh=refresh)
        mended: set[str] = set()
        while True:  # what waits for the mended things may stand in the way as well
            steps.failed.clear()
            signals.check()
            try:
                return once(known)
            except automation.errors.CommandError:
                signals.check()
                failed = {step.urn for step, _ in steps.failed}
                if failed <= mended or not reconcile.after(
                    stack, steps.failed, show, refresh=refresh
                ):
                    raise
                mended |= failed
                known = state.exported(stack)

    def once(known: State) -> Outcome:
        only = None
        if teams is not None:
            only = targeting.of_teams(teams, known.resources, grants=grants, removes=removes)
        if only is not None:
            show(only.told(stack.name))
        show(f"Updating ({stack.name})")
        done = stack.up(
            program=partial(program, only.targets if only else None),
            on_output=told.keep,
            on_event=note,
            policy_packs=[POLICY_PACK],
            policy_pack_configs=_pack_config(stack),
            color=_color(color),
            parallel=parallel,
            suppress_outputs=True,  # the table that follows says it better
            target=list(only.urns) if only and not only.others else None,
            target_dependents=True if only and not only.others else None,
            exclude=list(only.others) if only and only.others else None,
            message=only.message if only else None,
            show_secrets=False,
        )
        outputs = {name: it.value for name, it in done.outputs.items() if not it.secret}
        return Outcome(_counted(done.summary.resource_changes), outputs)

    return _guarded("the update", stack.name, run, told, steps)


def preview(stack: automation.Stack, show: Show, *, color: bool, details: bool = False) -> Outcome:
    """Say what an update would do, with the policy pack in front. Raises EngineError.

    A line per resource that would change; `details`: the engine's own diff of every property.
    """
    told = Narration(show, color=color, steps=False)
    found = PreviewLines()

    def note(event: automation.EngineEvent) -> None:
        told.hear(event)
        found.hear(event)

    def run(_: Signals) -> Outcome:
        warned: list[str] = []  # beside a diff the CLI says them on stderr, somewhere in between
        result = stack.preview(
            on_output=show if details else told.keep,
            on_error=warned.append if details else None,
            on_event=None if details else note,
            policy_packs=[POLICY_PACK],
            policy_pack_configs=_pack_config(stack),
            color=_color(color),
            diff=details,
        )
        for line in warned:
            show(line)
        outcome = Outcome(_counted(result.change_summary))
        if not (details or outcome.unchanged):
            for line in found.lines(color=color):
                show(line)
        return outcome

    return _guarded("the preview", stack.name, run, None if details else told)


def drift(stack: automation.Stack, show: Show) -> cluster_refresh.Drift:
    """Say what was changed by hand since the last update; nothing is changed.

    Raises EngineError.
    """
    try:
        with graceful_shutdown():
            return cluster_refresh.drift(stack, show)
    except automation.errors.CommandError as why:
        said = failures.explain("the look at the clusters", stack.name, why)
        raise EngineError(said, began=False) from None


def destroy(
    stack: automation.Stack,
    show: Show,
    *,
    color: bool,
    remove: bool = False,
    refresh: bool = False,
) -> Outcome:
    """Remove everything that the stack made. Raises EngineError.

    `remove`: then the stack itself as well, with its history and its file. `refresh`: look first
    at what is really there.
    """

    told = Narration(show, color=color)

    def run(signals: Signals) -> Outcome:
        reconcile.before(stack, show, refresh=refresh, command="destroy")
        signals.check()
        show(f"Destroying ({stack.name})")
        done = stack.destroy(
            on_output=told.keep,
            on_event=told.hear,
            color=_color(color),
            remove=remove,
            show_secrets=False,
        )
        return Outcome(_counted(done.summary.resource_changes))

    return _guarded("the removal", stack.name, run, told)


def _counted(changes: Mapping[Any, int] | None) -> dict[str, int]:
    return {str(getattr(what, "value", what)): n for what, n in (changes or {}).items()}


def _pack_config(stack: automation.Stack) -> list[str] | None:
    """A stack's own settings of the rules: `rules.<stack>.json` beside its file, if any."""
    file = Path(stack.workspace.work_dir) / f"rules.{stack.name}.json"
    return [str(file)] if file.is_file() else None


def _color(color: bool) -> str:
    return "always" if color else "never"


def _guarded(
    what: str,
    stack: str,
    run: Callable[[Signals], Outcome],
    told: Narration | None,
    steps: Steps | None = None,
) -> Outcome:
    """Run the engine; raises EngineError, and Interrupted once the engine has stopped."""
    with graceful_shutdown() as signals:
        try:
            return run(signals)
        except automation.errors.CommandError as why:
            signals.check()
            if told is not None:
                told.failed()
            began = steps is None or steps.began
            raise EngineError(failures.explain(what, stack, why), began=began) from None
