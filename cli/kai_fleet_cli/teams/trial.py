"""Two KAI versions side by side: a second team, NAME-next, on a part of a team's nodes and GPUs.

A team with a stack of its own is tried beside in a second such stack: one account and one grant
each. The trial's grant comes out of the team's, so that the two have what the one had.
"""

import copy
from collections.abc import Mapping
from typing import Any, Final

from kai_fleet.settings.files.project import update_command
from kai_fleet_cli.diff.transitions import kai_switch
from kai_fleet_cli.recovery import resume
from kai_fleet_cli.stack_file.reading import SECRET, encrypted
from kai_fleet_cli.stack_file.write import Edit, edited, read_text
from kai_fleet_cli.teams import changes, lookup, new_team, nodes, queues
from kai_fleet_cli.teams.changes import TeamChange
from kai_fleet_cli.teams.lookup import GRANTS, PlatformFile, TeamPlace, config_keys
from kai_fleet_cli.teams.queues import Field
from kubectl_fleet.errors import UserError
from kubectl_fleet.paths import value_at
from kubectl_fleet.wording import counted

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
            f"team {trial} is there already; first: fleet team adopt {name}, or fleet team drop"
            f" {name}. If it is not made yet: {update_command(platform.teams[trial].stack)}"
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
    team = _copy(place, version, pool, gpus, queues.with_numbers(tree, taken))
    own = _below(place, whole - gpus, stays)
    stacks: tuple[str, ...] = (platform.stack,)
    if place.own:
        edits = _begin_own(platform, place, trial, team, own)
        # The team gives up its part before the other one takes it.
        stacks = (platform.stack, place.stack, lookup.own_stack(platform.stack, trial))
    else:
        values = own | {(*place.keys[:2], trial): team}
        edits = (edited(platform.file, platform.text, values),)
    sentences = (
        f"{trial}: {gpus} of {name}'s {counted(whole, 'GPU')}, nodes {nodes.pairs_text(pool)},"
        f" KAI {version} beside {old}",
        f"{name} keeps {counted(whole - gpus, 'GPU')}, and its queues the same part of what they"
        " had",
    )
    comes = "" if place.own else trial
    return TeamChange(platform, edits, sentences, stacks, (name, trial), comes=comes)


def _begin_own(
    platform: PlatformFile,
    place: TeamPlace,
    trial: str,
    team: dict[str, Any],
    own: Mapping[Field, Any],
) -> tuple[Edit, ...]:
    if value_at(platform.raw, "cluster.context") is None:
        raise UserError(
            f"{platform.file.name} names no context, so that {trial} needs credentials of its own"
            f" in its stack file; add it with fleet team add {trial} --own-stack --no-up, and"
            f" lower what team {place.name} has and is granted"
        )
    gpus = team["gpus"]
    values = {
        config_keys(GRANTS, place.name, "gpus"): _granted(platform, place) - gpus,
        config_keys(GRANTS, trial): {"nodePool": team["nodePool"], "gpus": gpus},
    }
    return (
        edited(platform.file, platform.text, values),
        edited(place.file, read_text(place.file), own),
        new_team.own_file(platform, trial, team),
    )


def adopt(platform: PlatformFile, name: str) -> TeamChange:
    """Give NAME the version of NAME-next, and all GPUs back. Raises UserError."""
    place, trial = _pair(platform, name)
    old, new = changes.written_kai(place), changes.written_kai(trial)
    version = {(*place.keys, "scheduler", "version"): new} if old != new else {}
    sentence = f"{name}: {kai_switch(old, new)}; its queues and running pods stay"
    return _end(platform, place, trial, version, (sentence,), "adopt")


def drop(platform: PlatformFile, name: str) -> TeamChange:
    """Take NAME-next away and give its GPUs back to NAME. Raises UserError."""
    place, trial = _pair(platform, name.removesuffix(NEXT))
    return _end(platform, place, trial, {}, (), "drop")


def _end(
    platform: PlatformFile,
    place: TeamPlace,
    trial: TeamPlace,
    own: dict[Field, Any],
    sentences: tuple[str, ...],
    verb: str,
) -> TeamChange:
    """Take the trial away; the team gets its part back, and the values of `own` at their places."""
    if place.own != trial.own:
        where = "stacks of their own" if place.own else f"stack {platform.stack}"
        raise UserError(
            f"teams {place.name} and {trial.name} are not both in {where}; end the trial by hand:"
            f" fleet team remove {trial.name}"
        )
    tree = queues.joined(_tree(place), _tree(trial))
    gpus = place.whole_gpus + trial.whole_gpus
    values = _below(place, gpus, tree) | own
    edits: tuple[Edit, ...]
    stacks: tuple[str, ...] = (platform.stack,)
    destroys: tuple[str, ...] = ()
    if place.own:
        granted = _granted(platform, place) + _granted(platform, trial)
        grant = {config_keys(GRANTS, place.name, "gpus"): granted}
        gone = [config_keys(GRANTS, trial.name)]
        edits = (
            edited(platform.file, platform.text, grant, gone=gone),
            edited(place.file, read_text(place.file), values),
            Edit(trial.file, read_text(trial.file), None),
        )
        stacks, destroys = (platform.stack, place.stack), (trial.stack,)
    else:
        gone = [(*place.keys[:2], trial.name)]
        edits = (edited(platform.file, platform.text, values, gone=gone),)
    teams = (place.name, trial.name)
    told = (*sentences, *_losses(place, trial))
    command = f"{resume.FLEET} team {verb} {place.name} --stack {platform.stack}"
    return TeamChange(
        platform, edits, told, stacks, teams, destroys, goes=trial.name, command=command
    )


def _losses(place: TeamPlace, trial: TeamPlace) -> list[str]:
    back = nodes.labelling([], place.node_pool) if place.node_pool else ""
    stack = f", and stack {trial.stack} with its file and grant" if trial.own else ""
    labels = nodes.pairs_text(trial.node_pool) or "its nodes"
    return [
        f"{trial.name} goes with its namespace and every pod in it{stack}; its GPUs are"
        f" {place.name}'s",
        f"nodes {labels} are nobody's then; give each one back: {back}",
    ]


def _pair(platform: PlatformFile, name: str) -> tuple[TeamPlace, TeamPlace]:
    place = platform.team(name)
    if f"{name}{NEXT}" not in platform.teams:
        raise UserError(
            f"there is no team {name}{NEXT} beside {name}; begin with: fleet team try {name}"
            " VERSION --pool KEY=VALUE --gpus N"
        )
    return place, platform.team(f"{name}{NEXT}")


def _tree(place: TeamPlace) -> Any:
    """A team's queues as its stack file has them. Raises UserError where they are elsewhere."""
    tree = place.raw.get("queues") or {}
    if isinstance(tree, str):
        raise UserError(
            f"{place.path}.queues of team {place.name} is in {tree}, which this command does not"
            f" divide; write the tree into {place.file.name} for as long as the trial takes"
        )
    return tree


def _copy(
    place: TeamPlace, version: str, pool: Mapping[str, str], gpus: int, tree: Any
) -> dict[str, Any]:
    """The second team: the first one's settings, but for version, nodes and amounts."""
    team = copy.deepcopy(dict(place.raw))
    if place.own and SECRET in repr(team):
        raise UserError(
            f"{place.path} has an encrypted value, which another stack cannot read; add"
            f" {place.name}{NEXT} with fleet team add {place.name}{NEXT} --own-stack, and encrypt"
            " the value there"
        )
    team.pop("name", None)  # in a file of its own it has one
    team["scheduler"] = dict(place.scheduler) | {"version": version}
    team.get("vcluster", {}).get("access", {}).pop("port", None)  # it is the first team's
    team |= {"nodePool": dict(pool), "gpus": gpus}
    if tree:
        team["queues"] = tree
    copied: dict[str, Any] = _encrypted(team, ".".join(place.keys[1:]), encrypted(place.file))
    return copied


def _encrypted(value: Any, path: str, ciphertexts: Mapping[str, str]) -> Any:
    """The value with its secrets as the file has them: one key encrypts all of a stack's."""
    if value == SECRET and path in ciphertexts:
        return {"secure": ciphertexts[path]}
    if isinstance(value, Mapping):
        return {key: _encrypted(it, f"{path}.{key}", ciphertexts) for key, it in value.items()}
    if isinstance(value, list):
        return [_encrypted(it, f"{path}[{n}]", ciphertexts) for n, it in enumerate(value)]
    return value


def _granted(platform: PlatformFile, place: TeamPlace) -> int:
    """The GPUs of a team's grant. Raises UserError where there is no such grant."""
    gpus = value_at(platform.grants, f"{place.name}.gpus")
    if not isinstance(gpus, int):
        raise UserError(
            f"{platform.file.name} grants team {place.name} no GPUs; write"
            f" {config_keys(GRANTS, place.name, 'gpus')[1]}.{place.name}.gpus"
        )
    return gpus


def _below(place: TeamPlace, gpus: int, numbers: Mapping[Field, Any]) -> dict[Field, Any]:
    """A team's GPUs and the numbers in its queues, by their places in its stack file."""
    of_queues = {(*place.keys, "queues", *field): number for field, number in numbers.items()}
    return {(*place.keys, "gpus"): gpus, **of_queues}
