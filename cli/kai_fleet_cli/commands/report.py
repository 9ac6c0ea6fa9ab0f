"""`fleet report`: a stack for who pays for its GPUs, as text, Markdown, JSON or a page of HTML."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from kai_fleet_cli.commands.options import StackFile
from kai_fleet_cli.commands.plan import DiffFormat
from kai_fleet_cli.display.screen import clusters_read, say
from kubectl_fleet.errors import UserError

out = Console()


def report(
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page of HTML to this file.")
    ] = None,
    stack: StackFile = "sandbox",
    format: Annotated[
        DiffFormat | None,
        typer.Option("--format", help="Print it as this.", show_default="text without --html"),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="From the stack's file alone; no cluster is asked.")
    ] = False,
    config: Annotated[
        Path | None, typer.Option("--config", help="With --offline: a stack file from anywhere.")
    ] = None,
) -> None:
    """A stack for who pays: GPU-hours and cost, GPUs, teams, versions, health, last changes.

    The page of --html is one file, and loads nothing. Where the clusters do not answer it is made
    from the stack's file, and says what it lacks.

    Exit 0: everything was read. 1: the stack is refused, or a kubeconfig was planted. 2: a cluster
    or Prometheus did not answer. 3: one may not be read. With 2 and 3 the report is there, and says
    what it lacks.
    """
    from kai_fleet_cli.report import build

    if config is not None and not offline:
        raise UserError("--config is for --offline: the clusters are those of the stack's own file")
    if offline:
        stack_report = build.of_file(stack, config)
    else:
        with clusters_read() as heard:
            stack_report = build.of_clusters(stack, heard)
    if html is not None:
        from kai_fleet_cli.report.page import page

        try:
            html.write_text(page(stack_report), encoding="utf-8")
        except OSError as error:
            raise UserError(
                f"{html} cannot be written: {error.strerror}; write another --html"
            ) from None
        for part, why in stack_report.missing.items():
            say(f"not in it: {part}: {why}")
        say(f"{html} is written")
    match format or (None if html else DiffFormat.text):
        case DiffFormat.json:
            from kai_fleet_cli.report.model import record

            sys.stdout.write(json.dumps(record(stack_report), indent=2, ensure_ascii=False) + "\n")
        case DiffFormat.markdown:
            from kai_fleet_cli.display import as_markdown

            sys.stdout.write(as_markdown.report_page(stack_report))
        case DiffFormat.text:
            from kai_fleet_cli.display import as_text

            as_text.show_report(stack_report, out)
    for team in stack_report.foreign:
        say(f"error: {team}")
    raise typer.Exit(1 if stack_report.foreign else stack_report.exit_code)
