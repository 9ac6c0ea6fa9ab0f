"""Carrying a team command out: judged, shown, asked, written, run; or everything as it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pulumi import automation
from rich.markup import escape
from rich.prompt import Confirm

from fleet import engine, loaded_plugins, plan_text
from fleet.environment import Environment, NotPossible, for_stack
from fleet.interruption import Interrupted, ended_in_order
from fleet.recovery import locks
from fleet.screen import Screen, Wish, engine_line
from fleet.stack_file import path_of
from fleet.stack_write import Edit, restore, write
from fleet.teams import judge
from fleet.teams.emptying import Emptying, NotEmptied, emptying
from fleet.teams.places import Platform


@dataclass(frozen=True)
class Change:
    """What a command would do: edits of files, in words, and the stacks to run afterwards.

    `destroys` are stacks that are emptied and removed; the first update begins when each has no
    more than its vCluster, the others when nothing is left. Of the platform's stack only `teams`
    are updated; where one is `leaving` it, nothing but that.
    """

    platform: Platform
    edits: tuple[Edit, ...]
    sentences: tuple[str, ...]
    updates: tuple[str, ...]
    teams: tuple[str, ...] = ()
    destroys: tuple[str, ...] = ()
    leaving: str | None = None


def carry_out(
    change: Change, wish: Wish, screen: Screen, question: Callable[[], bool] | None = None
) -> dict[str, Any] | None:
    """Do it as far as is wished; the outputs of the last update, or None where nothing ran.

    `question` replaces "Run the update now?"; where it says no, nothing is written. Raises
    NotPossible for a refusal, and Interrupted; the files are as they were then.
    """
    _judged(change, screen)
    for edit in change.edits:
        screen.line(f"{edit.path.name}:")
        for line in edit.lines():
            colour = "green" if line.startswith("+") else "red"
            screen.out.print(f"  [{colour}]{escape(line)}[/]", highlight=False, soft_wrap=True)
    for sentence in change.sentences:
        screen.line(sentence)
    run = wish.yes and not wish.no_up
    if question is not None:
        if not wish.yes and not question():
            raise NotPossible("nothing is changed")
        run = not wish.no_up
    elif screen.asks and not wish.yes and not wish.no_up:
        run = Confirm.ask("Run the update now?", default=True, console=screen.out)
    if not run:
        if change.destroys:
            raise NotPossible(
                f"stack {change.destroys[0]} has to be emptied before its file goes; write --yes,"
                " and leave --no-up out"
            )
        write(change.edits)
        screen.line(f"Written. Next:\n{_commands(change.updates)}")
        return None
    loaded_plugins.load()
    # What was judged is the edit; it may be what puts a refused file right.
    environment = for_stack(change.platform.stack, screen.say, judged=False)
    return _run(change, environment, screen)


def _judged(change: Change, screen: Screen) -> None:
    """Show what the rules say about the edit; raise NotPossible where one refuses it."""
    verdict = judge.judge(change.platform, change.edits)
    shown = verdict.refused
    if verdict.problems and not shown:
        before = set(judge.judge(change.platform, ()).problems)
        shown = [problem for problem in verdict.problems if problem not in before]
    for problem in shown:
        screen.out.print(plan_text.line(problem.record()), highlight=False, soft_wrap=True)
    if verdict.refused:
        raise NotPossible("the rules refuse this; nothing is written")


def _run(change: Change, environment: Environment, screen: Screen) -> dict[str, Any]:
    begun = datetime.now(UTC)
    outputs: dict[str, Any] = {}
    opened: automation.Stack | None = None
    written, finished = False, []  # what cannot be taken back by putting the files back
    colour = screen.out.is_terminal
    with ended_in_order() as signals:

        def update(stacks: Sequence[str]) -> None:
            nonlocal opened, outputs
            for stack in stacks:
                opened = engine.stack(stack, environment.variables)
                signals.check()
                on_platform = stack == change.platform.stack
                outcome = engine.up(
                    opened,
                    engine_line,
                    color=colour,
                    teams=change.teams if on_platform else None,
                    leaving=change.leaving if on_platform else None,
                )
                outputs = dict(outcome.outputs)
                finished.append(stack)

        def gone(each: Emptying) -> None:
            each.until_empty()
            finished.append(each.stack.name)
            if (file := path_of(each.stack.name)).exists():  # the CLI removes it with the stack
                write([edit for edit in change.edits if edit.path == file])

        try:
            leaving = [engine.stack(stack, environment.variables) for stack in change.destroys]
            signals.check()
            with emptying(leaving, color=colour) as going:
                for each in going:
                    each.until_nearly_empty()
                signals.check()
                # A stack that keeps something keeps its file as well.
                theirs = [path_of(stack) for stack in change.destroys]
                write([edit for edit in change.edits if edit.path not in theirs])
                written = True
                try:
                    update(change.updates[:1])
                finally:
                    if not signals.number:
                        for each in going:
                            gone(each)
            update(change.updates[1:])
            return outputs
        except KeyboardInterrupt as why:
            _put_back(change, screen)
            raise (why if isinstance(why, Interrupted) else Interrupted(2)) from None
        except engine.EngineFailed as why:
            if signals.number:
                _put_back(change, screen)
                raise Interrupted(signals.number) from None
            if isinstance(why, NotEmptied):
                raise NotPossible(
                    f"{why}. Its file is as it was; run the same command again to go on"
                ) from None
            if not written:
                raise NotPossible(
                    f"{why}. The files are as they were; run the same command again to go on"
                ) from None
            if not finished and not _anything_done(opened, begun):
                restore(change.edits)
                raise NotPossible(
                    f"{why}. Nothing was changed, and the files are as they were"
                ) from None
            raise NotPossible(
                f"{why}. The files keep the edit: run it again with\n{_commands(change.updates)}"
            ) from None


def _put_back(change: Change, screen: Screen) -> None:
    restore(change.edits)
    files = ", ".join(edit.path.name for edit in change.edits)
    screen.say(
        f"interrupted: {files} as before. What the update did until then is undone by\n"
        f"{_commands(change.updates)}\nor run the same command again to go on."
    )


def _anything_done(stack: automation.Stack | None, begun: datetime) -> bool:
    """Whether the failed run did anything; the engine's history knows, of all but a killed one."""
    if stack is None:
        return False
    holder = locks.holder(stack.name, stack.workspace.env_vars)
    if holder is not None and holder.alive is False:
        return True
    try:
        last = stack.history(page_size=1, show_secrets=False)
    except automation.errors.CommandError:
        return True
    if not last or last[0].start_time.replace(tzinfo=UTC) < begun.replace(microsecond=0):
        return False
    changes = last[0].resource_changes or {}
    return any(count for what, count in changes.items() if str(what) not in engine.UNTOUCHED)


def _commands(stacks: Sequence[str]) -> str:
    return "\n".join(f"  make up STACK={stack}" for stack in stacks)
