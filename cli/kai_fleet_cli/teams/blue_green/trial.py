"""Two KAI versions side by side: a second team on a part of the nodes, then one of the two."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kai_fleet_cli.diff.transitions import kai_switch
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file.reading import SECRET
from kai_fleet_cli.teams.blue_green import files
from kai_fleet_cli.teams.blue_green.files import Written
from kai_fleet_cli.teams.blue_green.split import Field, joined, split, with_numbers
from kai_fleet_cli.teams.lookup import Place, Platform
from kai_fleet_cli.teams.switch import known_version, running_kai
from kai_fleet_cli.teams.update import Change

NEXT: Final = "-next"


def tried(
    platform: Platform, name: str, version: str, pool: Mapping[str, str], gpus: int
) -> Change:
    """The change that puts NAME-next with `version` and `gpus` of NAME's beside it."""
    place = platform.team(name)
    old = running_kai(place)
    known_version(version, untested=place.scheduler.get("untested") is True)
    trial = f"{name}{NEXT}"
    if trial in platform.teams:
        raise UserError(
            f"team {trial} is there already; first: fleet team adopt {name}, or fleet team drop"
            f" {name}"
        )
    whole = place.raw.get("gpus", 0)
    if not isinstance(whole, int) or not 0 < gpus < whole:
        fits = f"from 1 to {whole - 1}" if isinstance(whole, int) and whole > 1 else "that it has"
        raise UserError(
            f"--gpus {gpus} cannot be taken from team {name}, which has {whole}; write a number"
            f" {fits}"
        )
    tree = _tree(place)
    parts = split(tree, whole, gpus)
    team = _copied(place, version, pool, gpus, with_numbers(tree, parts.taken))
    numbers: dict[Field, Any] = {("gpus",): whole - gpus}
    numbers |= {("queues", *field): number for field, number in parts.stays.items()}
    written = files.begun(platform, place, trial, team, numbers)
    labels = _labels(pool)
    sentences = (
        f"{trial}: {gpus} of {name}'s {whole} GPUs, nodes {labels}, KAI {version} beside {old}",
        f"{name} keeps {whole - gpus} GPUs, and its queues the same part of what they had",
    )
    return _change(platform, name, written, sentences)


def adopted(platform: Platform, name: str) -> Change:
    """The change that gives NAME the version of NAME-next, and all GPUs back."""
    place, trial = _pair(platform, name)
    old, new = running_kai(place), running_kai(trial)
    version = {("scheduler", "version"): new} if old != new else {}
    written = files.ended(platform, place, trial, _together(place, trial) | version)
    way = kai_switch(old, new)
    sentences = (
        f"{name}: KAI {old} → {new}, {way}; its queues and running pods stay",
        *_gone(place, trial),
    )
    return _change(platform, name, written, sentences)


def dropped(platform: Platform, name: str) -> Change:
    """The change that takes NAME-next away and gives its GPUs back to NAME."""
    place, trial = _pair(platform, name.removesuffix(NEXT))
    written = files.ended(platform, place, trial, _together(place, trial))
    return _change(platform, place.name, written, tuple(_gone(place, trial)))


def labelling(nodes: Sequence[str], pool: Mapping[str, str]) -> str:
    """The command that gives nodes to a pool."""
    labels = " ".join(f"{key}={value}" for key, value in pool.items())
    return f"kubectl label node {' '.join(nodes) or '<node>'} {labels} --overwrite"


def _gone(place: Place, trial: Place) -> list[str]:
    pool = trial.raw.get("nodePool")
    mine = place.raw.get("nodePool")
    back = labelling([], mine) if isinstance(mine, Mapping) else ""
    stack = f", and stack {trial.stack} with its file and grant" if trial.own else ""
    labels = _labels(pool) if isinstance(pool, Mapping) else "its nodes"
    return [
        f"{trial.name} goes with its namespace and every pod in it{stack}; its GPUs are"
        f" {place.name}'s",
        f"nodes {labels} are nobody's then; give each one back: {back}",
    ]


def _pair(platform: Platform, name: str) -> tuple[Place, Place]:
    place = platform.team(name)
    if f"{name}{NEXT}" not in platform.teams:
        raise UserError(
            f"there is no team {name}{NEXT} beside {name}; begin with: fleet team try {name}"
            " VERSION --pool KEY=VALUE --gpus N"
        )
    return place, platform.team(f"{name}{NEXT}")


def _tree(place: Place) -> Any:
    """A team's queues as its stack file has them. Raises UserError where they are elsewhere."""
    tree = place.raw.get("queues") or {}
    if isinstance(tree, str):
        raise UserError(
            f"{place.path}.queues of team {place.name} is in {tree}, which this command does not"
            f" divide; write the tree into {place.file.name} for as long as the trial takes"
        )
    return tree


def _copied(
    place: Place, version: str, pool: Mapping[str, str], gpus: int, tree: Any
) -> dict[str, Any]:
    """The second team: the first one's settings, but for version, nodes and amounts."""
    team = copy.deepcopy(dict(place.raw))
    if SECRET in repr(team):
        raise UserError(
            f"{place.path} has an encrypted value, which cannot be copied; add {place.name}{NEXT}"
            " with fleet team add"
        )
    team.pop("name", None)  # in a file of its own it has one
    team["scheduler"] = dict(place.scheduler) | {"version": version}
    access = team.get("vcluster", {}).get("access", {})
    access.pop("port", None)  # it is the first team's
    team |= {"nodePool": dict(pool), "gpus": gpus}
    if tree:
        team["queues"] = tree
    return team


def _together(place: Place, trial: Place) -> dict[Field, Any]:
    """The team's own values with the trial's GPUs and quotas added."""
    mine, theirs = place.raw.get("gpus", 0), trial.raw.get("gpus", 0)
    tree = joined(_tree(place), _tree(trial))
    return {("gpus",): mine + theirs} | {("queues", *field): n for field, n in tree.items()}


def _change(platform: Platform, name: str, written: Written, sentences: tuple[str, ...]) -> Change:
    teams = (name, f"{name}{NEXT}")
    return Change(platform, written.edits, sentences, written.updates, teams, written.destroys)


def _labels(pool: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in pool.items())
