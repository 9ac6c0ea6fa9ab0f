"""`fleet usage`: who used how many GPUs of a stack."""

import json
import sys
from typing import Annotated

import typer
from rich.console import Console

from kai_fleet_cli.commands.options import StackFile
from kai_fleet_cli.display.screen import say
from kubectl_fleet.errors import UserError


def usage(
    stack: StackFile = "sandbox",
    team: Annotated[str | None, typer.Option("--team", help="Only this team.")] = None,
    since: Annotated[
        str, typer.Option("--since", help="How far back Prometheus is asked: 90m, 12h, 7d, 4w.")
    ] = "7d",
    now: Annotated[
        bool, typer.Option("--now", help="A sample of now, also where there is a Prometheus.")
    ] = False,
    prometheus: Annotated[
        str | None,
        typer.Option("--prometheus", help="The URL of one, in place of the stack's."),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="One line for each queue.")] = False,
) -> None:
    """Say who used how many GPUs of a stack: guaranteed, borrowed, idle, owed; and who waits.

    GPU-hours from the Prometheus of kai-fleet:monitoring, else a sample of now.
    """
    from kai_fleet_cli.report.usage import as_csv, show, usage_of

    if json_ and csv:
        raise UserError("--json and --csv are two forms of the same; write one of them")
    notes = Console(stderr=True)
    with notes.status("asking the host cluster") as status:

        def heard(done: int, of: int) -> None:
            status.update(f"{done} of {of} clusters have answered")

        answer = usage_of(stack, team, since, sample=now, url=prometheus, heard=heard)
    if json_:
        sys.stdout.write(json.dumps(answer.record(), indent=2, ensure_ascii=False) + "\n")
    elif csv:
        sys.stdout.write(as_csv(answer))
    else:
        show(answer, Console())
    for team in answer.foreign:
        say(f"error: {team}")
    if answer.foreign:
        raise typer.Exit(1)
