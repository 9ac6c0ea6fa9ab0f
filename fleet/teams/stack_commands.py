"""`fleet team move` and `fleet team credentials`: for teams with a stack of their own."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from fleet import stack_file
from fleet.environment import NotPossible, for_stack

app = typer.Typer(help="The teams of a stack.", no_args_is_help=True)
notes = Console(stderr=True)


@app.command()
def move(
    team: str,
    to: Annotated[str, typer.Option("--to", help="The stack that is to have the team.")],
    stack: Annotated[str, typer.Option("--stack", "-s", help="The stack that has it now.")],
) -> None:
    """Move a running team between a platform stack and its own; nothing of it is touched.

    Edit both stack files first; update both stacks afterwards. See docs/team-stacks.md.
    """
    from components.settings.tenant import is_team_stack
    from fleet.teams import move as team_move

    # The rules are asked about the platform's file: the team's own has no grant before the one
    # move, and none after the other.
    platform = to if is_team_stack(_read(stack)) else stack
    environment = for_stack(platform, _say)
    team_move.move(team, stack, to, environment.variables, _say)
    _say(f"next: make up STACK={platform}")
    if platform == to:
        _say(f"then, as nothing is left in it: pulumi stack rm {stack} --force")
    else:
        _say(f"then: make up STACK={to}")


@app.command()
def credentials(
    team: str,
    stack: Annotated[str, typer.Option("--stack", "-s", help="The platform's stack.")] = "sandbox",
    days: Annotated[int, typer.Option("--days", min=1, max=365, help="How long it works.")] = 30,
) -> None:
    """Print a kubeconfig for a team's own stack: the rights that the platform grants it."""
    from components.settings import load
    from components.settings.tenant import is_team_stack
    from fleet.teams import credentials as team_credentials

    raw = _read(stack)
    if is_team_stack(raw):
        raise NotPossible(f"stack {stack} is a team stack; name its platform's: --stack …")
    settings = load(raw).settings
    if settings is None or settings.cluster.context is None:
        raise NotPossible(
            f"Pulumi.{stack}.yaml names no context of your kubeconfig; for a platform that keeps a"
            " kubeconfig as a secret, make the token by hand: see docs/team-stacks.md"
        )
    environment = for_stack(stack, _say)
    sys.stdout.write(
        team_credentials.kubeconfig(
            team, settings.cluster.context, days, stack, environment.variables.get("KUBECONFIG")
        )
    )


def _read(stack: str) -> dict[str, object]:
    try:
        return stack_file.read(stack_file.path_of(stack))
    except stack_file.Unreadable as why:
        raise NotPossible(str(why)) from None


def _say(text: str) -> None:
    notes.print(text, highlight=False, markup=False, soft_wrap=True)
