"""Carry a team command out: judged, shown, confirmed, written, run; or all as it was."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pulumi import automation
from rich.markup import escape
from rich.prompt import Confirm

from kai_fleet.finding import Finding, Level
from kai_fleet.fleet.resolve import platform_facts
from kai_fleet.settings import load
from kai_fleet.settings.files.project import update_command
from kai_fleet.settings.mistakes import NAMESPACE
from kai_fleet.values import pairs, value_at
from kai_fleet_cli.display import as_text
from kai_fleet_cli.display.terminal import Flags, Screen, engine_line, say
from kai_fleet_cli.engine import runs, summary
from kai_fleet_cli.engine.environment import for_stack
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import failures, resume
from kai_fleet_cli.recovery.resume import Interrupted, graceful_shutdown
from kai_fleet_cli.recovery.state import ExportedState
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.reading import path_of
from kai_fleet_cli.stack_file.write import Edit, NotWrittenError, read_text, restore, write
from kai_fleet_cli.teams import stack_end, team_state
from kai_fleet_cli.teams.changes import TeamChange
from kai_fleet_cli.teams.lookup import GRANTS, TEAM, TEAMS, PlatformFile
from kai_fleet_policies import validation

_OF_GRANTS: Final = ("team-granted", "team-parent-queue")


def finish(change: TeamChange, flags: Flags, screen: Screen, done: str) -> None:
    """Carry a change out, and say so where it was."""
    if carry_out(change, flags, screen) is not None:
        screen.line(f"Done: {done}.")


def make(change: TeamChange, flags: Flags, screen: Screen, name: str) -> None:
    """Carry out what makes a team, and say what to do first with it."""
    outputs = carry_out(change, flags, screen)
    if outputs is not None:
        resource = value_at(change.platform.raw, "gpu.resource") or "nvidia.com/gpu"
        about = outputs.get("teams", {}).get(name, {})
        screen.line(summary.next_steps(change.platform.stack, name, about, resource))


def carry_out(change: TeamChange, flags: Flags, screen: Screen) -> Mapping[str, Any] | None:
    """Do it as far as the flags say; the outputs of the last update, or None where nothing ran.

    Where a team goes its name is asked for in place of "Run the update now?", and with another
    answer nothing is written. Raises UserError for a refusal, and Interrupted; the files are as
    they were then.
    """
    sure = flags.yes or flags.no_up
    if change.goes:
        command = f"{resume.FLEET} team remove {change.goes} --stack"
        loss = f"team {change.goes} and all its pods would be gone"
        screen.require_answer(f"{command} {change.platform.stack}", loss, yes=sure)
    _show_verdict(change, screen)
    for edit in change.edits:
        screen.line(f"{edit.path.name}:")
        for line in edit.lines():
            colour = "green" if line.startswith("+") else "red"
            screen.out.print(f"  [{colour}]{escape(line)}[/]", highlight=False, soft_wrap=True)
    for sentence in change.sentences:
        screen.line(sentence)
    run = flags.yes and not flags.no_up
    if change.goes and not sure:
        screen.confirm_name(change.goes)
        run = True
    elif screen.asks and not sure:
        run = Confirm.ask("Run the update now?", default=True, console=screen.out)
    if not run:
        if change.destroys:
            raise UserError(
                f"stack {change.destroys[0]} has to be emptied before its file goes; write --yes,"
                " and leave --no-up out"
            )
        write(change.edits)
        written = "Written. Next" if change.edits else "Next"
        screen.line(f"{written}:\n{_commands(change)}")
        return None
    # What was validated is the edit; it may be what puts a refused file right.
    return _run(change, for_stack(change.platform.stack, validated=False).variables)


def _show_verdict(change: TeamChange, screen: Screen) -> None:
    """Show what the rules say about the edit; raise UserError where one refuses it."""
    problems = _problems(change.platform, change.edits)
    refused = [problem for problem in problems if problem.level is Level.MANDATORY]
    before = _problems(change.platform, ()) if problems and not refused else ()
    for problem in refused or [it for it in problems if it not in before]:
        as_text.show_problem(problem, screen.out)
    if refused:
        raise UserError("the rules refuse this; nothing is written")


def _problems(platform: PlatformFile, edits: Sequence[Edit]) -> list[Finding]:
    """What the rules say of the platform with its team stacks, as the edits would leave them.

    Teams with stacks of their own count as the platform's: their pools and GPUs come out of the
    same nodes. Raises UserError where an edited file could not be read any more.
    """
    places = [place for place in platform.teams.values() if place.own and place.file.exists()]
    texts: dict[Path, str | None] = {place.file: read_text(place.file) for place in places}
    texts |= {platform.file: platform.text} | {edit.path: edit.after for edit in edits}
    raw = reading.parse(texts.pop(platform.file) or "", platform.file.name)
    own = [reading.parse(text, file.name) for file, text in sorted(texts.items()) if text]
    grants = raw.pop(GRANTS, None)
    of_own = dict(_own_team(team, grants) for team in own)
    verdict = validation.validate(raw | {TEAMS: dict(raw.get(TEAMS) or {}) | of_own})
    problems = [_in_own_file(problem, of_own) for problem in verdict.problems]
    if grants is not None and verdict.settings is not None:
        problems += _against_grants(raw | {GRANTS: grants}, own)
    return list(dict.fromkeys(problems))


def _against_grants(
    platform: Mapping[str, Any], own: Iterable[Mapping[str, Any]]
) -> Iterator[Finding]:
    """The problems of each team stack's own preview with its grant, and of the platform's with its
    grants: there may be teams whose files are somewhere else.
    """
    granting = load(platform).settings
    if granting is None:
        return
    start, facts = f"{NAMESPACE}:{GRANTS}.", platform_facts(granting)
    of_platform = validation.validate(platform).refused
    yield from (problem for problem in of_platform if problem.path.startswith(start))
    for raw in own:
        verdict = validation.validate(raw, facts_of=lambda _: facts)
        yield from (problem for problem in verdict.refused if problem.check in _OF_GRANTS)


def _own_team(raw: Mapping[str, Any], grants: Any) -> tuple[str, dict[str, Any]]:
    """A team stack's team as an entry of the platform's teams."""
    team = dict(pairs(raw.get(TEAM)))
    name = str(team.pop("name", ""))
    # Its queues are below the granted one, which stands for them here.
    if value_at(team, "scheduler.mode") == "host" and team.pop("queues", None):
        team["queue"] = value_at(grants, f"{name}.parentQueue")
    return name, team


def _in_own_file(problem: Finding, names: Container[str]) -> Finding:
    """The problem with its key in the team's own file, where it is about a team that has one."""
    of_team = re.match(rf"{NAMESPACE}:{TEAMS}\.([^.]+)", problem.path)
    if of_team is None or of_team[1] not in names:
        return problem
    return replace(problem, path=f"{NAMESPACE}:{TEAM}{problem.path[of_team.end() :]}")


def _run(change: TeamChange, variables: Mapping[str, str]) -> Mapping[str, Any]:
    """Run the engine with its variables; the outputs of the last update."""
    outputs: Mapping[str, Any] = {}
    written, finished = False, False  # what cannot be taken back by putting the files back
    at: list[str] = []  # the stacks on which the engine began
    with graceful_shutdown() as signals:
        try:
            own = _own_stacks(change, variables)
            for name in change.destroys:
                leaving, now = own[name]
                signals.check()
                stack_end.check(name, now, variables.get("KUBECONFIG"))
                at.append(name)
                runs.destroy(leaving, engine_line, remove=True)
            signals.check()
            # The CLI removed the files of the stacks that are gone.
            gone = [path_of(stack) for stack in change.destroys if not path_of(stack).exists()]
            write([edit for edit in change.edits if edit.path not in gone])
            written = True
            for name in change.updates:
                opened = own[name][0] if name in own else runs.stack(name, variables)
                signals.check()
                at.append(name)
                on_platform = name == change.platform.stack
                outputs = runs.up(
                    opened,
                    engine_line,
                    teams=change.teams if on_platform else None,
                    grants=on_platform and change.grants,
                    removes=on_platform and bool(change.removes),
                ).outputs
                finished = True
            return outputs
        except NotWrittenError:
            raise
        except KeyboardInterrupt as why:
            _put_back(change, at)
            raise (why if isinstance(why, Interrupted) else Interrupted(2)) from None
        except UserError as why:
            if signals.number:
                _put_back(change, at)
                raise Interrupted(signals.number) from None
            if not written:
                raise UserError(
                    f"{why}. The files are as they were; run the same command again to go on"
                ) from None
            began = isinstance(why, runs.EngineError) and why.began
            # A repair is told for the files as they are: with the edit.
            repair = resume.up(change.platform.stack) in str(why)
            if not (finished or began or change.destroys or repair):
                exception = _restored(change)
                raise UserError(
                    f"{why}. Nothing was changed, and the files are as they were{exception}"
                ) from None
            # In the middle: the teams that go stay named.
            message = failures.naming(str(why), change.platform.stack, change.removes)
            if repair:
                raise UserError(f"The files keep the edit. {message}") from None
            raise UserError(
                f"{message}. The files keep the edit: run it again with\n{_commands(change)}"
            ) from None


def _own_stacks(
    change: TeamChange, variables: Mapping[str, str]
) -> dict[str, tuple[automation.Stack, ExportedState]]:
    """The teams' own stacks that this is about to run, by name, with their states.

    Raises UserError where a team wrote into one what this would run.
    """
    own = {}
    for place in change.platform.teams.values():
        if place.own and place.stack in (*change.destroys, *change.updates):
            opened = runs.stack(place.stack, variables)
            now = runs.state_of(opened, "the run")
            team_state.check_own(now.resources, place.stack, place.name)
            own[place.stack] = opened, now
    return own


def _restored(change: TeamChange) -> str:
    """Put the files back. The exception is told: those that another process wrote meanwhile."""
    others = ", ".join(restore(change.edits))
    exception = f", but for {others}, which something else wrote meanwhile: take the edit out"
    return exception if others else ""


def _put_back(change: TeamChange, at: Sequence[str]) -> None:
    """Put the files back after a signal, and name what undoes the work of the engine, which began
    on the stacks `at`.

    A stack that the command has begun to make keeps its file, and so does the grant: without them
    nothing could remove what is there.
    """
    files = ", ".join(edit.path.name for edit in change.edits)
    platform = change.platform.stack
    made = {edit.path for edit in change.edits if edit.before is None}
    if begun := [stack for stack in at if path_of(stack) in made]:
        say(
            f"interrupted: {files} keep the edit, for stack {begun[0]} is half made. Go on with\n"
            f"  {resume.up(begun[0])}\nor take it back with\n"
            f"  {resume.FLEET} team remove {change.teams[0]} --stack {platform}"
        )
        return
    exception = _restored(change)
    told = f"interrupted: {f'{files} as before{exception}. ' if files else ''}"
    if not at:
        say(f"{told}Nothing was changed")
        return
    # An uninstall that was cut off leaves a release in the state as it was, and half of it in the
    # cluster: an update that does not look takes it for whole.
    stacks = sorted(set(at), key=lambda stack: stack != platform)
    looks = [
        f"  {resume.up(stack, change.comes if stack == platform else ())}\n" for stack in stacks
    ]
    say(
        f"{told}What the update did until then is undone by\n{''.join(looks)}"
        "or run the same command again to go on."
    )


def _commands(change: TeamChange) -> str:
    stack, naming = change.platform.stack, resume.naming(change.removes)
    own = f"{resume.FLEET} up --stack {stack}{naming}"
    commands = [own if naming and it == stack else update_command(it) for it in change.updates]
    return "\n".join(f"  {command}" for command in commands)
