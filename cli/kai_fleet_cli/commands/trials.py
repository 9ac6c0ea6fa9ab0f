"""`fleet team try`, `adopt` and `drop`: two versions of KAI side by side for one team."""

from __future__ import annotations

from typing import Annotated

import typer

from kai_fleet_cli.commands.options import (
    Name,
    NoUp,
    Stack,
    Version,
    Yes,
    finish,
    make,
    with_exit_codes,
)
from kai_fleet_cli.display.screen import Flags, Screen

app = typer.Typer()


@app.command("try")
@with_exit_codes
def try_(
    name: Name,
    version: Version,
    gpus: Annotated[int, typer.Option("--gpus", help="How many of the team's GPUs it gets.")],
    pool: Annotated[
        list[str], typer.Option("--pool", help="KEY=VALUE: a label of the nodes it gets.")
    ],
    stack: Stack = "sandbox",
    yes: Yes = False,
    no_up: NoUp = False,
) -> None:
    """Put NAME-next with another KAI version beside a team, on a part of its nodes and GPUs."""
    flags = Flags(yes, no_up)
    from kai_fleet_cli import cluster_reader
    from kai_fleet_cli.teams import connect, lookup, questions
    from kai_fleet_cli.teams.blue_green import nodes, trial

    screen = Screen.standard()
    platform = lookup.platform(stack)
    labels = questions.pairs(pool, "--pool", f"kai-fleet/pool={name}-next")
    change = trial.tried(platform, name, version, labels, gpus)
    host = connect.to_platform(platform, screen.say).host
    try:
        if host is not None:
            nodes.check(platform.team(name), labels, gpus, host.nodes())
    except cluster_reader.NoAnswerError as why:
        screen.say(f"the cluster did not answer, so its nodes are not known: {why}")
        screen.say(f"give it nodes before the update: {trial.labelling([], labels)}")
    make(change, flags, screen, f"{name}-next")


@app.command()
@with_exit_codes
def adopt(name: Name, stack: Stack = "sandbox", yes: Yes = False, no_up: NoUp = False) -> None:
    """End a trial: the team takes NAME-next's version and gets its GPUs back; NAME-next goes."""
    from kai_fleet_cli.teams import lookup
    from kai_fleet_cli.teams.blue_green import trial

    change = trial.adopted(lookup.platform(stack), name)
    done = f"team {name} has the new version, and {name}-next is gone"
    finish(change, Flags(yes, no_up), Screen.standard(), done)


@app.command()
@with_exit_codes
def drop(name: Name, stack: Stack = "sandbox", yes: Yes = False, no_up: NoUp = False) -> None:
    """End a trial: NAME-next goes, and the team gets its GPUs back."""
    from kai_fleet_cli.teams import lookup
    from kai_fleet_cli.teams.blue_green import trial

    change = trial.dropped(lookup.platform(stack), name)
    finish(change, Flags(yes, no_up), Screen.standard(), "the trial is gone, and the GPUs are back")
