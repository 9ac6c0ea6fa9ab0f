"""`fleet up`, `preview`, `destroy`: the engine on one stack, as plain `pulumi` runs it."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from kai_fleet.settings.files.project import FLEET, preview_command, update_command
from kai_fleet_cli.commands.options import StackFile, Sure
from kai_fleet_cli.display import terminal
from kai_fleet_cli.engine.environment import for_stack
from kai_fleet_cli.errors import UserError
from kai_fleet_policies.model.cluster import HOST

if TYPE_CHECKING:
    from kai_fleet_cli.diff.changes import Item
    from kai_fleet_cli.recovery.state import State

out = Console()  # rich leaves colours out where this is no terminal, and for NO_COLOR

Refresh = Annotated[
    bool,
    typer.Option("--refresh", help="First see what is there, and repair what a killed run left."),
]


def up(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="With --yes, what may be lost: teams, or the stack for all."),
    ] = None,
    stack: StackFile = "sandbox",
    refresh: Refresh = False,
    yes: Sure = False,
) -> None:
    """Make the cluster as declared. On the sandbox's stacks, start the sandbox first.

    Where pods, queues or volumes would be lost, it asks for the team's name first, or for the
    stack's where all teams lose something.
    """
    from kai_fleet_cli.diff import another, losses
    from kai_fleet_cli.diff.changes import of_steps
    from kai_fleet_cli.display import as_text
    from kai_fleet_cli.engine import report, runs
    from kai_fleet_cli.plan import offline
    from kai_fleet_cli.stack_file import reading
    from kai_fleet_policies import validation

    named = names or []
    if named and not yes:  # no command that agrees to it: nothing was shown yet
        raise UserError(
            f"an update is of all teams of stack {stack}, not of {' '.join(named)} alone. Run"
            f" {update_command(stack)}: it shows what would be lost, and asks for it by name"
        )

    before: list[State] = []

    def agree(known: "State") -> list[str]:
        before.append(known)
        if not known.resources:
            from kai_fleet_cli.doctor.diagnosis import (
                print_missing_prerequisites,
            )  # few updates are a stack's first

            print_missing_prerequisites(stack, out)
            return named
        if unread := reading.from_environment(reading.path_of(stack)):
            terminal.say(f"what this update loses may not be known: {unread}")
        with ThreadPoolExecutor(1) as pool:  # the clusters answer while the plan is computed
            looked = pool.submit(lost_vclusters, stack, known)
            plan = offline.plan(stack)
        if not plan.ok:  # the program says why
            return named
        if renamed := validation.rename_findings(reading.settings_of(stack), known.outputs):
            raise UserError(validation.report(renamed))
        gone = reading.read(reading.path_of(stack)).get("removed") or []
        lost, others = losses.losses(known, plan.resources), looked.result()
        if not (refresh or terminal.asks()):  # a refresh drops what tells what was in them
            others = without_undecided(stack, others, [*named, *gone, *teams_of(lost)])
        return confirm(stack, [*others, *lost], named, gone)

    environment = for_stack(stack)
    opened = runs.stack(stack, environment.variables)
    ran = runs.up(opened, refresh=refresh, removed=named, agree=agree)
    summary = of_steps(ran.steps)
    for known in before:
        summary["lost"][:0] = another.items(another.filled(known, ran.steps), advice="")
    as_text.show_summary(summary, out)
    report.show_teams(stack, ran, environment.standins, out, compared=refresh)


def lost_vclusters(stack: str, known: "State") -> "list[Item]":
    """What was in vClusters that are other ones than the last update saw; none where the clusters
    cannot be asked.
    """
    from kai_fleet_cli.diff import another
    from kai_fleet_cli.doctor.read import of_stack, uids

    if not (vclusters := known.vclusters):
        return []
    try:
        source = of_stack(stack)
    except UserError:  # the file of its platform's stack is not in this folder, or it is refused
        return []
    return another.items(another.losses(known, uids(source, vclusters)))


def teams_of(items: Iterable["Item"]) -> list[str]:
    """The teams that lose something, each once."""
    return list(dict.fromkeys(item.team for item in items))


def without_undecided(stack: str, others: Sequence["Item"], known: Sequence[str]) -> "list[Item]":
    """Of vClusters that are other ones, those of teams that `known` names: it is agreed to, goes,
    or loses something else. All where it names the stack.

    Where nobody can be asked, the program leaves each other one alone: that team fails, and the
    others go on. Print its loss and the command that agrees to it.
    """
    from kai_fleet_cli.display import as_text

    left = [item for item in others if not {stack, item.team} & {*known}]
    as_text.show_summary({"lost": left}, out)
    for item in left:
        command = f"{FLEET} up --stack {stack} --yes {item.team}"
        terminal.say(
            f"there is no terminal to ask at, so nothing of team {item.team} is filled, and the"
            f" other teams go on. To agree: {command}"
        )
    return [item for item in others if item not in left]


def confirm(
    stack: str, items: Sequence["Item"], named: Sequence[str], gone: Sequence[str] = ()
) -> list[str]:
    """Ask for each team that loses something, or for the stack's name if the host does.

    Return the names that were given. `named` are given already, `gone` are in the stack file.
    Raises UserError without an agreement.
    """
    from kai_fleet_cli.display import as_text
    from kai_fleet_cli.doctor.diagnosis import with_live_counts

    names = [team for team in teams_of(items) if team not in gone]
    names = [stack] if HOST in names else names
    if missing := [name for name in names if name not in named]:
        as_text.show_summary({"lost": with_live_counts(stack, items, out)}, out)
        if not terminal.asks():
            raise UserError(
                "this would be lost, and there is no terminal to ask at; put it back, or run:"
                f" {FLEET} up --stack {stack} --yes {' '.join(names)}"
            )
        for name in missing:
            terminal.confirm_name(name, "lose this")
    return list(dict.fromkeys([*named, *names]))


def preview(
    stack: StackFile = "sandbox",
    details: Annotated[
        bool, typer.Option("--details", help="Every property, old and new.")
    ] = False,
) -> None:
    """Show what the host lacks for it and what `up` would change, with every rule's verdict."""
    from kai_fleet_cli.diff.changes import of_steps
    from kai_fleet_cli.display import as_text
    from kai_fleet_cli.doctor.diagnosis import print_missing_prerequisites, with_live_counts
    from kai_fleet_cli.engine import report, runs

    opened = runs.stack(stack, for_stack(stack).variables)
    ran = runs.preview(opened, lambda: print_missing_prerequisites(stack, out), details=details)
    summary = of_steps(ran.steps)
    summary["lost"] = with_live_counts(stack, summary["lost"], out)
    as_text.show_summary(summary, out)
    if not ran.began:
        terminal.result(f"The file changes nothing. {report.compare_command(stack)}")
    elif not details:
        terminal.result(f"Every property: {preview_command(stack, details=True)}")


def destroy(
    stack: Annotated[str, typer.Option("--stack", "-s")],
    refresh: Refresh = False,
    yes: Sure = False,
) -> None:
    """Remove everything that a stack made from its cluster; its name has to be typed, or --yes."""
    from kai_fleet_cli.engine import runs
    from kai_fleet_cli.teams import changes

    command = f"{FLEET} destroy --stack {stack}{' --refresh' if refresh else ''}"
    loss = f"stack {stack} and every team in it would be gone"
    terminal.require_answer(command, loss, yes=yes)
    environment = for_stack(stack, validated=False)
    opened = runs.stack(stack, environment.variables)
    file = changes.stack_file(stack)
    for name in file.teams:
        terminal.result(f"  team {name} goes: its vCluster, every pod and every volume in it")
    for name in file.grants:
        terminal.result(f"  team {name} loses its namespace: destroy its own stack first")
    if not yes:
        terminal.confirm_name(stack)
    runs.destroy(opened, refresh=refresh)
    environment.vacate()
