"""What the team commands share: their flags, how they end, and what follows a new team."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, ParamSpec, TypeVar

import typer

from fleet import loaded_plugins
from fleet.environment import NotPossible
from fleet.interruption import Interrupted
from fleet.screen import Screen, Wish

if TYPE_CHECKING:
    from fleet.teams.update import Change

Name = Annotated[str, typer.Argument(help="The team's name.")]
Version = Annotated[str, typer.Argument(help="A KAI version such as v0.16.8.")]
Stack = Annotated[
    str, typer.Option("--stack", "-s", help="The platform's stack: Pulumi.STACK.yaml.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Run the update without a question.")]
NoUp = Annotated[bool, typer.Option("--no-up", help="Write the file, and leave the update to you.")]
P = ParamSpec("P")
R = TypeVar("R")


def ends_well(command: Callable[P, R]) -> Callable[P, R]:
    """Exit codes for a command that a signal ended: 130 for Ctrl-C, 143 for SIGTERM."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except KeyboardInterrupt as why:
            code = why.exit_code if isinstance(why, Interrupted) else 130
            if not isinstance(why, Interrupted):
                Screen.standard().say("interrupted; nothing was changed")
            raise typer.Exit(code) from None
        except EOFError:
            raise NotPossible("no answer; nothing was changed") from None

    return run


def wished(yes: bool, no_up: bool) -> Wish:
    """The wish of a command. Where an update follows without a question, what it needs begins to
    load now, beside the command's own imports.
    """
    if yes and not no_up:
        loaded_plugins.load()
    return Wish(yes, no_up)


def make(change: Change, wish: Wish, screen: Screen, name: str) -> None:
    """Carry out what makes a team, and say what to do first with it."""
    from fleet import first_steps
    from fleet.teams import update

    outputs = update.carry_out(change, wish, screen)
    if outputs is not None:
        gpu = change.platform.raw.get("gpu")
        resource = gpu.get("resource") if isinstance(gpu, dict) else None
        about = outputs.get("teams", {}).get(name, {})
        steps = first_steps.next_steps(
            change.platform.stack, name, about, resource or "nvidia.com/gpu"
        )
        screen.line(steps)
