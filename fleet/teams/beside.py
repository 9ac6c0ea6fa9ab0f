"""Two KAI versions side by side: a second team on a part of the nodes, then one of the two."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fleet.diffs.transitions_in_words import kai_switch
from fleet.environment import NotPossible
from fleet.stack_file import SECRET
from fleet.teams import beside_files
from fleet.teams.beside_files import Written
from fleet.teams.places import Place, Platform
from fleet.teams.split import Field, joined, split, with_numbers
from fleet.teams.switch import known_version, running_kai
from fleet.teams.update import Change

NEXT: Final = "-next"


def tried(
    platform: Platform, name: str, version: str, pool: Mapping[str, str], gpus: int
) -> Change:
    """The change that puts NAME-next with `version` and `gpus` of NAME's beside it."""
    place = platform.team(name)
    old = running_kai(place)
    known_version(version, untested=place.scheduler.get("untested") is True)
    beside = f"{name}{NEXT}"
    if beside in platform.teams:
        raise NotPossible(
            f"team {beside} is there already; first: fleet team adopt {name}, or fleet team drop"
            f" {name}"
        )
    whole = place.raw.get("gpus", 0)
    if not isinstance(whole, int) or not 0 < gpus < whole:
        fits = f"from 1 to {whole - 1}" if isinstance(whole, int) and whole > 1 else "that it has"
        raise NotPossible(
            f"--gpus {gpus} cannot be taken from team {name}, which has {whole}; write a number"
            f" {fits}"
        )
    tree = _tree(place)
    parts = split(tree, whole, gpus)
    team = _copied(place, version, pool, gpus, with_numbers(tree, parts.taken))
    numbers: dict[Field, Any] = {("gpus",): whole - gpus}
    numbers |= {("queues", *field): number for field, number in parts.stays.items()}
    written = beside_files.begun(platform, place, beside, team, numbers)
    labels = _labels(pool)
    sentences = (
        f"{beside}: {gpus} of {name}'s {whole} GPUs, nodes {labels}, KAI {version} beside {old}",
        f"{name} keeps {whole - gpus} GPUs, and its queues the same part of what they had",
    )
    return _change(platform, name, written, sentences)


def adopted(platform: Platform, name: str) -> Change:
    """The change that gives NAME the version of NAME-next, and all GPUs back."""
    place, beside = _pair(platform, name)
    old, new = running_kai(place), running_kai(beside)
    version = {("scheduler", "version"): new} if old != new else {}
    written = beside_files.ended(platform, place, beside, _together(place, beside) | version)
    way = kai_switch(old, new)
    sentences = (
        f"{name}: KAI {old} → {new}, {way}; its queues and running pods stay",
        *_gone(place, beside),
    )
    return _change(platform, name, written, sentences)


def dropped(platform: Platform, name: str) -> Change:
    """The change that takes NAME-next away and gives its GPUs back to NAME."""
    place, beside = _pair(platform, name.removesuffix(NEXT))
    written = beside_files.ended(platform, place, beside, _together(place, beside))
    return _change(platform, place.name, written, tuple(_gone(place, beside)))


def labelling(nodes: Sequence[str], pool: Mapping[str, str]) -> str:
    """The command that gives nodes to a pool."""
    labels = " ".join(f"{key}={value}" for key, value in pool.items())
    return f"kubectl label node {' '.join(nodes) or '<node>'} {labels} --overwrite"


def _gone(place: Place, beside: Place) -> list[str]:
    pool = beside.raw.get("nodePool")
    mine = place.raw.get("nodePool")
    back = labelling([], mine) if isinstance(mine, Mapping) else ""
    stack = f", and stack {beside.stack} with its file and grant" if beside.own else ""
    labels = _labels(pool) if isinstance(pool, Mapping) else "its nodes"
    return [
        f"{beside.name} goes with its namespace and every pod in it{stack}; its GPUs are"
        f" {place.name}'s",
        f"nodes {labels} are nobody's then; give each one back: {back}",
    ]


def _pair(platform: Platform, name: str) -> tuple[Place, Place]:
    place = platform.team(name)
    if f"{name}{NEXT}" not in platform.teams:
        raise NotPossible(
            f"there is no team {name}{NEXT} beside {name}; begin with: fleet team try {name}"
            " VERSION --pool KEY=VALUE --gpus N"
        )
    return place, platform.team(f"{name}{NEXT}")


def _tree(place: Place) -> Any:
    """A team's queues as its stack file has them. Raises NotPossible where they are elsewhere."""
    tree = place.raw.get("queues") or {}
    if isinstance(tree, str):
        raise NotPossible(
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
        raise NotPossible(
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


def _together(place: Place, beside: Place) -> dict[Field, Any]:
    """The team's own values with the trial's GPUs and quotas added."""
    mine, theirs = place.raw.get("gpus", 0), beside.raw.get("gpus", 0)
    tree = joined(_tree(place), _tree(beside))
    return {("gpus",): mine + theirs} | {("queues", *field): n for field, n in tree.items()}


def _change(platform: Platform, name: str, written: Written, sentences: tuple[str, ...]) -> Change:
    teams = (name, f"{name}{NEXT}")
    return Change(platform, written.edits, sentences, written.updates, teams, written.destroys)


def _labels(pool: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in pool.items())
