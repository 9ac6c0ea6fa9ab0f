"""`fleet team …` and `fleet teams`: teams added, switched, rolled back and removed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kai_fleet_cli.commands import trials
from kai_fleet_cli.commands.options import (
    Name,
    NoUp,
    Stack,
    Version,
    Yes,
    finish,
    make,
    with_exit_codes,
    write_private,
)
from kai_fleet_cli.display.screen import Flags, Screen
from kai_fleet_cli.errors import UserError

if TYPE_CHECKING:
    from kai_fleet_cli.teams.lookup import Place, Platform

app = typer.Typer(help="Teams: add, switch, roll back, try beside, remove.", no_args_is_help=True)
app.add_typer(trials.app)

Pools = Annotated[
    list[str] | None, typer.Option("--pool", help="KEY=VALUE: a label of its nodes; repeatable.")
]
Gpus = Annotated[int | None, typer.Option("--gpus", help="The most whole GPUs it may hold.")]


@app.command()
@with_exit_codes
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
    flags = Flags(yes, no_up)
    from kai_fleet_cli.teams import add as team_add
    from kai_fleet_cli.teams import connect, lookup, questions

    screen = Screen.standard()
    platform = lookup.platform(stack)
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
        host = connect.to_platform(platform, screen.say).host
        return host.nodes() if host else []

    answers = questions.complete(given, platform, name, screen, nodes)
    change = team_add.added(platform, name, answers, own=own_stack)
    make(change, flags, screen, name)


@app.command()
@with_exit_codes
def switch(
    name: Name, version: Version, stack: Stack = "sandbox", yes: Yes = False, no_up: NoUp = False
) -> None:
    """Give a team another KAI version; its queues and running pods stay."""
    from kai_fleet_cli.teams import lookup
    from kai_fleet_cli.teams import switch as team_switch

    change = team_switch.switched(lookup.platform(stack), name, version)
    finish(change, Flags(yes, no_up), Screen.standard(), f"team {name} runs KAI {version}")


@app.command()
@with_exit_codes
def rollback(name: Name, stack: Stack = "sandbox", yes: Yes = False, no_up: NoUp = False) -> None:
    """Give a team the KAI version that it ran before, as the stack's history has it."""
    from kai_fleet_cli.teams import connect, history, lookup, stack_state
    from kai_fleet_cli.teams import switch as team_switch

    screen = Screen.standard()
    platform = lookup.platform(stack)

    def earlier(place: Place) -> tuple[str | None, str | None]:
        connected = connect.to_platform(platform, screen.say)
        if connected.variables is None:
            raise UserError(connected.note)
        runs = stack_state.read(place.stack, connected.variables).versions.get(name)
        return history.earlier_version(place, connected.variables), runs

    change = team_switch.rolled_back(platform, name, earlier)
    done = f"team {name} is back on the KAI version that it ran before"
    finish(change, Flags(yes, no_up), screen, done)


@app.command()
@with_exit_codes
def remove(name: Name, stack: Stack = "sandbox", yes: Yes = False, no_up: NoUp = False) -> None:
    """Remove a team with everything in it; its name has to be typed, or --yes given."""
    flags = Flags(yes or no_up, no_up)
    from rich.prompt import Prompt

    from kai_fleet_cli.teams import lookup, update
    from kai_fleet_cli.teams import remove as team_remove

    screen = Screen.standard()
    platform = lookup.platform(stack)
    place = team_remove.to_remove(platform, name)
    if not (screen.asks or yes or no_up):
        raise UserError(
            f"team {name} and all its pods would be gone; there is no terminal to ask at, so write"
            " --yes"
        )

    def sure() -> bool:
        typed = Prompt.ask(f"Type {name} to remove it", console=screen.out, default="")
        return typed.strip() == name

    pods = None if yes else _pods(platform, place, screen)  # who is sure need not wait
    change = team_remove.removed(platform, place, pods)
    if update.carry_out(change, flags, screen, sure) is not None:
        screen.line(f"Done: team {name} is gone.")


@app.command()
@with_exit_codes
def kubeconfig(
    name: Name,
    stack: Stack = "sandbox",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file, readable only by you.")
    ] = None,
) -> None:
    """Print a team's kubeconfig, or write it: whoever has it is that vCluster's administrator."""
    from kai_fleet_cli.display import first_steps
    from kai_fleet_cli.teams import connect, lookup, stack_state

    screen = Screen.standard()
    platform = lookup.platform(stack)
    place = platform.team(name)
    connected = connect.to_platform(platform, screen.say)
    if connected.variables is None:
        raise UserError(connected.note)
    content = stack_state.read(place.stack, connected.variables).kubeconfig(name)
    if not content:
        raise UserError(
            f"team {name} is in {place.file.name}, but was never made; run: make up"
            f" STACK={place.stack}"
        )
    write_private(content, output, f"kubectl --kubeconfig {output} get nodes")
    if output is not None:
        screen.line(first_steps.for_the_team(str(output)))


def teams(
    stack: Stack = "sandbox",
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """The teams of a platform: versions wanted and running, support, queues, GPUs in use."""
    from kai_fleet_cli.teams import connect, lookup
    from kai_fleet_cli.teams.listing import as_text, rows

    screen = Screen.standard()
    platform = lookup.platform(stack)
    found = rows.listing(platform, connect.to_platform(platform, screen.say))
    if as_json:
        record = {"teams": [row.record() for row in found.rows], "notes": list(found.notes)}
        sys.stdout.write(json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    else:
        as_text.show(stack, found, screen.out)


def _pods(platform: Platform, place: Place, screen: Screen) -> list[Any] | None:
    """The pods that run in a team's vCluster; None where nobody can be asked."""
    from kai_fleet_cli import cluster_reader
    from kai_fleet_cli.teams import connect, stack_state

    connected = connect.to_platform(platform, screen.say)
    try:
        if connected.variables is None:
            return None
        content = stack_state.read(place.stack, connected.variables).kubeconfigs.get(place.name)
        return list(cluster_reader.ClusterReader(content=content).pods()) if content else None
    except (UserError, cluster_reader.NoAnswerError):
        return None
