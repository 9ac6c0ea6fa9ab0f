"""Two KAI versions side by side: a second team, NAME-next, on a part of a team's nodes and GPUs.

A team with a stack of its own is tried beside in a second such stack: one account and one grant
each. The trial's grant comes out of the team's, so that the two have what the one had.
"""

import copy
from collections.abc import Mapping
from typing import Any, Final

from kai_fleet.settings.files.project import FLEET, update_command
from kai_fleet.values import value_at
from kai_fleet.wording import counted
from kai_fleet_cli.diff.consequences import kai_switch
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file.edit import GONE
from kai_fleet_cli.stack_file.reading import SECRET
from kai_fleet_cli.teams import changes, lookup, new_team, nodes, queues
from kai_fleet_cli.teams.changes import TeamChange
from kai_fleet_cli.teams.lookup import GRANTS, TEAMS, Keys, PlatformFile, TeamPlace, config_keys

NEXT: Final = "-next"


def begin(
    platform: PlatformFile, name: str, version: str, pool: Mapping[str, str], gpus: int
) -> TeamChange:
    """Put NAME-next with `version` and `gpus` of NAME's beside it. Raises UserError."""
    place = platform.team(name)
    old = changes.written_kai(place)
    changes.check_version(version, untested=place.scheduler.get("untested") is True)
    trial = f"{name}{NEXT}"
    if trial in platform.teams:
        raise UserError(
            f"team {trial} is there already; first: {_command(platform, 'adopt', name)}, or"
            f" {_command(platform, 'drop', name)}. If it is not made yet:"
            f" {update_command(platform.teams[trial].stack)}"
        )
    whole = place.whole_gpus
    if not 0 < gpus < whole:
        fits = f"from 1 to {whole - 1}" if whole > 1 else "that it has"
        raise UserError(
            f"--gpus {gpus} cannot be taken from team {name}, which has {whole}; write a number"
            f" {fits}"
        )
    tree = _tree(place)
    stays, taken = queues.split(tree, whole, gpus)
    team = _copy(platform, place, queues.with_numbers(tree, taken))
    team["scheduler"] |= {"version": version}
    part = {"nodePool": dict(pool), "gpus": gpus}
    team |= part
    values = _below(place, whole - gpus, stays)
    updates: tuple[str, ...] = (platform.stack,)
    if place.own:
        if value_at(platform.raw, "cluster.context") is None:
            raise UserError(
                f"{platform.file.name} names no context, so that {trial} needs credentials of its"
                f" own in its stack file; add it with"
                f" {_command(platform, 'add', trial)} --own-stack --no-up,"
                f" and lower what team {name} has and is granted"
            )
        left = _granted(platform, place) - gpus
        grants = {config_keys(GRANTS, name, "gpus"): left, config_keys(GRANTS, trial): part}
        own_file = new_team.own_file(platform, trial, team)
        edits = [platform.edited(grants), place.edited(values), own_file]
        # The team gives up its part before the other one takes it.
        updates = (platform.stack, place.stack, lookup.own_stack(platform.stack, trial))
    else:
        edits = [platform.edited(values | {config_keys(TEAMS, trial): team})]
    sentences = (
        f"{trial}: {gpus} of {name}'s {counted(whole, 'GPU')}, nodes {nodes.pairs_text(pool)},"
        f" KAI {version} beside {old}",
        f"{name} keeps {counted(whole - gpus, 'GPU')}, and its queues the same part of what they"
        " had",
    )
    return TeamChange(platform, edits, sentences, updates, (name, trial))


def adopt(platform: PlatformFile, name: str) -> TeamChange:
    """Give NAME the version of NAME-next, and all GPUs back. Raises UserError."""
    return _end(platform, name.removesuffix(NEXT), "adopt")


def drop(platform: PlatformFile, name: str) -> TeamChange:
    """Take NAME-next away and give its GPUs back to NAME. Raises UserError."""
    return _end(platform, name.removesuffix(NEXT), "drop")


def _end(platform: PlatformFile, name: str, verb: str) -> TeamChange:
    place = platform.team(name)
    if (trial := platform.teams.get(f"{name}{NEXT}")) is None:
        raise UserError(
            f"there is no team {name}{NEXT} beside {name}; begin with:"
            f" {_command(platform, 'try', f'{name} VERSION')} --pool KEY=VALUE --gpus N"
        )
    sentences, version = [], {}
    if verb == "adopt":
        old, new = changes.written_kai(place), changes.written_kai(trial)
        version = {(*place.keys, "scheduler", "version"): new} if old != new else {}
        switch = f"{kai_switch(old, new)}; its queues and running pods stay"
        sentences = [
            f"{name}: {switch if version else f'KAI {old} stays, {trial.name} has no other'}"
        ]
    if place.own != trial.own:
        where = "stacks of their own" if place.own else f"stack {platform.stack}"
        raise UserError(
            f"teams {name} and {trial.name} are not both in {where}; end the trial by hand:"
            f" {_command(platform, 'remove', trial.name)}"
        )
    whole = place.whole_gpus + trial.whole_gpus
    values = _below(place, whole, queues.joined(_tree(place), _tree(trial))) | version
    if place.own:
        granted = _granted(platform, place) + _granted(platform, trial)
        of_trial = config_keys(GRANTS, trial.name)
        grants = {config_keys(GRANTS, name, "gpus"): granted, of_trial: GONE}
        edits = [platform.edited(grants), place.edited(values), trial.removed()]
    else:
        edits = [platform.edited(values | {trial.keys: GONE})]
    back = nodes.labelling([], place.node_pool) if place.node_pool else ""
    stack = f", and stack {trial.stack} with its file and grant" if trial.own else ""
    labels = nodes.pairs_text(trial.node_pool) or "its nodes"
    sentences += [
        f"{trial.name} goes with its namespace and every pod in it{stack}; its GPUs are {name}'s",
        f"nodes {labels} are nobody's then; give each one back: {back}",
    ]
    teams, updates = (name, trial.name), tuple(dict.fromkeys((platform.stack, place.stack)))
    return TeamChange(platform, edits, sentences, updates, teams, goes=trial.name, verb=verb)


def _command(platform: PlatformFile, verb: str, rest: str) -> str:
    return f"{FLEET} team {verb} {rest} --stack {platform.stack}"


def _tree(place: TeamPlace) -> Any:
    """A team's queues as its stack file has them. Raises UserError where they are elsewhere."""
    tree = place.raw.get("queues") or {}
    if isinstance(tree, str):
        raise UserError(
            f"{place.path}.queues of team {place.name} is in {tree}, which this command does not"
            f" divide; write the tree into {place.file.name} for as long as the trial takes"
        )
    return tree


def _copy(platform: PlatformFile, place: TeamPlace, tree: Any) -> dict[str, Any]:
    """A team's settings for a second one, with another queue tree."""
    team = copy.deepcopy(dict(place.raw))
    if SECRET in repr(team):
        own = " --own-stack" if place.own else ""
        raise UserError(
            f"{place.path} has an encrypted value, which is for one team; add {place.name}{NEXT}"
            f" with {_command(platform, 'add', f'{place.name}{NEXT}')}{own}, and encrypt the value"
            " there"
        )
    team.pop("name", None)  # in a file of its own it has one
    team.get("vcluster", {}).get("access", {}).pop("port", None)  # it is the first team's
    team |= {"queues": tree} if tree else {}
    return team


def _granted(platform: PlatformFile, place: TeamPlace) -> int:
    """The GPUs of a team's grant. Raises UserError where there is no such grant."""
    gpus = value_at(platform.grants, f"{place.name}.gpus")
    if not isinstance(gpus, int):
        raise UserError(
            f"{platform.file.name} grants team {place.name} no GPUs; write"
            f" {config_keys(GRANTS, place.name, 'gpus')[1]}.{place.name}.gpus"
        )
    return gpus


def _below(place: TeamPlace, gpus: int, numbers: Mapping[Keys, Any]) -> dict[Keys, Any]:
    """A team's GPUs and the numbers in its queues, by their places in its stack file."""
    of_queues = {(*place.keys, "queues", *field): number for field, number in numbers.items()}
    return {(*place.keys, "gpus"): gpus, **of_queues}
