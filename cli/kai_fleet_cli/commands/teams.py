"""`fleet team …` and `fleet teams`: teams added, switched, removed, listed."""

from typing import Annotated

import typer

from kai_fleet.settings.files.project import update_command
from kai_fleet_cli.commands import options
from kai_fleet_cli.display.terminal import Flags, Screen
from kai_fleet_cli.engine.environment import for_stack
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file import reading

app = typer.Typer(help="Teams: add, switch, roll back, remove.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The team's name.")]
Version = Annotated[str, typer.Argument(help="A KAI version such as v0.16.8.")]
Stack = Annotated[
    str, typer.Option("--stack", "-s", help="The platform's stack: Pulumi.STACK.yaml.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Run the update without a question.")]
NoUp = Annotated[bool, typer.Option("--no-up", help="Write the file, and leave the update to you.")]
Pools = Annotated[
    list[str] | None, typer.Option("--pool", help="KEY=VALUE: a label of its nodes; repeatable.")
]
Gpus = Annotated[int | None, typer.Option("--gpus", help="The most whole GPUs it may hold.")]


@app.command()
@options.with_exit_codes
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
    """Add a team."""
    from kai_fleet_cli.teams import connect, lookup, new_team, nodes, update

    platform = lookup.platform(stack)
    flags = new_team.TeamFlags(
        mode,
        version,
        new_team.key_values(pool or (), "--pool", f"kai-fleet/pool={name}"),
        gpus,
        dict.fromkeys(queue or (), "")
        if mode == "host"
        else new_team.key_values(queue or (), "--queue", f"{name}=4"),
    )
    if name in platform.teams:
        change = new_team.again(
            platform, name, flags, lambda: name in connect.state(platform, name).values
        )
        its_pool = platform.team(name).node_pool
    else:
        new_team.check_name(name)
        flags = new_team.complete(flags, platform, name)
        change = new_team.add(platform, name, flags, own=own_stack)
        its_pool = flags.pool
    if not no_up:  # what is only written waits for nothing
        nodes.check_pool(platform, its_pool, connect.to_platform(platform))
    update.make(change, Flags(yes, no_up), Screen.standard(), name)


@app.command()
@options.with_exit_codes
def switch(
    name: Name, version: Version, stack: Stack = "sandbox", yes: Yes = False, no_up: NoUp = False
) -> None:
    """Give a team another KAI version; its queues and running pods stay."""
    from kai_fleet_cli.teams import changes, connect, lookup, update

    platform = lookup.platform(stack)
    change = changes.switch(
        platform, name, version, lambda: connect.state(platform, name).versions.get(name)
    )
    done = f"team {name} runs KAI {version}"
    update.finish(change, Flags(yes, no_up), Screen.standard(), done)


@app.command()
@options.with_exit_codes
def rollback(name: Name, stack: Stack = "sandbox", yes: Yes = False, no_up: NoUp = False) -> None:
    """Give a team the KAI version that it ran before, as the stack's history has it."""
    from kai_fleet_cli.teams import changes, connect, lookup, stack_state, update

    platform = lookup.platform(stack)
    place = platform.team(name)
    changes.written_kai(place)  # refuses teams without a KAI before anything is read
    variables = connect.variables(platform)
    running = stack_state.read(place.stack, variables).versions.get(name)
    earlier = stack_state.earlier_version(place, variables, running or place.version)
    if earlier != place.version:  # else its edit is written, and was not run
        earlier = stack_state.earlier_version(place, variables, place.version)
    change = changes.roll_back(platform, place, earlier, running)
    done = f"team {name} is back on the KAI version that it ran before"
    update.finish(change, Flags(yes, no_up), Screen.standard(), done)


@app.command()
@options.with_exit_codes
def remove(name: Name, stack: Stack = "sandbox", yes: Yes = False, no_up: NoUp = False) -> None:
    """Remove a team with everything in it; its name has to be typed, or --yes given."""
    from kai_fleet_cli.teams import changes, connect, lookup, update

    screen = Screen.standard()
    platform = lookup.platform(stack)
    place = changes.to_remove(platform, name)
    held = connect.held(platform, name) if screen.asks and not yes else None
    change = changes.remove(platform, place, held)
    update.finish(change, Flags(yes, no_up), screen, f"team {name} is gone")


@app.command()
@options.with_exit_codes
def kubeconfig(
    name: Name,
    stack: Stack = "sandbox",
    output: options.Output = None,
    oidc: Annotated[
        bool,
        typer.Option("--oidc", help="For people: they log in at the team's identity provider."),
    ] = False,
) -> None:
    """Print a team's kubeconfig, or write it: whoever has it is that vCluster's administrator.

    With --oidc it holds no credentials: each person logs in, and may do what their groups may.
    """
    from kai_fleet_cli.doctor.sources import settings_of
    from kai_fleet_cli.engine import summary
    from kai_fleet_cli.teams import connect, kubeconfigs, lookup

    platform = lookup.platform(stack)
    place = platform.team(name)
    provider = kubeconfigs.provider(place, settings_of(place.stack)) if oidc else None
    state = connect.state(platform, name)
    content = state.kubeconfig(name)
    if not content:
        raise UserError(
            f"team {name} is in {place.file.name}, but was never made; run:"
            f" {update_command(place.stack)}"
        )
    if provider is not None:
        kubeconfigs.check_runs(place, provider, state.values.get(name, {}))
        content = kubeconfigs.for_people(content, provider)
    options.write_private(content, output, f"kubectl --kubeconfig {output} get nodes")
    if output is not None:
        Screen.standard().line(summary.for_the_team(str(output)))


@app.command()
def credentials(
    team: str,
    stack: Annotated[str, typer.Option("--stack", "-s", help="The platform's stack.")] = "sandbox",
    days: Annotated[int, typer.Option("--days", min=1, max=365, help="How long it works.")] = 30,
    output: options.Output = None,
) -> None:
    """Print or write a kubeconfig for a team's own stack: the rights that the platform grants."""
    from kai_fleet.settings import load
    from kai_fleet.settings.team_stack import is_team_stack
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
    options.write_private(content, output)


def teams(stack: Stack = "sandbox", as_json: options.AsJson = False) -> None:
    """The teams of a platform: versions wanted and running, support, queues, GPUs in use."""
    from kai_fleet_cli.teams import connect, listing, lookup

    platform = lookup.platform(stack)
    rows, notes = listing.read(platform, connect.to_platform(platform))
    if as_json:
        options.print_json({"teams": rows, "notes": notes})
    else:
        listing.show(stack, rows, notes, Screen.standard().out)
