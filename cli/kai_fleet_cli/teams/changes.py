"""The edit that each team command makes, and what it says of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kai_fleet import releases
from kai_fleet.releases.transitions import kai_transition
from kai_fleet.settings.files.project import update_command
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file.edit import GONE, Keys, changed
from kai_fleet_cli.stack_file.write import Edit
from kai_fleet_cli.teams.lookup import TEAMS, DeclaredTeam, StackFile, config_keys

_EXAMPLES: Final = {
    "mode": "--mode virtual",
    "version": f"--version {releases.advised(releases.KAI) or list(releases.KAI)[-1]}",
    "pool": "--pool kai-fleet/pool={name}",
    "gpus": "--gpus 4",
    "queues": "--queue NAME, a leaf of kai-fleet:queues",
}
_NEEDED: Final = {"virtual": ("version", "pool", "gpus"), "host": ("gpus", "queues")}


@dataclass(frozen=True)
class TeamFlags:
    """A new team. `queues` are leaf queues with their GPUs; in mode host it is the one it gets."""

    mode: str = ""
    version: str = ""
    pool: Mapping[str, str] = field(default_factory=dict)
    gpus: int | None = None
    queues: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    """One edit of a stack file. `removes` is the team that goes with it, "" where none does."""

    file: StackFile
    edit: Edit
    sentences: Sequence[str]
    removes: str = ""

    @classmethod
    def of(
        cls, file: StackFile, keys: Keys, value: Any, *sentences: str, removes: str = ""
    ) -> "Change":
        """The change that has another value at these keys."""
        after = changed(file.text, keys, value, file.file.name)
        return cls(file, Edit(file.file, file.text, after), sentences, removes)


def key_values(items: Sequence[str], flag: str, example: str) -> dict[str, str]:
    """`KEY=VALUE` flags as a mapping. Raises UserError."""
    values: dict[str, str] = {}
    for item in items:
        key, _, value = item.partition("=")
        if not key or not value:
            raise UserError(f"{flag} {item} is not understood; write {flag} {example}")
        if key in values:
            raise UserError(f"{flag} has {key} twice; write it once")
        values[key] = value
    return values


def add(file: StackFile, name: str, flags: TeamFlags) -> Change:
    """A new team of a platform. Raises UserError for one that is there, and for missing flags."""
    if name in file.teams or name in file.grants:
        raise UserError(
            f"stack {file.stack} has a team {name} already, in {file.file.name}; write another"
            f" name, or make what is written: {update_command(file.stack)}"
        )
    if file.is_team_stack:
        raise UserError(f"stack {file.stack} is one team's own; write --stack with its platform's")
    for flag in ("mode", *_NEEDED.get(flags.mode, ("gpus",))):
        if getattr(flags, flag) in ("", None, {}):
            example = _EXAMPLES[flag].format(name=name)
            raise UserError(f"{example.split()[0]} is missing; write, for example, {example}")
    team: dict[str, Any] = {"scheduler": {"mode": flags.mode}}
    if flags.version:
        check_version(flags.version)
        team["scheduler"]["version"] = flags.version
    if flags.pool:
        team["nodePool"] = dict(flags.pool)
    if flags.mode == "host":
        team["queue"] = ", ".join(flags.queues)  # one; of more the rules say so
    team["gpus"] = flags.gpus
    if flags.mode == "virtual":
        # One queue for all GPUs and the others below it: two levels schedule in every version.
        leaves = flags.queues or {name: str(flags.gpus)}
        top = next(top for top in ("default", name, f"{name}-all") if top not in leaves)
        children = {leaf: {"gpu": _amount(text)} for leaf, text in leaves.items()}
        team["queues"] = {top: {"gpu": flags.gpus, "children": children}}
    sentence = f"{name}: a new team in mode {flags.mode}, with a vCluster of its own"
    return Change.of(file, config_keys(TEAMS, name), team, sentence)


def _amount(text: str) -> float | int | str:
    """A number of GPUs; what is none stays text, and the rules say what is wrong with it."""
    try:
        amount = float(text)
    except ValueError:
        return text
    return int(amount) if amount.is_integer() else amount


def switch(file: StackFile, team: DeclaredTeam, version: str) -> Change:
    """Another KAI version for a team. Raises UserError."""
    old = written_kai(file, team)
    check_version(version, untested=team.scheduler.get("untested") is True)
    keys = (*team.keys, "scheduler", "version")
    if version == old:
        has = f"{team.path} has version {version} already: what is left is the update"
        return Change.of(file, keys, version, has)
    return Change.of(file, keys, version, f"{team.name}: {_way(old, version)}")


def _way(old: str, new: str) -> str:
    """How a KAI gets from one version to another."""
    known = releases.KAI
    before, after = (
        known[releases.closest_known(known, old)],
        known[releases.closest_known(known, new)],
    )
    way = kai_transition(before, after)
    how = "replaced" if way.kind == "replace" else "upgraded in place"
    return f"KAI {old} → {new}, {how} ({way.why.partition(': ')[2]}); queues and running pods stay"


def written_kai(file: StackFile, team: DeclaredTeam) -> str:
    """The KAI version of a team that has its own. Raises UserError for the others."""
    if team.version is not None:
        return team.version
    if team.mode == "host":
        raise UserError(
            f"team {team.name} is in mode host: its pods are scheduled by the host's KAI, for all"
            " such teams; edit kai-fleet:kai.version in the platform's stack file"
        )
    raise UserError(
        f"team {team.name} is in mode {team.mode}, which has no KAI of its own; write"
        f" {team.path}.scheduler: {{mode: virtual, version: …}} in {file.file.name}"
    )


def check_version(version: str, *, untested: bool = False) -> None:
    """Raise UserError, with the nearest supported versions, for one that is not in the table."""
    try:
        releases.kai(version, untested=untested)
    except releases.UnknownVersionError as error:
        raise UserError(str(error)) from None


def remove(file: StackFile, team: DeclaredTeam, pods: str) -> Change:
    """A team goes with all that it has; `pods` says how many there are now. Raises UserError."""
    if file.is_team_stack:
        raise UserError(
            f"stack {file.stack} is team {team.name}'s own, and goes as a whole:"
            f" .venv/bin/fleet destroy --stack {file.stack}"
        )
    kai = f", its KAI {team.version} with every queue" if team.version else ""
    lost = f"{team.name} goes: namespace team-{team.name} with its volumes, the vCluster{kai}"
    return Change.of(file, team.keys, GONE, f"{lost}, and every pod in it{pods}", removes=team.name)
