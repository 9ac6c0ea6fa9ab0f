"""`fleet team …` and `fleet teams`: teams added, switched, tried beside, removed and listed."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    write_private,
)
from kai_fleet_cli.display.screen import Flags, Screen
from kubectl_fleet.errors import UserError

if TYPE_CHECKING:
    from kai_fleet_cli.cluster_reader import ClusterReader
    from kai_fleet_cli.teams.lookup import PlatformFile, TeamPlace

app = typer.Typer(help="Teams: add, switch, roll back, try beside, remove.", no_args_is_help=True)

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
    from kai_fleet_cli.teams import changes, connect, lookup, questions, stack_state, unmade

    screen = Screen.standard()
    platform = lookup.platform(stack)
    answers = questions.TeamAnswers(
        mode,
        version,
        questions.pairs(pool or (), "--pool", f"kai-fleet/pool={name}"),
        gpus,
        dict.fromkeys(queue or (), "")
        if mode == "host"
        else questions.pairs(queue or (), "--queue", f"{name}=4"),
    )
    if name in platform.teams:

        def made() -> bool:
            variables = connect.variables(platform, screen.say)
            return name in stack_state.read(platform.team(name).stack, variables).vclusters

        again = unmade.change(platform, name, answers, made)
        host = None if no_up else connect.to_platform(platform, screen.say).host
        _check_pool(platform, platform.team(name).node_pool, host, screen)
        make(again, flags, screen, name)
        return
    changes.check_new(platform, name)

    host = None if no_up and not screen.asks else connect.to_platform(platform, screen.say).host
    answers = questions.complete(
        answers, platform, name, screen, lambda: host.nodes() if host else []
    )
    if not no_up:  # what is only written waits for nothing
        _check_pool(platform, answers.pool, host, screen)
    make(changes.add(platform, name, answers, own=own_stack), flags, screen, name)


def _check_pool(
    platform: PlatformFile, pool: Mapping[str, str], host: ClusterReader | None, screen: Screen
) -> None:
    """Raise UserError where the nodes answer and none of them is a new team's."""
    from kai_fleet_cli import cluster_reader
    from kai_fleet_cli.teams import nodes

    try:
        if host is not None and pool:
            nodes.check_pool(platform, pool, host.nodes())
    except cluster_reader.NoAnswerError as why:
        screen.say(f"the cluster did not answer, so its nodes are not known: {why}")


@app.command()
@with_exit_codes
def switch(
    name: Name, version: Version, stack: Stack = "sandbox", yes: Yes = False, no_up: NoUp = False
) -> None:
    """Give a team another KAI version; its queues and running pods stay."""
    from kai_fleet_cli.teams import changes, connect, lookup, stack_state

    screen = Screen.standard()
    platform = lookup.platform(stack)

    def running() -> str | None:
        variables = connect.variables(platform, screen.say)
        return stack_state.read(platform.team(name).stack, variables).versions.get(name)

    change = changes.switch(platform, name, version, running)
    finish(change, Flags(yes, no_up), screen, f"team {name} runs KAI {version}")


@app.command()
@with_exit_codes
def rollback(name: Name, stack: Stack = "sandbox", yes: Yes = False, no_up: NoUp = False) -> None:
    """Give a team the KAI version that it ran before, as the stack's history has it."""
    from kai_fleet_cli.teams import changes, connect, lookup, stack_state

    screen = Screen.standard()
    platform = lookup.platform(stack)
    place = platform.team(name)
    changes.written_kai(place)  # refuses teams without a KAI before anything is read
    variables = connect.variables(platform, screen.say)
    running = stack_state.read(place.stack, variables).versions.get(name)
    earlier = stack_state.earlier_version(place, variables, running or place.version)
    if earlier != place.version:  # else its edit is written, and was not run
        earlier = stack_state.earlier_version(place, variables, place.version)
    change = changes.roll_back(platform, place, earlier, running)
    done = f"team {name} is back on the KAI version that it ran before"
    finish(change, Flags(yes, no_up), screen, done)


@app.command()
@with_exit_codes
def remove(name: Name, stack: Stack = "sandbox", yes: Yes = False, no_up: NoUp = False) -> None:
    """Remove a team with everything in it; its name has to be typed, or --yes given."""
    flags = Flags(yes, no_up)
    from kai_fleet_cli.teams import changes, lookup

    screen = Screen.standard()
    platform = lookup.platform(stack)
    place = changes.to_remove(platform, name)
    pods = _pods(platform, place, screen) if screen.asks and not yes else None
    finish(changes.remove(platform, place, pods), flags, screen, f"team {name} is gone")


@app.command()
@with_exit_codes
def kubeconfig(
    name: Name,
    stack: Stack = "sandbox",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file, readable only by you.")
    ] = None,
    oidc: Annotated[
        bool,
        typer.Option("--oidc", help="For people: they log in at the team's identity provider."),
    ] = False,
) -> None:
    """Print a team's kubeconfig, or write it: whoever has it is that vCluster's administrator.

    With --oidc it holds no credentials: each person logs in, and may do what their groups may.
    """
    from kai_fleet_cli.display import first_steps
    from kai_fleet_cli.doctor.sources import settings_of
    from kai_fleet_cli.teams import connect, lookup, oidc_kubeconfig, stack_state

    screen = Screen.standard()
    platform = lookup.platform(stack)
    place = platform.team(name)
    provider = oidc_kubeconfig.provider(place, settings_of(place.stack)) if oidc else None
    variables = connect.variables(platform, screen.say)
    state = stack_state.read(place.stack, variables)
    content = state.kubeconfig(name)
    if not content:
        raise UserError(
            f"team {name} is in {place.file.name}, but was never made; run: make up"
            f" STACK={place.stack}"
        )
    if provider is not None:
        oidc_kubeconfig.check_runs(place, provider, state.values.get(name, {}))
        content = oidc_kubeconfig.kubeconfig(content, provider)
    write_private(content, output, f"kubectl --kubeconfig {output} get nodes")
    if output is not None:
        screen.line(first_steps.for_the_team(str(output)))


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
    from kai_fleet_cli.teams import connect, lookup, questions, trial

    screen = Screen.standard()
    platform = lookup.platform(stack)
    labels = questions.pairs(pool, "--pool", f"kai-fleet/pool={name}-next")
    change = trial.begin(platform, name, version, labels, gpus)
    host = connect.to_platform(platform, screen.say).host
    try:
        if host is not None:
            trial.check_nodes(platform.team(name), labels, gpus, host.nodes())
    except cluster_reader.NoAnswerError as why:
        screen.say(f"the cluster did not answer, so its nodes are not known: {why}")
        screen.say(f"give it nodes before the update: {trial.labelling([], labels)}")
    make(change, flags, screen, f"{name}-next")


@app.command()
@with_exit_codes
def adopt(name: Name, stack: Stack = "sandbox", yes: Yes = False, no_up: NoUp = False) -> None:
    """End a trial: NAME takes NAME-next's version and its GPUs back; NAME-next is removed.

    The name of what goes has to be typed, or --yes given.
    """
    from kai_fleet_cli.teams import lookup, trial

    change = trial.adopt(lookup.platform(stack), name)
    done = f"team {name} has the new version, and {name}-next is gone"
    finish(change, Flags(yes, no_up), Screen.standard(), done)


@app.command()
@with_exit_codes
def drop(name: Name, stack: Stack = "sandbox", yes: Yes = False, no_up: NoUp = False) -> None:
    """End a trial: NAME-next is removed, and the team gets its GPUs back.

    The name of what goes has to be typed, or --yes given.
    """
    from kai_fleet_cli.teams import lookup, trial

    change = trial.drop(lookup.platform(stack), name)
    finish(change, Flags(yes, no_up), Screen.standard(), "the trial is gone, and the GPUs are back")


def teams(
    stack: Stack = "sandbox",
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """The teams of a platform: versions wanted and running, support, queues, GPUs in use."""
    from kai_fleet_cli.teams import connect, listing, lookup

    screen = Screen.standard()
    platform = lookup.platform(stack)
    listed = listing.read(platform, connect.to_platform(platform, screen.say))
    if as_json:
        record = {"teams": [row.record() for row in listed.rows], "notes": list(listed.notes)}
        sys.stdout.write(json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    else:
        listing.show(stack, listed, screen.out)


def _pods(platform: PlatformFile, place: TeamPlace, screen: Screen) -> list[Any] | None:
    """The pods that run in a team's vCluster; None where it cannot be reached."""
    from kai_fleet_cli import cluster_reader
    from kai_fleet_cli.teams import connect, stack_state

    try:
        variables = connect.variables(platform, screen.say)
        content = stack_state.read(place.stack, variables).kubeconfigs.get(place.name)
        return list(cluster_reader.ClusterReader(content=content).pods()) if content else None
    except (UserError, cluster_reader.NoAnswerError):
        return None
