"""A new team by flags: its lines go into a stack file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from kai_fleet.releases import KAI, advised
from kai_fleet.settings.files.project import update_command
from kai_fleet.settings.sections.kubernetes import gpu_devices
from kai_fleet.settings.sections.platform import TeamName
from kai_fleet.settings.sections.queues import walk
from kai_fleet.wording import counted, listed
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file import edit, reading
from kai_fleet_cli.stack_file.write import Edit
from kai_fleet_cli.teams import lookup, nodes, queues
from kai_fleet_cli.teams.changes import TeamChange, check_version, only_update
from kai_fleet_cli.teams.lookup import PlatformFile, TeamPlace, config_keys

MODES: Final = ("virtual", "host", "default")
_HEAD: Final = (
    "# yaml-language-server: $schema=components/kai_fleet/settings/stack.schema.json\n"
    "# Team {name} of stack {platform}, in a stack of its own.\n"
)


@dataclass(frozen=True)
class TeamFlags:
    """A new team. `queues` are leaf queues with their GPUs; in mode host it is the one it gets."""

    mode: str = ""
    version: str = ""
    pool: Mapping[str, str] = field(default_factory=dict)
    gpus: int | None = None
    queues: Mapping[str, str] = field(default_factory=dict)


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


def complete(flags: TeamFlags, platform: PlatformFile, name: str) -> TeamFlags:
    """The flags with the queue that a team has unless another is written.

    Raises UserError with the flag that is missing and a value for it, or that does not fit.
    """
    _require(flags.mode, f"--mode {'host' if 'kai' in platform.raw else 'virtual'}")
    mode = flags.mode
    if mode not in MODES:
        raise UserError(f"--mode {mode} is none; write one of {', '.join(MODES)}")
    if mode != "virtual" and flags.version:
        raise UserError(f"--version is for mode virtual; mode {mode} has no KAI of its own")
    if mode == "default" and flags.queues:
        raise UserError("--queue is for modes virtual and host; mode default has no queues")
    if mode == "host" and len(flags.queues) > 1:
        raise UserError("a team in mode host has one leaf queue of the host's; write one --queue")
    if mode == "virtual":
        _require(flags.version, f"--version {advised(KAI) or list(KAI)[-1]}")
        _require(flags.pool, f"--pool {nodes.pool_key(platform)}={name}")
    _require(flags.gpus is not None, "--gpus 4")
    if (flags.gpus or 0) < 0:
        raise UserError(f"--gpus {flags.gpus} is negative; write how many it may hold, such as 4")
    if mode == "host":
        leaves = queues.leaves(platform.raw.get("queues"))
        _require(flags.queues, f"--queue {name if name in leaves else next(iter(leaves), 'NAME')}")
    elif mode == "virtual" and not flags.queues:
        return replace(flags, queues={name: str(flags.gpus)})
    return flags


def _require(given: object, example: str) -> None:
    if not given:
        flag = example.partition(" ")[0]
        raise UserError(f"{flag} is missing; write, for example, {example}")


def add(platform: PlatformFile, name: str, flags: TeamFlags, *, own: bool) -> TeamChange:
    """A new team, in the platform's file or in a stack file of its own. Raises UserError."""
    if flags.mode == "virtual":
        check_version(flags.version)
    team = _entry(name, flags)
    schedules = {
        "virtual": f"KAI {flags.version} inside its vCluster",
        "host": f"the host's KAI, in queue {team.get('queue')}",
        "default": "Kubernetes' own scheduler",
    }
    on = f" on nodes {nodes.pairs_text(flags.pool)}" if flags.pool else ""
    sentence = (
        f"{name}: new team in mode {flags.mode}: a vCluster{on}, {schedules[flags.mode]},"
        f" {counted(team['gpus'], 'GPU')}"
    )
    if not own:
        edit = platform.edited({config_keys(lookup.TEAMS, name): team})
        return TeamChange(platform, [edit], [sentence], (platform.stack,), (name,))
    # The platform's file says that it may have what it asks for.
    of_grant = {"nodePool": "nodePool", "gpus": "gpus", "queue": "parentQueue"}
    grant = {key: team[its] for its, key in of_grant.items() if its in team}
    of_platform = platform.edited({config_keys(lookup.GRANTS, name): grant})
    edits = [of_platform, own_file(platform, name, team)]
    updates = (platform.stack, lookup.own_stack(platform.stack, name))
    return TeamChange(platform, edits, [sentence], updates, (name,))


def check_name(name: str) -> None:
    """Raise UserError for what is no team's name."""
    try:
        TypeAdapter(TeamName).validate_python(name)
    except ValidationError as error:
        (detail,) = error.errors()
        form = (
            "does not fit; write at most 40 lower-case letters, digits and dashes, a letter first"
            " and no dash last"
        )
        reason = detail["ctx"]["error"] if detail["type"] == "value_error" else form
        raise UserError(f"the name {name!r} {reason}") from None


def own_file(platform: PlatformFile, name: str, team: Mapping[str, Any]) -> Edit:
    """The stack file of a new team's own. Raises UserError where there is one of that name."""
    file = reading.path_of(lookup.own_stack(platform.stack, name))
    if file.exists():
        raise UserError(f"{file.name} is there already, for something else; write another name")
    config = {
        config_keys(lookup.PLATFORM)[1]: {"stack": platform.stack},
        config_keys(lookup.TEAM)[1]: {"name": name} | dict(team),
    }
    head = _HEAD.format(name=name, platform=platform.stack)
    return Edit(file, None, head + edit.block({"config": config}))


def _entry(name: str, flags: TeamFlags) -> dict[str, Any]:
    """A team as a stack file writes it, its keys in the order of the other stack files."""
    team: dict[str, Any] = {"scheduler": {"mode": flags.mode}}
    if flags.mode == "virtual":
        team["scheduler"]["version"] = flags.version
    if flags.pool:
        team["nodePool"] = dict(flags.pool)
    if flags.mode == "host":
        team["queue"] = next(iter(flags.queues), "")
    team["gpus"] = flags.gpus or 0
    if flags.mode == "virtual":
        # One queue for all GPUs and the others below it: two levels schedule in every version.
        top = next(top for top in ("default", name, f"{name}-all") if top not in flags.queues)
        leaves = {leaf: {"gpu": _amount(leaf, quota)} for leaf, quota in flags.queues.items()}
        team["queues"] = {top: {"gpu": team["gpus"], "children": leaves}}
    return team


def _amount(leaf: str, text: str) -> float | int:
    try:
        amount = gpu_devices(text)
    except ValueError as error:
        raise UserError(f"--queue {leaf}={text} {error}") from None
    if amount < 0:
        raise UserError(f"--queue {leaf}={text} cannot be guaranteed; write a number of GPUs")
    return int(amount) if amount.is_integer() else amount


def again(
    platform: PlatformFile, name: str, flags: TeamFlags, made: Callable[[], bool]
) -> TeamChange:
    """The update alone of a team that is written, and was never made.

    `made` reads whether the team's stack has its vCluster.

    Raises UserError where it has, and where flags want another team than the file.
    """
    place = platform.team(name)
    has = f"stack {platform.stack} has a team {name} already, in {place.file.name}"
    said = (
        ("--mode", flags.mode, place.mode),
        ("--version", flags.version, place.version),
        ("--pool", flags.pool, dict(place.node_pool)),
        ("--gpus", flags.gpus, place.gpus),
    )
    other = [flag for flag, wanted, written in said if wanted not in (None, "", {}, written)]
    if flags.queues and not other and not _has_queues(place, flags.queues):
        other = ["--queue"]
    if other:
        raise UserError(f"{has}, with another {listed(other, 'and')}; write another name")
    try:
        there = made()
    except UserError as why:
        make = f"if it is not made yet: {update_command(place.stack)}"
        raise UserError(f"{has}; whether it is made is not known: {why}; {make}") from None
    if there:
        raise UserError(f"{has}, and it is made; write another name")
    # The platform's stack comes first: it grants a team stack what it has.
    return only_update(platform, place, has, "it is not made yet", platform.stack)


def _has_queues(place: TeamPlace, wanted: Mapping[str, str]) -> bool:
    """Whether a team is written with these leaf queues and quotas; in mode host, with this one."""
    if place.mode == "host":
        return list(wanted) == [place.raw.get("queue")]
    tree = queues.filled(place.raw.get("queues"), place.gpus, place.pools)
    written = {it.name: it.queue.gpu.quota for it in walk(tree) if not it.queue.children}
    return written == {leaf: _amount(leaf, gpus) for leaf, gpus in wanted.items()}
