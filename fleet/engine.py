"""Running the Pulumi engine: the same way for every stack, through the Automation API."""

from __future__ import annotations

import gc
import os
import runpy
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pulumi import automation, log

from components.focus import only
from fleet import neighbours, program_imports
from fleet.engine_events import Stack
from fleet.environment import NotPossible
from fleet.recovery import failures, removals, settle
from fleet.stack_file import ROOT
from fleet.workspace import Workspace

_warming: list[threading.Thread] = []
POLICY_PACK: Final = str(ROOT / "policies")
# What happens to a resource without a change of anything: it may be read, or no longer read.
UNTOUCHED: Final = ("same", "read", "discard")
Show = Callable[[str], None]
Hear = Callable[[automation.EngineEvent], None]


class EngineFailed(NotPossible):
    """An update or a preview that did not end well; the engine's own output said why."""


@dataclass(frozen=True)
class Outcome:
    """What a run did: `changes` counts resources by what happened to them."""

    changes: Mapping[str, int]
    outputs: Mapping[str, Any]

    @property
    def unchanged(self) -> bool:
        """Whether everything was already as declared."""
        return not any(n for what, n in self.changes.items() if what not in UNTOUCHED)


@dataclass
class FailedSteps:
    """The steps of a run that ended in an error, each with what the engine said of it."""

    steps: list[tuple[Any, str]] = field(default_factory=list)
    _said: dict[str, str] = field(default_factory=dict)

    def note(self, event: automation.EngineEvent) -> None:
        """Hear of an event."""
        told = event.diagnostic_event
        if told is not None and told.urn and told.severity == "error":
            self._said[told.urn] = f"{self._said.get(told.urn, '')}{told.message}"
        if event.res_op_failed_event is not None:
            step = event.res_op_failed_event.metadata
            self.steps.append((step, self._said.get(step.urn, "")))


def program() -> None:
    """The project's program, run in this process: no language plugin is needed."""
    for thread in _warming:
        thread.join()  # the SDK's lazy modules are seen half loaded by a second thread
    gc.freeze()
    gc.enable()  # a command has it off while it imports
    # The SDK tells the engine four times of each resource what it does with it, which nobody here
    # asks to see: a tenth of the program's time.
    log.debug = _unheard
    runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__")


def _unheard(*_: object, **__: object) -> None:
    """In place of a message to the engine."""


def _warm_up() -> None:
    """Begin with the program's imports, a second of work, while the engine starts."""
    thread = threading.Thread(target=program_imports.load, name="the program's imports")
    thread.start()
    _warming.append(thread)


def stack(name: str, environment: Mapping[str, str], directory: Path = ROOT) -> Stack:
    """The stack of that name, created on first use; `directory` holds its file.

    `environment` goes over this process's own, for the engine, its plugins and the program.
    """
    os.environ.update(environment)
    try:
        return Stack.opened(name, Workspace(directory, environment, program))
    except automation.errors.CommandError as why:
        raise EngineFailed(failures.explain(f"opening stack {name}", name, why)) from None


def up(
    stack: Stack,
    show: Show,
    *,
    color: bool,
    parallel: int | None = None,
    teams: Collection[str] | None = None,
    leaving: str | None = None,
) -> Outcome:
    """Make the cluster as declared, with the policy pack in front.

    `teams`: only the platform and these teams; every other team stays as it is. `leaving`: a team
    that is no longer declared goes, and everything else stays as it is.
    """

    failed = FailedSteps()

    def run() -> Outcome:
        settle.settle(stack, show)
        try:
            return once()
        except automation.errors.CommandError:
            if not settle.recover(stack, failed.steps, show):
                raise
            return once()

    def once() -> Outcome:
        alone: neighbours.Neighbours | None = None
        declares, packs = program, [POLICY_PACK]
        noted: AbstractContextManager[None] = nullcontext()
        if leaving is not None:
            from fleet import removal_program  # it takes the rules along, half a second

            alone = neighbours.beside_the_leaving(stack, leaving)
            noted = removals.noted(stack, leaving)
            declares, packs = removal_program.run, []  # nothing is declared that they could judge
        else:
            _warm_up()
            if teams is not None:
                alone = neighbours.left_alone(stack, teams)
        with stack.listening() as (told, hear), only(alone.focus if alone else None), noted:

            def note(event: automation.EngineEvent) -> None:
                hear(event)
                failed.note(event)

            stack.up(
                program=declares,
                on_output=show,
                on_event=note,
                policy_packs=packs,
                policy_pack_configs=_pack_config(stack) if packs else None,
                color=_color(color),
                parallel=parallel,
                suppress_outputs=True,  # the table that follows says it better
                exclude=list(alone.excluded) if alone else None,
                message=alone.message if alone else None,
            )
        return Outcome(told.changes, told.outputs)

    return _guarded("the update", stack.name, run)


def preview(stack: Stack, show: Show, *, color: bool) -> Outcome:
    """Say what an update would do, with the policy pack in front."""

    def run() -> Outcome:
        _warm_up()
        result = stack.preview(
            on_output=show,
            policy_packs=[POLICY_PACK],
            policy_pack_configs=_pack_config(stack),
            color=_color(color),
            diff=True,
        )
        return Outcome({str(what): n for what, n in result.change_summary.items()}, {})

    return _guarded("the preview", stack.name, run)


def destroy(
    stack: Stack,
    show: Show,
    *,
    color: bool,
    hear: Hear | None = None,
    leaving: str | None = None,
) -> Outcome:
    """Remove everything that the stack made; `hear` is told each of the engine's events.

    `leaving`: the stack's one team. With it go the stack itself, its history and its file.
    """

    def run() -> Outcome:
        settle.settle(stack, show)
        with ExitStack() as going, stack.listening() as (told, note):
            if leaving is not None:
                going.enter_context(removals.noted(stack, leaving))
                going.enter_context(stack.asked("--remove"))

            def heard(event: automation.EngineEvent) -> None:
                note(event)
                if hear is not None:
                    hear(event)

            stack.destroy(on_output=show, on_event=heard, color=_color(color))
        return Outcome(told.changes, {})

    return _guarded("the removal", stack.name, run)


def _pack_config(stack: Stack) -> list[str] | None:
    """A stack's own settings of the rules: `rules.<stack>.json` beside its file, if any."""
    file = Path(stack.workspace.work_dir) / f"rules.{stack.name}.json"
    return [str(file)] if file.is_file() else None


def _color(color: bool) -> str:
    return "always" if color else "never"


def _guarded(what: str, stack: str, run: Callable[[], Outcome]) -> Outcome:
    try:
        return run()
    except automation.errors.CommandError as why:
        raise EngineFailed(failures.explain(what, stack, why)) from None
