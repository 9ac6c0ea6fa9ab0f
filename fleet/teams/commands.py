"""`python -m fleet team …` and `fleet teams`: teams added, switched, rolled back and removed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fleet.environment import NotPossible
from fleet.screen import Screen
from fleet.teams import trial_commands
from fleet.teams.options import Name, NoUp, Stack, Version, Yes, ends_well, make, wished

if TYPE_CHECKING:
    from fleet.teams.places import Place, Platform

app = typer.Typer(help="Teams: add, switch, roll back, try beside, remove.", no_args_is_help=True)
app.add_typer(trial_commands.app)

Pools = Annotated[
    list[str] | None, typer.Option("--pool", help="KEY=VALUE: a label of its nodes; repeatable.")
]
Gpus = Annotated[int | None, typer.Option("--gpus", help="The most whole GPUs it may hold.")]


@app.command()
@ends_well
def add(
    name: Name,
    stack: Stack = "sandbox",
    mode: Annotated[str, typer.Option(help="virtual, host or default.")] = "",
    version: Annotated[str, typer.Option(help="Mode virtual: its KAI version.")] = "",
    pool: Pools = None,
    gpus: Gpus = None,
    queue: Annotated[
        list[str] | None,
        typer.Option(help="NAME=GPUS: a queue of its own; repeatable. Mode host: NAME, its leaf."),
    ] = None,
    own_stack: Annotated[bool, typer.Option(help="In a stack of its own.")] = False,
    yes: Yes = False,
    no_up: NoUp = False,
) -> None:
    """Add a team. What no flag says is asked for at a terminal."""
    wish = wished(yes, no_up)
    from fleet.teams import add as team_add
    from fleet.teams import places, questions, reach

    screen = Screen.standard()
    platform = places.platform(stack)
    team_add.check_new(platform, name)
    given = questions.Answers(
        mode,
        version,
        questions.pairs(pool or (), "--pool", f"kai-fleet/pool={name}"),
        gpus,
        dict.fromkeys(queue or (), "")
        if mode == "host"
        else questions.pairs(queue or (), "--queue", f"{name}=4"),
    )

    def nodes() -> Any:
        host = reach.reach(platform, screen.say).host
        return host.nodes() if host else []

    answers = questions.complete(given, platform, name, screen, nodes)
    change = team_add.added(platform, name, answers, own=own_stack)
    make(change, wish, screen, name)


@app.command()
@ends_well
def switch(
    name: Name, version: Version, stack: Stack = "sandbox", yes: Yes = False, no_up: NoUp = False
) -> None:
    """Give a team another KAI version; its queues and running pods stay."""
    wish = wished(yes, no_up)
    from fleet.teams import places, update
    from fleet.teams import switch as team_switch

    screen = Screen.standard()
    change = team_switch.switched(places.platform(stack), name, version)
    if update.carry_out(change, wish, screen) is not None:
        screen.line(f"Done: team {name} runs KAI {version}.")


@app.command()
@ends_well
def rollback(name: Name, stack: Stack = "sandbox", yes: Yes = False, no_up: NoUp = False) -> None:
    """Give a team the KAI version that it ran before, as the stack's history has it."""
    wish = wished(yes, no_up)
    from fleet.teams import history, places, reach, update
    from fleet.teams import switch as team_switch

    screen = Screen.standard()
    platform = places.platform(stack)

    def earlier(place: Place) -> str | None:
        reached = reach.reach(platform, screen.say)
        if reached.variables is None:
            raise NotPossible(reached.note)
        return history.earlier_version(place, reached.variables)

    change = team_switch.rolled_back(platform, name, earlier)
    if update.carry_out(change, wish, screen) is not None:
        screen.line(f"Done: team {name} is back on the KAI version that it ran before.")


@app.command()
@ends_well
def remove(name: Name, stack: Stack = "sandbox", yes: Yes = False, no_up: NoUp = False) -> None:
    """Remove a team with everything in it; its name has to be typed, or --yes given."""
    wish = wished(yes or no_up, no_up)
    from rich.prompt import Prompt

    from fleet.teams import places, update
    from fleet.teams import remove as team_remove

    screen = Screen.standard()
    platform = places.platform(stack)
    place = platform.team(name)
    if not (screen.asks or yes or no_up):
        raise NotPossible(
            f"team {name} and all its pods would be gone; there is no terminal to ask at, so write"
            " --yes"
        )

    def sure() -> bool:
        typed = Prompt.ask(f"Type {name} to remove it", console=screen.out, default="")
        return typed.strip() == name

    pods = None if yes else _pods(platform, place, screen)  # who is sure need not wait
    change = team_remove.removed(platform, name, pods)
    if update.carry_out(change, wish, screen, sure) is not None:
        screen.line(f"Done: team {name} is gone.")


@app.command()
@ends_well
def kubeconfig(
    name: Name,
    stack: Stack = "sandbox",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file, readable only by you.")
    ] = None,
) -> None:
    """Print a team's kubeconfig, or write it: whoever has it is that vCluster's administrator."""
    from fleet import stack_write
    from fleet.teams import places, reach, state

    screen = Screen.standard()
    platform = places.platform(stack)
    place = platform.team(name)
    reached = reach.reach(platform, screen.say)
    if reached.variables is None:
        raise NotPossible(reached.note)
    content = state.read(place.stack, reached.variables).kubeconfigs.get(name)
    if not content:
        raise NotPossible(
            f"team {name} is in {place.file.name}, but was never made; run: make up"
            f" STACK={place.stack}"
        )
    if output is None:
        sys.stdout.write(content)
        return
    try:
        stack_write.put(output, content, 0o600, keep_mode=False)
    except OSError as why:
        raise NotPossible(f"{output} cannot be written: {why.strerror}") from None
    screen.line(f"{output} is written: kubectl --kubeconfig {output} get nodes")


def teams(
    stack: Stack = "sandbox",
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """The teams of a platform: versions wanted and running, support, queues, GPUs in use."""
    from fleet.teams import listing, listing_text, places, reach

    screen = Screen.standard()
    platform = places.platform(stack)
    found = listing.listing(platform, reach.reach(platform, screen.say))
    if as_json:
        record = {"teams": [row.record() for row in found.rows], "notes": list(found.notes)}
        sys.stdout.write(json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    else:
        listing_text.show(stack, found, screen.out)


def _pods(platform: Platform, place: Place, screen: Screen) -> list[Any] | None:
    """The pods that run in a team's vCluster; None where nobody can be asked."""
    from fleet import live
    from fleet.teams import reach, state

    reached = reach.reach(platform, screen.say)
    try:
        if reached.variables is None:
            return None
        content = state.read(place.stack, reached.variables).kubeconfigs.get(place.name)
        return list(live.Cluster(content=content).pods()) if content else None
    except (NotPossible, live.NoAnswer):
        return None
