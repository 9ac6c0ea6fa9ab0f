"""`fleet report`: a stack as one page of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from kai_fleet_cli.commands.options import StackFile
from kai_fleet_cli.display.screen import clusters_read, say
from kubectl_fleet.errors import UserError

out = Console()


def report(
    html: Annotated[Path, typer.Option("--html", help="The file to write.")],
    stack: StackFile = "sandbox",
    offline: Annotated[
        bool, typer.Option("--offline", help="From the stack's file alone; no cluster is asked.")
    ] = False,
    config: Annotated[
        Path | None, typer.Option("--config", help="With --offline: a stack file from anywhere.")
    ] = None,
) -> None:
    """Write one page about a stack: GPUs, teams, queues, versions, health, last changes.

    The page is one file, and loads nothing. Where the clusters do not answer it is made from the
    stack's file, and says what it lacks.
    """
    from kai_fleet_cli.report import build
    from kai_fleet_cli.report.page import page

    if config is not None and not offline:
        raise UserError("--config is for --offline: the clusters are those of the stack's own file")
    if offline:
        stack_report = build.of_file(stack, config)
    else:
        with clusters_read() as heard:
            stack_report = build.of_clusters(stack, heard)
    text = page(stack_report)
    try:
        html.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{html} cannot be written: {error.strerror}; write another --html"
        ) from None
    for part, why in stack_report.missing.items():
        say(f"not in it: {part}: {why}")
    out.print(f"{html} is written", markup=False, highlight=False, soft_wrap=True)
    for team in stack_report.foreign:
        say(f"error: {team}")
    if stack_report.foreign:
        raise typer.Exit(1)
