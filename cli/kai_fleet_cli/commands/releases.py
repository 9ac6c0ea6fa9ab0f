"""`fleet releases`: the versions that this program knows, and where each team could go."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.console import Console

from kai_fleet.releases import (
    DEFAULT_VCLUSTER,
    KAI,
    VCLUSTER,
    kai,
    maintained,
    support,
    taken_for,
    vcluster_support,
    version_key,
)
from kai_fleet.releases.lookup import RETRACTED
from kai_fleet.state.transitions import kai_transition
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.upstream import newer, untested_versions

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
    found = newer.look(newer.HOMES) if upstream else []
    if as_json:
        known = {"KAI": list(KAI), "vCluster": list(VCLUSTER)}
        record = {
            "known": known,
            "seen": untested_versions.untried(),
            "upstream": [it.record() for it in found],
        }
        sys.stdout.write(json.dumps(record, indent=2) + "\n")
        return
    for line in _known():
        _line(line)
    for it in found:
        _line(it.words)
    for line in _teams(stack) if stack else ():
        _line(line)


def _known() -> Iterator[str]:
    untried = untested_versions.untried()
    for version in KAI:
        yield f"KAI {version:<9} {support(version).words}"
    yield f"KAI {RETRACTED:<9} {support(RETRACTED).words}"
    yield from _untried("KAI", KAI, untried["KAI"])
    for version in VCLUSTER:
        unless = "; what a stack gets that names none" if version == DEFAULT_VCLUSTER else ""
        yield f"vCluster {version:<9} {vcluster_support(version).words}{unless}"
    yield from _untried("vCluster", VCLUSTER, untried["vCluster"])
    yield "A newer version of either can be tried with untested: true beside its version."


def _untried(project: str, table: Any, versions: list[str]) -> Iterator[str]:
    for version in versions:
        said = "not tried with this program; untested: true takes it for"
        yield f"{project} {version:<9} {said} {taken_for(table, version)}"


def _teams(stack: str) -> Iterator[str]:
    """What each team runs, or where that cannot be asked, what its file says."""
    from kai_fleet_cli.teams import connect, lookup, stack_state

    platform = lookup.platform(stack)
    connected = connect.to_platform(platform, _note)
    running: dict[str, str] = {}
    for name in sorted({stack, *(place.stack for place in platform.teams.values())}):
        try:
            if connected.variables is not None:
                running |= stack_state.read(name, connected.variables).versions
        except UserError as why:
            _note(f"- {why}")
    if connected.note:
        _note(f"- {connected.note}")
    host = platform.raw.get("kai")
    written = {"KAI of the host": host.get("version") if isinstance(host, dict) else None}
    written |= {name: place.version for name, place in sorted(platform.teams.items())}
    for name, wanted in written.items():
        version = running.get(name) or wanted
        if isinstance(version, str) and version in KAI:
            yield _way(name, "runs" if name in running else "is to run", version)


def _way(name: str, verb: str, version: str) -> str:
    newest = (maintained() or list(KAI))[-1]
    if version_key(version) >= version_key(newest):
        said = "the newest maintained one" if version == newest else support(version).words
        return f"{name} {verb} KAI {version}, {said}"
    way = kai_transition(kai(version), kai(newest))
    first = ", so the release is replaced" if way.kind == "replace" else ""
    return f"{name} {verb} KAI {version} ({support(version).words}); {way.why}{first}"


def _note(text: str) -> None:
    typer.echo(text, err=True)


def _line(text: str) -> None:
    out.print(text, markup=False, highlight=False, soft_wrap=True)
