"""Two KAI versions side by side: a second team on a part of the nodes, then one of the two."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from components.settings.mistakes import NAMESPACE
from fleet.diffs.transitions_in_words import kai_switch
from fleet.environment import NotPossible
from fleet.stack_edit import NotEditable, with_values, without
from fleet.stack_file import SECRET
from fleet.stack_write import Edit
from fleet.teams.places import TEAMS, Place, Platform
from fleet.teams.split import Field, joined, split, with_numbers
from fleet.teams.switch import known_version, running_kai
from fleet.teams.update import Change

NEXT: Final = "-next"


def tried(
    platform: Platform, name: str, version: str, pool: Mapping[str, str], gpus: int
) -> Change:
    """The change that puts NAME-next with `version` and `gpus` of NAME's beside it."""
    place = _in_platform(platform, name)
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
    tree = place.raw.get("queues") or {}
    parts = split(tree, whole, gpus)
    team = _copied(place, version, pool, gpus, with_numbers(tree, parts.taken))
    numbers: dict[Field, Any] = {("gpus",): whole - gpus}
    numbers |= {("queues", *field): number for field, number in parts.stays.items()}
    after = _edited(platform, place, numbers, {(*place.keys[:2], beside): team})
    labels = _labels(pool)
    sentences = (
        f"{beside}: {gpus} of {name}'s {whole} GPUs, nodes {labels}, KAI {version} beside {old}",
        f"{name} keeps {whole - gpus} GPUs, and its queues the same part of what they had",
    )
    return Change(
        platform, (Edit(platform.file, platform.text, after),), sentences, (platform.stack,)
    )


def adopted(platform: Platform, name: str) -> Change:
    """The change that gives NAME the version of NAME-next, and all GPUs back."""
    place, beside = _pair(platform, name)
    old, new = running_kai(place), running_kai(beside)
    version = {(*place.keys, "scheduler", "version"): new} if old != new else {}
    text = _back_together(platform, place, beside, version)
    way = kai_switch(old, new)
    sentences = (
        f"{name}: KAI {old} → {new}, {way}; its queues and running pods stay",
        *_gone(place, beside),
    )
    return Change(
        platform, (Edit(platform.file, platform.text, text),), sentences, (platform.stack,)
    )


def dropped(platform: Platform, name: str) -> Change:
    """The change that takes NAME-next away and gives its GPUs back to NAME."""
    place, beside = _pair(platform, name.removesuffix(NEXT))
    text = _back_together(platform, place, beside, {})
    return Change(
        platform,
        (Edit(platform.file, platform.text, text),),
        tuple(_gone(place, beside)),
        (platform.stack,),
    )


def labelling(nodes: Sequence[str], pool: Mapping[str, str]) -> str:
    """The command that gives nodes to a pool."""
    labels = " ".join(f"{key}={value}" for key, value in pool.items())
    return f"kubectl label node {' '.join(nodes) or '<node>'} {labels} --overwrite"


def _gone(place: Place, beside: Place) -> list[str]:
    pool = beside.raw.get("nodePool")
    mine = place.raw.get("nodePool")
    back = labelling([], mine) if isinstance(mine, Mapping) else ""
    labels = _labels(pool) if isinstance(pool, Mapping) else "its nodes"
    return [
        f"{beside.name} goes with its namespace and every pod in it; its GPUs are {place.name}'s",
        f"nodes {labels} are nobody's then; give each one back: {back}",
    ]


def _pair(platform: Platform, name: str) -> tuple[Place, Place]:
    place = _in_platform(platform, name)
    if f"{name}{NEXT}" not in platform.teams:
        raise NotPossible(
            f"there is no team {name}{NEXT} beside {name}; begin with: fleet team try {name}"
            " VERSION --pool KEY=VALUE --gpus N"
        )
    return place, _in_platform(platform, f"{name}{NEXT}")


def _in_platform(platform: Platform, name: str) -> Place:
    place = platform.team(name)
    if place.own:
        raise NotPossible(
            f"team {name} has a stack of its own, {place.stack}; add a second one beside it: fleet"
            f" team add {name}{NEXT} --stack {platform.stack} --own-stack"
        )
    return place


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
    team["scheduler"] = dict(place.scheduler) | {"version": version}
    access = team.get("vcluster", {}).get("access", {})
    access.pop("port", None)  # it is the first team's
    team |= {"nodePool": dict(pool), "gpus": gpus}
    if tree:
        team["queues"] = tree
    return team


def _back_together(
    platform: Platform, place: Place, beside: Place, more: Mapping[Field, Any]
) -> str:
    mine, theirs = place.raw.get("gpus", 0), beside.raw.get("gpus", 0)
    numbers: dict[Field, Any] = {("gpus",): mine + theirs}
    tree = joined(place.raw.get("queues"), beside.raw.get("queues"))
    numbers |= {("queues", *field): number for field, number in tree.items()}
    text = _edited(platform, place, numbers, more)
    try:
        return without(text, ("config", f"{NAMESPACE}:{TEAMS}", beside.name))
    except NotEditable as why:
        raise NotPossible(f"{platform.file.name}: {why}") from None


def _edited(
    platform: Platform, place: Place, numbers: Mapping[Field, Any], more: Mapping[Field, Any]
) -> str:
    """The platform's file with numbers of a team, and more values by their whole keys."""
    values = {(*place.keys, *field): number for field, number in numbers.items()}
    try:
        return with_values(platform.text, values | dict(more))
    except NotEditable as why:
        raise NotPossible(f"{platform.file.name}: {why}") from None


def _labels(pool: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in pool.items())
