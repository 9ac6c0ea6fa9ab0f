"""A new team: its entry in a stack file, and what is left to do where that is written already."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from kai_fleet.settings.files.project import update_command
from kai_fleet.settings.sections.kubernetes import gpu_devices
from kai_fleet.settings.sections.platform import TeamName
from kai_fleet_cli.stack_file import edit, reading
from kai_fleet_cli.stack_file.write import Edit
from kai_fleet_cli.teams import lookup, nodes
from kai_fleet_cli.teams.changes import TeamChange, check_version, only_update
from kai_fleet_cli.teams.lookup import PlatformFile, config_keys
from kai_fleet_cli.teams.questions import TeamAnswers
from kubectl_fleet.errors import UserError
from kubectl_fleet.wording import counted, listed

_HEAD: Final = (
    "# yaml-language-server: $schema=components/kai_fleet/settings/stack.schema.json\n"
    "# Team {name} of stack {platform}, in a stack of its own.\n"
)


def add(platform: PlatformFile, name: str, answers: TeamAnswers, *, own: bool) -> TeamChange:
    """A new team, in the platform's file or in a stack file of its own. Raises UserError."""
    if answers.mode == "virtual":
        check_version(answers.version)
    team = _entry(name, answers)
    schedules = {
        "virtual": f"KAI {answers.version} inside its vCluster",
        "host": f"the host's KAI, in queue {team.get('queue')}",
        "default": "Kubernetes' own scheduler",
    }
    on = f" on nodes {nodes.pairs_text(answers.pool)}" if answers.pool else ""
    sentence = (
        f"{name}: new team in mode {answers.mode}: a vCluster{on}, {schedules[answers.mode]},"
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


def _entry(name: str, answers: TeamAnswers) -> dict[str, Any]:
    """A team as a stack file writes it, its keys in the order of the other stack files."""
    team: dict[str, Any] = {"scheduler": {"mode": answers.mode}}
    if answers.mode == "virtual":
        team["scheduler"]["version"] = answers.version
    if answers.pool:
        team["nodePool"] = dict(answers.pool)
    if answers.mode == "host":
        team["queue"] = next(iter(answers.queues), "")
    team["gpus"] = answers.gpus or 0
    if answers.mode == "virtual":
        # One queue for all GPUs and the others below it: two levels schedule in every version.
        top = next(top for top in ("default", name, f"{name}-all") if top not in answers.queues)
        leaves = {leaf: {"gpu": _amount(leaf, quota)} for leaf, quota in answers.queues.items()}
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
    platform: PlatformFile, name: str, flags: TeamAnswers, made: Callable[[], bool]
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
