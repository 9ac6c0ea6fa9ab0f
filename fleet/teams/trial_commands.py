"""`python -m fleet team try`, `adopt` and `drop`: two versions of KAI side by side for one team."""

from __future__ import annotations

from typing import Annotated

import typer

from fleet.screen import Screen
from fleet.teams.options import Name, NoUp, Stack, Version, Yes, ends_well, make, wished

app = typer.Typer()


@app.command("try")
@ends_well
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
    wish = wished(yes, no_up)
    from fleet import live
    from fleet.teams import beside, nodes, places, questions, reach

    screen = Screen.standard()
    platform = places.platform(stack)
    labels = questions.pairs(pool, "--pool", f"kai-fleet/pool={name}-next")
    change = beside.tried(platform, name, version, labels, gpus)
    host = reach.reach(platform, screen.say).host
    try:
        if host is not None:
            nodes.check(platform.team(name), labels, gpus, host.nodes())
    except live.NoAnswer as why:
        screen.say(f"the cluster did not answer, so its nodes are not known: {why}")
        screen.say(f"give it nodes before the update: {beside.labelling([], labels)}")
    make(change, wish, screen, f"{name}-next")


@app.command()
@ends_well
def adopt(name: Name, stack: Stack = "sandbox", yes: Yes = False, no_up: NoUp = False) -> None:
    """End a trial: the team takes NAME-next's version and gets its GPUs back; NAME-next goes."""
    wish = wished(yes, no_up)
    from fleet.teams import beside, places, update

    screen = Screen.standard()
    change = beside.adopted(places.platform(stack), name)
    if update.carry_out(change, wish, screen) is not None:
        screen.line(f"Done: team {name} has the new version, and {name}-next is gone.")


@app.command()
@ends_well
def drop(name: Name, stack: Stack = "sandbox", yes: Yes = False, no_up: NoUp = False) -> None:
    """End a trial: NAME-next goes, and the team gets its GPUs back."""
    wish = wished(yes, no_up)
    from fleet.teams import beside, places, update

    screen = Screen.standard()
    change = beside.dropped(places.platform(stack), name)
    if update.carry_out(change, wish, screen) is not None:
        screen.line("Done: the trial is gone, and the GPUs are back.")
