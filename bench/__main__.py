"""`python -m bench [offline] [queues] [team] [teams]`: figures, and the page that shows them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from bench import machine, many_teams, offline, one_team, queues
from bench.figures import Table
from bench.program import Program, on_the_sandbox
from fleet.stack_file import ROOT
from sandbox import lifecycle
from sandbox.control_plane import POD_SECONDS

PAGE = ROOT / "docs" / "benchmarks.md"
HEAD = """\
# Benchmarks

Written by `make bench`: the program (`fleet up`, from the shell, policy pack and all) and a plain
script with `kubectl` and `helm` that does the same work, one after the other, in one run on one
machine. Look at the ratios: the sandbox's pods start at once, so everything else weighs more here.
"""
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    what: Annotated[list[str] | None, typer.Argument(help="offline queues team teams")] = None,
    queue_sizes: Annotated[str, typer.Option(help="Sizes of the queue trees.")] = "100,1000,5000",
    team_sizes: Annotated[str, typer.Option(help="Numbers of teams.")] = "4,20",
    pod_seconds: Annotated[str, typer.Option(help="Seconds that a pod takes to start.")] = "",
    write: Annotated[bool, typer.Option(help="Write docs/benchmarks.md.")] = False,
) -> None:
    """Compare, on a sandbox of its own."""
    wanted = what or ["offline", "queues", "team", "teams"]
    tables: list[Table] = []
    if "offline" in wanted:
        tables.append(_shown(offline.compare()))
    if pod_seconds:
        os.environ[POD_SECONDS] = pod_seconds
    with tempfile.TemporaryDirectory(prefix="kai-fleet-bench-") as folder:
        os.environ["KAI_FLEET_SANDBOX"] = str(Path(folder) / "sandbox")
        try:
            sandbox = lifecycle.up(print)
            about = machine.description(sandbox)
            sides: dict[str, Callable[[Program], Table]] = {
                "queues": lambda program: queues.compare(program, _sizes(queue_sizes)),
                "team": one_team.compare,
                "teams": lambda program: many_teams.compare(
                    program, _sizes(team_sizes), pod_seconds
                ),
            }
            for name, compare in sides.items():
                if name in wanted:
                    with on_the_sandbox(sandbox) as program:
                        tables.append(_shown(compare(program)))
        finally:
            lifecycle.down(print)
    if write:
        PAGE.write_text("\n".join([HEAD, about, "", *(table.markdown() for table in tables)]))


def _shown(table: Table) -> Table:
    print(table.markdown(), flush=True)
    return table


def _sizes(text: str) -> list[int]:
    return [int(size) for size in text.split(",")]


if __name__ == "__main__":
    app()
