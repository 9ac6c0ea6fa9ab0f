"""What a team command does: edits of stack files, in words, and the stacks to run afterwards."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kai_fleet import releases
from kai_fleet.settings.files.project import update_command
from kai_fleet.wording import counted
from kai_fleet_cli.cluster_reader import PodsHeld
from kai_fleet_cli.diff.changes import kai_switch
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import resume
from kai_fleet_cli.stack_file.edit import GONE
from kai_fleet_cli.stack_file.write import Edit
from kai_fleet_cli.teams import lookup, queues
from kai_fleet_cli.teams.lookup import PlatformFile, TeamPlace, config_keys


@dataclass(frozen=True)
class TeamChange:
    """The edits of a command, the sentences that tell of them, and the stacks to update. Of the
    platform's stack only `teams` are updated.

    `goes` is the team that is deleted with all that it has, and whose name is asked for; "" where
    none is.
    """

    platform: PlatformFile
    edits: Sequence[Edit]
    sentences: Sequence[str]
    updates: Sequence[str]
    teams: Sequence[str]
    goes: str = ""

    @property
    def destroys(self) -> list[str]:
        """The stacks that are emptied and removed first: an account that the platform grants needs
        its rights to the end.
        """
        place = self.platform.teams.get(self.goes)
        return [place.stack] if place and place.own else []

    @property
    def removes(self) -> list[str]:
        """The teams of the platform's own stack that go."""
        return [self.goes] if self.goes and not self.destroys else []

    @property
    def comes(self) -> list[str]:
        """The teams of the platform's own stack that it has not had."""
        return [] if self.grants else [it for it in self.teams if it not in self.platform.teams]

    @property
    def grants(self) -> bool:
        """Whether it is about teams with stacks of their own."""
        return any(stack != self.platform.stack for stack in (*self.updates, *self.destroys))


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
    if version != old:
        return _switch(platform, place, old, version)
    has = f"{place.path} has version {version} already, in {place.file.name}"
    try:
        now = running()
    except UserError as why:
        again = f"to have it run: {update_command(place.stack)}"
        raise UserError(f"{has}; whether it runs is not known: {why}; {again}") from None
    if now == version:
        # Of an update that was killed the state has the release, and not yet that KAI is ready.
        raise UserError(
            f"{has}, and stack {place.stack} runs it; if its update was cut off, go on with:"
            f" .venv/bin/fleet up --refresh --stack {place.stack}"
        )
    update = kai_switch(now, version) if now else f"KAI {version}, not made yet"
    return only_update(platform, place, has, update)


def roll_back(
    platform: PlatformFile, place: TeamPlace, earlier: str | None, running: str | None
) -> TeamChange:
    """The `earlier` version for a team that is `running` another; None where that is not known.

    Raises UserError where the history has no such version.
    """
    written = written_kai(place)
    if earlier == written and running is not None:
        has = f"{place.path} has version {written} already, in {place.file.name}"
        return only_update(platform, place, has, kai_switch(running, written))
    if earlier is None:
        raise UserError(
            f"stack {place.stack} has no update in which team {place.name} ran another version than"
            f" {written}; to change it, run: fleet team switch {place.name} VERSION"
            f" --stack {platform.stack}"
        )
    return _switch(platform, place, running or written, earlier)


def only_update(
    platform: PlatformFile, place: TeamPlace, has: str, update: str, *first: str
) -> TeamChange:
    """What is left of an edit that was written and not run: `has` says what is written. The stacks
    in `first` are updated before the team's.
    """
    sentence = f"{place.name}: {has}; only the update is left: {update}"
    updates = tuple(dict.fromkeys((*first, place.stack)))
    return TeamChange(platform, (), [sentence], updates, (place.name,))


def _switch(platform: PlatformFile, place: TeamPlace, old: str, new: str) -> TeamChange:
    if old == new:
        sentence = f"runs KAI {old}; only its file goes back, for its last edit was not applied"
    else:
        sentence = f"{kai_switch(old, new)}; its queues and running pods stay"
    edit = place.edited({(*place.keys, "scheduler", "version"): new})
    return TeamChange(
        platform, [edit], [f"{place.name}: {sentence}"], (place.stack,), (place.name,)
    )


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


def remove(platform: PlatformFile, place: TeamPlace, held: PodsHeld | None) -> TeamChange:
    """Take a team away with all that it has. `held` are its pods; None where not known.

    Raises UserError.
    """
    gone = place.keys
    if place.own:
        last = len(platform.grants) == 1  # the key goes with the last grant
        gone = config_keys(lookup.GRANTS, *([] if last else [place.name]))
    written = not place.own or place.name in platform.grants
    edits = [platform.edited({gone: GONE})] if written else []
    return TeamChange(
        platform,
        [*edits, place.removed()] if place.own else edits,
        list(_losses(place, held)),
        (platform.stack,),  # also where an earlier try has edited its file, and went no further
        (place.name,),
        goes=place.name,
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


def _losses(place: TeamPlace, held: PodsHeld | None) -> Iterator[str]:
    """Everything that is gone after a removal, in words."""
    name = place.name
    kai = f", its KAI {place.version}" if place.version else ""
    yield f"{name} goes: namespace team-{name} with its volumes, the vCluster{kai}"
    if names := queues.names(place.raw.get("queues")):
        yield f"  {counted(len(names), 'queue')}: {', '.join(names)}"
    if place.mode == "host" and place.raw.get("queue"):
        yield f"  queue {place.raw['queue']} stays: it is the host's"
    now = ""
    if held is not None:
        holding = f", holding {counted(held.gpus, 'GPU')}" if held.gpus else ""
        now = f": {counted(held.pods, 'pod')} now{holding}"
    yield f"  every pod in it{now}"
    if place.own:
        yield f"  stack {place.stack}, its history, its file and what the platform granted"
