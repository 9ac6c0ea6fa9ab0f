"""What a team command does: edits of stack files, in words, and the stacks to run afterwards."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from kai_fleet.settings.quantities import gpu_devices
from kai_fleet.settings.sections.platform import TeamName
from kai_fleet_cli import cluster_reader
from kai_fleet_cli.diff.transitions import kai_switch
from kai_fleet_cli.recovery import resume
from kai_fleet_cli.stack_file import edit, reading
from kai_fleet_cli.stack_file.write import Edit, edited, read_text
from kai_fleet_cli.teams import lookup, queues
from kai_fleet_cli.teams.lookup import PlatformFile, TeamPlace, config_keys
from kai_fleet_cli.teams.questions import TeamAnswers
from kubectl_fleet import releases
from kubectl_fleet.errors import UserError
from kubectl_fleet.wording import counted

_HEAD: Final = (
    "# yaml-language-server: $schema=components/kai_fleet/settings/stack.schema.json\n"
    "# Team {name} of stack {platform}, in a stack of its own.\n"
)


@dataclass(frozen=True)
class TeamChange:
    """The edits of a command, the sentences that tell of them, and the stacks to update.

    `goes` is the team that is deleted with all that it has, and whose name is asked for; "" where
    none is. `command` is what was typed, for whom it has to be typed again.

    `destroys` are stacks that are emptied and removed first: an account that the platform grants
    needs its rights to the end. Of the platform's stack only `teams` are updated.
    """

    platform: PlatformFile
    edits: tuple[Edit, ...]
    sentences: tuple[str, ...]
    updates: tuple[str, ...]
    teams: tuple[str, ...] = ()
    destroys: tuple[str, ...] = ()
    goes: str = ""
    command: str = ""

    @property
    def removes(self) -> list[str]:
        """The teams of the platform's own stack that go."""
        before, after = self._before_and_after()
        return [name for name in self.teams if name in before and name not in after]

    @property
    def adds(self) -> list[str]:
        """The teams of the platform's own stack that come."""
        before, after = self._before_and_after()
        return [name for name in self.teams if name in after and name not in before]

    def _before_and_after(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The teams in the platform's file."""
        teams = self.platform.raw.get("teams") or {}
        for edit_of_file in self.edits:
            if edit_of_file.path == self.platform.file:
                text = edit_of_file.after or ""
                return teams, reading.parse(text, edit_of_file.path.name).get("teams") or {}
        return teams, teams

    @property
    def grants(self) -> bool:
        """Whether it is about teams with stacks of their own."""
        return any(stack != self.platform.stack for stack in (*self.updates, *self.destroys))


def add(platform: PlatformFile, name: str, answers: TeamAnswers, *, own: bool) -> TeamChange:
    """A new team, in the platform's file or in a stack file of its own. Raises UserError."""
    check_new(platform, name)
    if answers.mode == "virtual":
        check_version(answers.version)
    team = _entry(name, answers)
    values: dict[tuple[str, ...], Any]
    files: tuple[Edit, ...] = ()
    updates: tuple[str, ...] = (platform.stack,)
    if own:  # the platform's says that it may have what it asks for
        grant: dict[str, Any] = {key: team[key] for key in ("nodePool", "gpus") if key in team}
        if "queue" in team:
            grant["parentQueue"] = team["queue"]
        values = {config_keys(lookup.GRANTS, name): grant}
        files = (own_file(platform, name, team),)
        updates = (platform.stack, lookup.own_stack(platform.stack, name))
    else:
        values = {config_keys(lookup.TEAMS, name): team}
    edits = (edited(platform.file, platform.text, values), *files)
    return TeamChange(platform, edits, (_new_team(name, team),), updates, (name,))


def check_new(platform: PlatformFile, name: str) -> None:
    """Raise UserError for what is no team's name, or is there already."""
    try:
        TypeAdapter(TeamName).validate_python(name)
    except ValidationError as error:
        (detail,) = error.errors()
        form = "does not fit; write at most 40 lower-case letters, digits and dashes"
        reason = detail["ctx"]["error"] if detail["type"] == "value_error" else form
        raise UserError(f"the name {name!r} {reason}") from None
    if name in platform.teams:
        place = platform.teams[name]
        raise UserError(
            f"stack {platform.stack} has a team {name} already, in {place.file.name}; write another"
            f" name. If it is not made yet: make up STACK={place.stack}"
        )


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


def _new_team(name: str, team: Mapping[str, Any]) -> str:
    scheduler = team["scheduler"]
    schedules = {
        "virtual": f"KAI {scheduler.get('version')} inside its vCluster",
        "host": f"the host's KAI, in queue {team.get('queue')}",
    }.get(scheduler["mode"], "Kubernetes' own scheduler")
    pool = pairs_text(team.get("nodePool", {}))
    on = f" on nodes {pool}" if pool else ""
    return (
        f"{name}: new team in mode {scheduler['mode']}: a vCluster{on}, {schedules},"
        f" {counted(team['gpus'], 'GPU')}"
    )


def pairs_text(labels: Mapping[str, str]) -> str:
    """Node labels for a sentence: `pool=ml, zone=a`."""
    return ", ".join(f"{key}={value}" for key, value in labels.items())


def switch(
    platform: PlatformFile, name: str, version: str, running: Callable[[], str | None]
) -> TeamChange:
    """Another KAI version for a team. Raises UserError.

    `running` reads the version that the team's stack has. Where the file has the new one already
    and the stack another one, the update alone is left.
    """
    place = platform.team(name)
    old = written_kai(place)
    check_version(version, untested=place.scheduler.get("untested") is True)
    if version == old:
        has = f"{place.path} has version {version} already, in {place.file.name}"
        try:
            now = running()
        except UserError as why:
            again = f"to have it run: make up STACK={place.stack}"
            raise UserError(f"{has}; whether it runs is not known: {why}; {again}") from None
        if now == version:
            raise UserError(f"{has}, and stack {place.stack} runs it")
        update = switch_text(now, version) if now else f"KAI {version}, not made yet"
        return only_update(platform, place, has, update)
    return _switch(platform, place, old, version)


def roll_back(
    platform: PlatformFile, place: TeamPlace, earlier: str | None, running: str | None
) -> TeamChange:
    """The `earlier` version for a team that is `running` another; None where that is not known.

    Raises UserError where the history has no such version.
    """
    written = written_kai(place)
    if earlier == written and running is not None:
        has = f"{place.path} has version {written} already, in {place.file.name}"
        return only_update(platform, place, has, switch_text(running, written))
    if earlier is None:
        raise UserError(
            f"stack {place.stack} has no update in which team {place.name} ran another version than"
            f" {written}; to change it, run: fleet team switch {place.name} VERSION"
            f" --stack {platform.stack}"
        )
    return _switch(platform, place, running or written, earlier)


def only_update(platform: PlatformFile, place: TeamPlace, has: str, update: str) -> TeamChange:
    """What is left of an edit that was written and not run: `has` says what is written."""
    sentence = f"{place.name}: {has}; only the update is left: {update}"
    return TeamChange(platform, (), (sentence,), (place.stack,), (place.name,))


def _switch(platform: PlatformFile, place: TeamPlace, old: str, new: str) -> TeamChange:
    keys = (*place.keys, "scheduler", "version")
    edit_of_file = edited(place.file, read_text(place.file), {keys: new})
    if old == new:
        sentence = f"runs KAI {old}; only its file goes back, for its last edit was not applied"
    else:
        sentence = f"{switch_text(old, new)}; its queues and running pods stay"
    sentences = (f"{place.name}: {sentence}",)
    return TeamChange(platform, (edit_of_file,), sentences, (place.stack,), (place.name,))


def switch_text(old: str, new: str) -> str:
    """For example `KAI v0.14.7 → v0.16.8, upgraded in place`."""
    way = kai_switch(old, new)
    why = f" ({way.reason})" if way.replaced else ""
    return f"KAI {old} → {new}, {way}{why}"


def written_kai(place: TeamPlace) -> str:
    """The KAI version of a team that has its own; raises UserError for the others."""
    if place.version is not None:
        return place.version
    if place.mode == "host":
        raise UserError(
            f"team {place.name} is in mode host: its pods are scheduled by the host's KAI, for all"
            f" such teams; edit kai-fleet:kai.version in Pulumi.{place.platform}.yaml"
        )
    raise UserError(
        f"team {place.name} is in mode {place.mode}, which has no KAI of its own; write"
        f" {place.path}.scheduler: {{mode: virtual, version: …}} in {place.file.name}"
    )


def check_version(version: str, *, untested: bool = False) -> None:
    """Raise UserError, with the nearest supported versions, for one that is not in the table."""
    try:
        releases.kai(version, untested=untested)
    except releases.UnknownVersionError as error:
        raise UserError(str(error)) from None


def remove(
    platform: PlatformFile, place: TeamPlace, pods: Sequence[Mapping[str, Any]] | None
) -> TeamChange:
    """Take a team away with all that it has. `pods` are those that run; None where not known.

    Raises UserError.
    """
    edits: list[Edit] = []
    if not place.own:
        edits.append(edited(platform.file, platform.text, {}, gone=[place.keys]))
    elif place.name in platform.grants:
        last = len(platform.grants) == 1  # the key goes with the last grant
        gone = config_keys(lookup.GRANTS, *([] if last else [place.name]))
        edits.append(edited(platform.file, platform.text, {}, gone=[gone]))
    if place.own:
        edits.append(Edit(place.file, read_text(place.file), None))
    return TeamChange(
        platform,
        tuple(edits),
        tuple(_losses(place, pods)),
        (platform.stack,),  # also where an earlier try has edited its file, and went no further
        (place.name,),
        (place.stack,) if place.own else (),
        goes=place.name,
        command=f"{resume.FLEET} team remove {place.name} --stack {platform.stack}",
    )


def to_remove(platform: PlatformFile, name: str) -> TeamPlace:
    """The team of that name; raises UserError with the way on after a removal that was cut off.

    Its own stack and its lines in the file go first, so the platform's part may be left.
    """
    try:
        return platform.team(name)
    except UserError as error:
        go_on = resume.up(platform.stack, [name])
        raise UserError(f"{error}. If its removal was cut off, go on with it: {go_on}") from None


def _losses(place: TeamPlace, pods: Sequence[Mapping[str, Any]] | None) -> list[str]:
    """Everything that is gone after a removal, in words."""
    name = place.name
    kai = f", its KAI {place.version}" if place.version else ""
    lines = [f"{name} goes: namespace team-{name} with its volumes, the vCluster{kai}"]
    if names := queues.names(place.raw.get("queues")):
        lines.append(f"  {counted(len(names), 'queue')}: {', '.join(names)}")
    if place.mode == "host" and place.raw.get("queue"):
        lines.append(f"  queue {place.raw['queue']} stays: it is the host's")
    if pods is None:
        lines.append("  every pod in it")
    else:
        held = cluster_reader.gpus_held(pods)
        holding = f", holding {counted(held, 'GPU')}" if held else ""
        lines.append(f"  every pod in it: {counted(len(pods), 'pod')} now{holding}")
    if place.own:
        lines.append(f"  stack {place.stack}, its history, its file and what the platform granted")
    return lines
