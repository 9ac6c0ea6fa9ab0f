"""`python -m bench [offline] [queues] [team] [teams]`: figures, and the page that shows them."""

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from bench import machine, offline, queues, teams
from bench.figures import Table
from bench.program import Program, on_the_sandbox
from bench.temporary import temporary
from kai_fleet_cli.stack_file.reading import ROOT
from sandbox import lifecycle
from sandbox.control_plane.command_lines import POD_SECONDS

PAGE: Final = ROOT / "docs" / "benchmarks.md"
HEAD: Final = """\
# Benchmarks

Written by `make bench`: the program (`fleet up` from the shell, policy pack and all) beside a plain
script with `kubectl` and `helm` that does the same work, one after the other, in one run on one
machine. Look at the ratios. Pods of teams take so long to start that the script needs for a new
team what it needed on a real node, about 43 s. A team that goes has the pods on the host that its
vCluster would have brought there; they take 2 s to end.
"""
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    what: Annotated[list[str] | None, typer.Argument(help="offline queues team teams")] = None,
    queue_sizes: Annotated[str, typer.Option(help="Sizes of the queue trees.")] = "1000,5000",
    team_sizes: Annotated[str, typer.Option(help="Numbers of teams.")] = "4,20",
    pod_seconds: Annotated[str, typer.Option(help="Seconds that a slow pod takes.")] = "13",
    write: Annotated[bool, typer.Option(help="Write the page.")] = False,
    page: Annotated[Path, typer.Option(help="The page to write.")] = PAGE,
    charts_in: Annotated[
        Path | None, typer.Option("--charts", help="Packaged charts in place of the stand-ins.")
    ] = None,
) -> None:
    """Compare, on sandboxes of its own."""
    given = machine.charts_in(charts_in)
    wanted = what or ["offline", "queues", "team", "teams"]
    tables: list[Table] = []
    if "offline" in wanted:
        tables.append(_shown(offline.compare()))
    quick: list[Callable[[Program], Table]] = []
    slow: list[Callable[[Program], Table]] = []
    if "queues" in wanted:
        quick.append(lambda program: queues.compare(program, _sizes(queue_sizes)))
    if "team" in wanted:
        slow.append(lambda program: teams.compare_one(program, pod_seconds))
    if "teams" in wanted:
        slow.append(lambda program: teams.compare_many(program, _sizes(team_sizes), pod_seconds))
    about = ""
    for seconds, comparisons in (("", quick), (pod_seconds, slow)):
        if comparisons:
            described = _on_a_sandbox(seconds, comparisons, tables, given)
            about = about or described  # a table of slow pods says so itself
    if write:
        page.write_text("\n".join([HEAD, about, "", *(table.markdown() for table in tables)]))


def _on_a_sandbox(
    pod_seconds: str,
    comparisons: list[Callable[[Program], Table]],
    tables: list[Table],
    given: Sequence[Path],
) -> str:
    """Run comparisons on a new sandbox; what the sandbox is, for the page."""
    with tempfile.TemporaryDirectory(prefix="kai-fleet-bench-") as folder:
        where = Path(folder) / "sandbox"
        os.environ["KAI_FLEET_SANDBOX"] = str(where)
        os.environ[POD_SECONDS] = pod_seconds
        with temporary(where):
            sandbox = lifecycle.up(print)
            about = machine.description(sandbox)
            about += machine.put_charts(given, sandbox.directory / "charts")
            for compare in comparisons:
                with on_the_sandbox(sandbox) as program:
                    tables.append(_shown(compare(program)))
            return about


def _shown(table: Table) -> Table:
    print(table.markdown(), flush=True)
    return table


def _sizes(text: str) -> list[int]:
    return [int(size) for size in text.split(",")]


if __name__ == "__main__":
    app()
