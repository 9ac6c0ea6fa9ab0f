"""`fleet team move` and `fleet team credentials`: for teams with a stack of their own."""

from typing import Annotated

import typer

from kai_fleet.settings.files.project import update_command
from kai_fleet_cli.commands.options import Output, Sure, with_exit_codes, write_private
from kai_fleet_cli.display.screen import Screen, say
from kai_fleet_cli.engine.environment import for_stack
from kai_fleet_cli.recovery import resume
from kai_fleet_cli.stack_file import reading
from kubectl_fleet.errors import UserError

app = typer.Typer(help="The teams of a stack.", no_args_is_help=True)


@app.command()
@with_exit_codes
def move(
    team: str,
    to: Annotated[str, typer.Option("--to", help="The stack that is to have the team.")],
    stack: Annotated[str, typer.Option("--stack", "-s", help="The stack that has it now.")],
    yes: Sure = False,
) -> None:
    """Move a running team between a platform stack and its own; nothing of it is touched.

    Edit both stack files first; update both stacks afterwards. See docs/team-stacks.md.
    """
    from kai_fleet.settings.tenant import is_team_stack
    from kai_fleet_cli.teams import move as team_move

    screen = Screen.standard()
    command = f"{resume.FLEET} team move {team} --stack {stack} --to {to}"
    loss = f"team {team} would be taken out of the state of stack {stack}"
    screen.require_answer(command, loss, yes=yes)
    # The rules judge the platform's file: the team's own has no grant before the one move, and
    # none after the other.
    platform = to if is_team_stack(reading.read(reading.path_of(stack))) else stack
    environment = for_stack(platform)
    agree = (lambda: None) if yes else (lambda: screen.confirm_name(team, "move"))
    team_move.move(team, stack, to, environment.variables, say, agree)
    say(f"next: {update_command(platform)}")
    if platform == to:
        say(f"then, as nothing is left in it: pulumi stack rm {stack} --force")
    else:
        say(f"then: {update_command(to)}")


@app.command()
def credentials(
    team: str,
    stack: Annotated[str, typer.Option("--stack", "-s", help="The platform's stack.")] = "sandbox",
    days: Annotated[int, typer.Option("--days", min=1, max=365, help="How long it works.")] = 30,
    output: Output = None,
) -> None:
    """Print or write a kubeconfig for a team's own stack: the rights that the platform grants."""
    from kai_fleet.settings import load
    from kai_fleet.settings.tenant import is_team_stack
    from kai_fleet_cli.teams import kubeconfigs

    raw = reading.read(reading.path_of(stack))
    if is_team_stack(raw):
        raise UserError(f"stack {stack} is a team stack; name its platform's: --stack …")
    settings = load(raw).settings
    if settings is None or settings.cluster.context is None:
        raise UserError(
            f"Pulumi.{stack}.yaml names no context of your kubeconfig; for a platform that keeps a"
            " kubeconfig as a secret, make the token by hand: see docs/team-stacks.md"
        )
    environment = for_stack(stack)
    content = kubeconfigs.of_account(
        team, settings.cluster.context, days, stack, environment.variables.get("KUBECONFIG")
    )
    write_private(content, output)
