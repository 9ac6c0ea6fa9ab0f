"""`fleet releases`: the versions known here, and where a team could go."""

from collections.abc import Iterator, Mapping
from typing import Annotated

import typer

from kai_fleet import releases as known
from kai_fleet.releases.transitions import kai_transition
from kai_fleet.values import value_at
from kai_fleet_cli.commands.options import AsJson, print_json
from kai_fleet_cli.display.terminal import Screen, say
from kai_fleet_cli.errors import UserError


def releases(
    stack: Annotated[
        str | None, typer.Option("--stack", "-s", help="Also what its teams run and could go to.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The versions of KAI and vCluster that are known here, and how long each gets fixes."""
    if as_json:
        print_json({"known": {"KAI": list(known.KAI), "vCluster": list(known.VCLUSTER)}})
        return
    screen = Screen.standard()
    for line in (*_known(), *(_teams(stack) if stack else ())):
        screen.line(line)


def _known() -> Iterator[str]:
    for version in (*known.KAI, known.RETRACTED):
        yield f"KAI {version:<9} {known.support(version).words}{_caveat(known.KAI, version)}"
    for version in known.VCLUSTER:
        words = known.vcluster_support(version).words + _caveat(known.VCLUSTER, version)
        default = "; what a stack gets that names none" * (version == known.DEFAULT_VCLUSTER)
        yield f"vCluster {version:<9} {words}{default}"
    yield "A newer version of either can be tried with untested: true beside its version."


def _caveat(table: Mapping[str, known.KaiRelease | known.VclusterRelease], version: str) -> str:
    caveat = table[version].caveat if version in table else ""
    return caveat and f"; not advised: {caveat}"


def _teams(stack: str) -> Iterator[str]:
    """What each team runs, or where the engine does not answer, what its file says."""
    from kai_fleet_cli.teams import lookup, stack_state

    file = lookup.stack_file(stack)
    running: Mapping[str, str | None] = {}
    try:
        running = stack_state.read(stack).versions
    except UserError as why:
        say(f"- {why}")
    written = {"KAI of the host": value_at(file.raw, "kai.version")}
    written |= {name: team.version for name, team in sorted(file.teams.items())}
    for name, declared in written.items():
        version = running.get(name) or declared
        if isinstance(version, str) and version in known.KAI:
            yield _way(name, "runs" if running.get(name) else "is to run", version)


def _way(name: str, verb: str, version: str) -> str:
    runs, support = f"{name} {verb} KAI {version}", known.support(version)
    if to := known.advised(known.KAI, version):
        way = kai_transition(known.kai(version), known.kai(to))
        first = ", so the release is replaced" if way.kind == "replace" else ""
        return f"{runs} ({support.words}); {way.why}{first}"
    if caveat := _caveat(known.KAI, version):
        return f"{runs} ({support.words}{caveat})"
    if support.maintained:
        return f"{runs}, the newest maintained one"
    return f"{runs} ({support.words}); {known.advice(known.KAI, version)}"
