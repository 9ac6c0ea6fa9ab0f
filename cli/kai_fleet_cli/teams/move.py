"""Move a team between stacks, with nothing that others may have written into its state."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pulumi import automation

from kai_fleet.fleet.deployed_state import PROVIDERS, TEAM
from kai_fleet_cli.display.terminal import Say
from kai_fleet_cli.engine import runs
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import failures, live_cluster, state
from kai_fleet_cli.stack_file.reading import PROJECT, ROOT
from kai_fleet_cli.teams import team_state


def move(
    team: str,
    source: str,
    dest: str,
    environment: Mapping[str, str],
    say: Say,
    agree: Callable[[], None],
    directory: Path = ROOT,
) -> None:
    """Take a team with all that it has from one stack's state to another's.

    By `pulumi state move` and `state delete`, which are shown and asked about (`agree`). The next
    update of each stack finds everything as it is declared. Raises UserError.
    """
    if source == dest:
        raise UserError(f"team {team} is to move from {source} to itself; name another stack")
    old = runs.stack(source, environment, directory)
    urn = f"urn:pulumi:{source}::{PROJECT}::{TEAM}::{team}"
    resources = state.exported(old).resources
    here = {str(it["urn"]) for it in resources}
    if urn not in here:
        teams = sorted(u.rpartition("::")[2] for u in here if f"::{TEAM}::" in u)
        has = f"its teams: {', '.join(teams)}" if teams else "it has no team"
        raise UserError(f"stack {source} runs no team {team}; {has}")
    new = runs.stack(dest, environment, directory)
    before = state.exported(new)
    there = before.urns()
    if f"urn:pulumi:{dest}::{PROJECT}::{TEAM}::{team}" in there:
        raise UserError(f"stack {dest} runs a team {team} already; remove the one or the other")
    clear = state.read(old)
    taken = team_state.taken_along(clear.resources, urn)
    team_state.check_moved(taken, source, team)
    commands = _commands(resources, urn, source, dest)
    for command in commands:
        say(f"pulumi {' '.join(command)}")
    for sentence in team_state.ways_along(taken, dest, before.resources):
        say(f"warning: {sentence}")
    agree()  # before a kubeconfig of that state is used
    # Who ran the team's own stack wrote Helm's record, on which the other stack is going to act.
    moved = state.ExportedState({"resources": taken})  # no other kubeconfig was told of
    live_cluster.check_records(moved, environment.get("KUBECONFIG"), say)
    for done, command in enumerate(commands):
        try:
            new.workspace.pulumi_command.run([*command], new.workspace.work_dir, {**environment})
        except automation.errors.CommandError as why:
            rest = "; the commands before it are done: run the same command again" if done else ""
            raise UserError(
                f"team {team} stays in stack {source}: `pulumi {' '.join(command[:2])}`:"
                f" {failures.last_words(str(why))}{rest}"
            ) from None
        # Whoever writes the source's state may have done so since it was looked at.
        came = (it for it in state.read(new).resources if it["urn"] not in there)
        team_state.check_came(came, taken, dest)
    say(f"team {team} is now in stack {dest}; nothing of it was touched")


def _commands(
    resources: Sequence[Mapping[str, Any]], team: str, source: str, dest: str
) -> list[list[str]]:
    """What takes a team along, for the CLI to run in this order.

    A move copies the providers of what it moves and leaves the old ones behind. Where one is itself
    below what moves, as a vCluster's is, it would be left without its parent, and the CLI refuses
    that. So what needs such a provider goes first, then the old provider, then the rest.
    """
    paths: dict[str, list[str]] = {}  # each resource with what it is below, from the stack on
    for it in resources:  # parents come first
        paths[str(it["urn"])] = [*paths.get(str(it.get("parent")), ()), str(it["urn"])]
    inside = [it for it in resources if team in paths[str(it["urn"])]]
    providers = [str(it["urn"]) for it in inside if str(it["type"]).startswith(PROVIDERS)]
    kept = {urn for provider in providers for urn in paths[provider]}
    first = dict.fromkeys(
        next(urn for urn in paths[str(it["urn"])] if urn not in kept)
        for it in inside
        if not state.needed_by(it).isdisjoint(providers)
    )
    moves = ["state", "move", "--yes", "--source", source, "--dest", dest]
    return [
        *([[*moves, *first]] if first else []),
        *(["state", "delete", "--yes", "--stack", source, urn] for urn in providers),
        [*moves, team],
    ]
