"""`fleet releases`: the versions that this program knows, and where each team could go."""

import itertools
import json
import sys
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import Console

from kai_fleet.state.transitions import kai_transition
from kai_fleet_cli.upstream import newer
from kubectl_fleet import releases as known
from kubectl_fleet.errors import UserError
from kubectl_fleet.releases.lookup import RETRACTED

out = Console()


def releases(
    stack: Annotated[
        str | None, typer.Option("--stack", "-s", help="Also what its teams run and could go to.")
    ] = None,
    upstream: Annotated[
        bool, typer.Option("--upstream", help="Also what is newer in the projects' registries.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """The versions of KAI and vCluster that are known here, and how long each gets fixes.

    A registry that cannot be reached is said in a sentence, and is no error.
    """
    answers = newer.look(newer.HOMES) if upstream else []
    if as_json:
        record = {
            "known": {project: list(table) for project, table in newer.TABLES.items()},
            "seen": newer.untested(),
            "upstream": [answer.record() for answer in answers],
        }
        sys.stdout.write(json.dumps(record, indent=2) + "\n")
        return
    words = (answer.words for answer in answers)
    for line in itertools.chain(_known(), words, _teams(stack) if stack else ()):
        out.print(line, markup=False, highlight=False, soft_wrap=True)


def _known() -> Iterator[str]:
    untested = newer.untested()
    for version in (*known.KAI, RETRACTED):
        yield f"KAI {version:<9} {known.support(version).words}"
    yield from _untested("KAI", untested["KAI"])
    for version in known.VCLUSTER:
        default = version == known.DEFAULT_VCLUSTER
        unless = "; what a stack gets that names none" if default else ""
        yield f"vCluster {version:<9} {known.vcluster_support(version).words}{unless}"
    yield from _untested("vCluster", untested["vCluster"])
    yield "A newer version of either can be tried with untested: true beside its version."


def _untested(project: str, versions: list[str]) -> Iterator[str]:
    for version in versions:
        like = known.taken_for(newer.TABLES[project], version)
        yield (
            f"{project} {version:<9} not tried with this program; untested: true takes it for"
            f" {like}"
        )


def _teams(stack: str) -> Iterator[str]:
    """What each team runs, or where the engine does not answer, what its file says."""
    from kai_fleet_cli.teams import connect, lookup, stack_state

    platform = lookup.platform(stack)
    connected = connect.to_platform(platform, _note)
    running: dict[str, str] = {}
    for name in sorted({stack, *(place.stack for place in platform.teams.values())}):
        try:
            if connected.variables is not None:
                running |= stack_state.read(name, connected.variables).versions
        except UserError as error:
            _note(f"- {error}")
    if connected.note:
        _note(f"- {connected.note}")
    host = platform.raw.get("kai")
    written = {"KAI of the host": host.get("version") if isinstance(host, dict) else None}
    written |= {name: place.version for name, place in sorted(platform.teams.items())}
    for name, wanted in written.items():
        version = running.get(name) or wanted
        if isinstance(version, str) and version in known.KAI:
            yield _way(name, "runs" if name in running else "is to run", version)


def _way(name: str, verb: str, version: str) -> str:
    runs, support = f"{name} {verb} KAI {version}", known.support(version)
    if to := known.advised(known.KAI, version):
        way = kai_transition(known.kai(version), known.kai(to))
        first = ", so the release is replaced" if way.kind == "replace" else ""
        return f"{runs} ({support.words}); {way.why}{first}"
    if support.maintained:
        return f"{runs}, the newest maintained one"
    return f"{runs} ({support.words}); {known.advice(known.KAI, version)}"


def _note(text: str) -> None:
    typer.echo(text, err=True)
