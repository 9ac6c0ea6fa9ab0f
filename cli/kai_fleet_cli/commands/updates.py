"""`fleet up`, `preview`, `destroy`: the engine on one stack, as plain `pulumi` runs it."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import typer
from pulumi import automation

from kai_fleet.names import FLEET
from kai_fleet_cli.backups import taking
from kai_fleet_cli.commands.options import StackFile, Sure
from kai_fleet_cli.diff import losses, lost_vclusters
from kai_fleet_cli.diff.changes import SummaryLine, summary_of_steps
from kai_fleet_cli.display import as_text, terminal
from kai_fleet_cli.doctor import read as live
from kai_fleet_cli.doctor.diagnosis import print_missing_prerequisites, with_live_counts
from kai_fleet_cli.engine import report, runs, workspace
from kai_fleet_cli.engine.environment import for_stack
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.plan import offline
from kai_fleet_cli.recovery.resume import up_command
from kai_fleet_cli.recovery.state import State
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.teams import changes
from kai_fleet_policies.finding import report as finding_report
from kai_fleet_policies.model.cluster import HOST
from kai_fleet_stack import validation
from kai_fleet_stack.project import preview_command, update_command
from kai_fleet_stack.settings import Settings

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
    no_backup: Annotated[
        bool, typer.Option("--no-backup", help="Take none of a vCluster that changes its version.")
    ] = False,
) -> None:
    """Make the cluster as declared. On the sandbox's stacks, start the sandbox first.

    Where pods, queues or volumes would be lost, it asks for the team's name first, or for the
    stack's where all teams lose something. Of a vCluster that goes to another version it writes a
    backup into the folder backups beforehand.
    """
    agreed = names or []
    if agreed and not yes:  # no command agrees to losses that were not shown
        raise UserError(
            f"an update is of all teams of stack {stack}, not of {' '.join(agreed)} alone. Run"
            f" {update_command(stack)}: it shows what would be lost, and asks for it by name"
        )
    environment = for_stack(stack)
    opened = workspace.open_stack(stack, environment.variables)
    update(opened, environment.standins, agreed, refresh=refresh, backs_up=not no_backup)


def update(
    opened: automation.Stack,
    standins: Sequence[str],
    agreed: Sequence[str] = (),
    *,
    refresh: bool,
    backs_up: bool = True,
) -> None:
    """Update an opened stack, after it was asked for what would be lost; print what changed.

    Args:
        opened: The stack.
        standins: Names of what is simulated where its engine runs.
        agreed: What may be lost: teams, or the stack for all.
        refresh: Refresh the state first.
        backs_up: Write a backup of each vCluster that goes to another version.

    Raises as `_agree` and `runs.up`.
    """
    stack = opened.name
    states_before: list[State] = []

    def agree(state: State) -> list[str]:
        """Keep the state for the summary, and ask. Returns and raises the same as `_agree`."""
        states_before.append(state)
        return _agree(stack, state, agreed, refresh=refresh, backs_up=backs_up)

    ran = runs.up(opened, refresh=refresh, removed=agreed, agree=agree)
    summary = summary_of_steps(ran.steps)
    for state in states_before:
        refilled = lost_vclusters.refilled_contents(state, ran.steps)
        summary["lost"][:0] = lost_vclusters.summary_lines(refilled, advice="")
    as_text.show_summary(summary)
    report.show_teams(stack, ran, standins, compared=refresh)


def _agree(
    stack: str, state: State, agreed: Sequence[str], *, refresh: bool, backs_up: bool
) -> list[str]:
    """Ask for what an update would lose; return the names that may lose something, with `agreed`.

    Before a stack's first update print what the host lacks instead. Of a stack file that the rules
    refuse nothing is asked: the program refuses it. If the file takes values of Pulumi ESC, print
    that losses may not be known. Without a terminal, and without `refresh`, the loss of a vCluster
    of a team that nobody named is printed, and no UserError unless the team loses more.

    Args:
        stack: The stack.
        state: Its state.
        agreed: Names that the command has.
        refresh: The update refreshes the state first: each lost vCluster has to be agreed to.
        backs_up: Then write a backup of each vCluster that goes to another version.

    Raises:
        UserError: The file has another `cluster.name` than the state.
        One of MALFORMED: A wait in the state is malformed.
        Others as `confirm`, `reading.settings_of`, `offline.plan`, `taking.write_before_update`.
    """
    if not state.resources:
        print_missing_prerequisites(stack)
        return list(agreed)
    if unread := reading.esc_finding(reading.path_of(stack)):
        terminal.say(f"what this update loses, or has to back up, may not be known: {unread}")
    with ThreadPoolExecutor(1) as pool:  # the clusters answer while the plan is computed
        reading_vclusters = pool.submit(lost_vcluster_lines, stack, state)
        plan = offline.plan(stack)
    if not plan.ok:
        return list(agreed)
    settings = reading.settings_of(stack)
    if renamed := validation.rename_findings(settings, state.outputs):
        raise UserError(finding_report(renamed))
    lost = losses.lost_lines(state, plan.resources)
    vclusters = reading_vclusters.result()
    if not refresh and not terminal.can_ask():
        decided = [*agreed, *settings.removed, *teams_of(lost)]
        vclusters = without_undecided(stack, vclusters, decided)
    names = confirm(stack, [*vclusters, *lost], agreed, settings.removed)
    if backs_up:
        versions = taking.new_versions(state, plan.resources)
        _back_up(settings, stack, versions, f"{up_command(stack, names)} --no-backup")
    return names


def _back_up(settings: Settings, stack: str, versions: Mapping[str, str], otherwise: str) -> None:
    """Write a backup of each vCluster with a new version, except in a team's own stack.

    The account of that may not run commands in pods. Arguments, and what it raises, are those of
    `taking.write_before_update`.
    """
    if versions and settings.platform_stack:
        terminal.say("no backup is taken: a team stack's account cannot read its vCluster's store")
    else:
        taking.write_before_update(stack, versions, otherwise)


def lost_vcluster_lines(stack: str, state: State) -> list[SummaryLine]:
    """A line for each vCluster that is another one than the last update saw: what the old one had.

    No line for a vCluster that does not answer, or whose Secret vCluster did not write. Empty if
    the host does not answer, if the stack file is refused, or if its sandbox does not run. Raises
    one of MALFORMED for a wait in the state that kai-fleet did not write.
    """
    if not state.vclusters:
        return []
    try:
        source = live.source_of_stack(stack)
    except UserError:  # the file is refused, or that of its platform is not in this folder
        return []
    uids = live.vcluster_uids(source, state.vclusters)
    return lost_vclusters.summary_lines(lost_vclusters.lost_contents(state, uids))


def teams_of(items: Iterable[SummaryLine]) -> list[str]:
    """The teams that lose something, each once, in the order of the items; HOST for the host."""
    return list(dict.fromkeys(item.team for item in items))


def without_undecided(
    stack: str,
    vclusters: Sequence[SummaryLine],
    decided: Sequence[str],
) -> list[SummaryLine]:
    """The lost vClusters of the teams that `decided` names; all of them if it names the stack.

    Print the loss of every other one and the command that agrees to it: nobody can be asked, so the
    update does not fill it. Its team fails, and the others are updated.

    Args:
        stack: The stack.
        vclusters: The lines of `lost_vcluster_lines`.
        decided: Names that need no question here: those that somebody agreed to, removed teams, and
            teams that are asked for another loss.
    """
    undecided = [item for item in vclusters if not {stack, item.team} & set(decided)]
    as_text.show_summary({"lost": undecided})
    for item in undecided:
        command = f"{FLEET} up --stack {stack} --yes {item.team}"
        terminal.say(
            f"there is no terminal to ask at, so nothing of team {item.team} is filled, and the"
            f" other teams go on. To agree: {command}"
        )
    return [item for item in vclusters if item not in undecided]


def confirm(
    stack: str,
    items: Sequence[SummaryLine],
    agreed: Sequence[str],
    removed: Sequence[str] = (),
) -> list[str]:
    """Ask to type the name of each team that loses something; only the stack's if the host does.

    If there is something to ask, print first all that is lost, with the pods and volumes in it.

    Args:
        stack: The stack.
        items: What is lost.
        agreed: Names that the command has: they are not asked for. The stack's stands for all.
        removed: Teams that the stack file names as removed: these are not asked for either.

    Returns:
        `agreed`, all names that were needed, and each team that loses something, because the
        program removes none by the stack's name. Those of `removed` are in it only if in `agreed`.

    Raises:
        UserError: A name is not typed, or there is one to ask for and nobody at a terminal.
        EOFError: stdin ends at the question.
        One of MALFORMED: Objects of the host are malformed.
    """
    losers = [team for team in teams_of(items) if team not in removed]
    needed = [stack] if HOST in losers else losers
    to_ask = [name for name in needed if not {stack, name} & set(agreed)]
    if to_ask:
        as_text.show_summary({"lost": with_live_counts(stack, items)})
        if not terminal.can_ask():
            raise UserError(
                "this would be lost, and there is no terminal to ask at; put it back, or run:"
                f" {FLEET} up --stack {stack} --yes {' '.join(needed)}"
            )
        for name in to_ask:
            terminal.confirm_name(name, "lose this")
    return list(dict.fromkeys([*agreed, *needed, *losers]))


def preview(
    stack: StackFile = "sandbox",
    details: Annotated[
        bool, typer.Option("--details", help="Every property, old and new.")
    ] = False,
) -> None:
    """Show what the host lacks for it and what `up` would change, with every rule's verdict."""
    opened = workspace.open_stack(stack, for_stack(stack).variables)
    ran = runs.preview(opened, lambda: print_missing_prerequisites(stack), details=details)
    summary = summary_of_steps(ran.steps)
    summary["lost"] = with_live_counts(stack, summary["lost"])
    as_text.show_summary(summary)
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
    command = f"{FLEET} destroy --stack {stack}{' --refresh' if refresh else ''}"
    loss = f"stack {stack} and every team in it would be gone"
    terminal.require_answer(command, loss, yes=yes)
    environment = for_stack(stack, validated=False)
    opened = workspace.open_stack(stack, environment.variables)
    file = changes.stack_file(stack)
    for name in file.teams:
        terminal.result(f"  team {name} goes: its vCluster, every pod and every volume in it")
    for name in file.grants:
        terminal.result(f"  team {name} loses its namespace: destroy its own stack first")
    if not yes:
        terminal.confirm_name(stack)
    runs.destroy(opened, refresh=refresh)
    environment.release_sandbox()
