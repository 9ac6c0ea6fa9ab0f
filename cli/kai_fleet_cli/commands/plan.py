"""`fleet plan`, `fleet diff`, `fleet schema`: what needs no engine and no cluster."""

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from kai_fleet_cli.commands.options import ReportFormat, StackFile, with_exit_codes
from kai_fleet_cli.display.terminal import say
from kubectl_fleet.errors import UserError


def plan(
    stack: Annotated[
        str | None,
        typer.Option(
            "--stack", "-s", help="Its file is Pulumi.STACK.yaml.", show_default="sandbox"
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="A stack file from anywhere.")
    ] = None,
    format: Annotated[
        Literal["text", "json", "yaml", "markdown"], typer.Option("--format")
    ] = "text",
    details: Annotated[
        bool, typer.Option("--details", help="As text: each resource in place of the summary.")
    ] = False,
) -> None:
    """What a stack declares and what the rules say; no engine, no cluster, no network.

    Exit 0: fine. 1: a rule refuses it. 2: the file cannot be read.
    """
    from kai_fleet_cli.display import as_markdown, as_text
    from kai_fleet_cli.plan import offline

    of_file = config and config.stem.removeprefix("Pulumi.")
    result = offline.plan(of_file or "sandbox" if stack is None else stack, config)
    match format:
        case "json":
            sys.stdout.write(result.json() + "\n")
        case "yaml":
            sys.stdout.write(result.yaml())
        case "markdown":
            sys.stdout.write(as_markdown.plan_page(result))
        case "text":
            as_text.show_plan(result, Console(), details=details, config=config)
    raise typer.Exit(result.exit_code)


@with_exit_codes
def diff(
    base: Annotated[str, typer.Option("--base", help="A branch, tag or commit.")],
    stack: StackFile = "sandbox",
    format: Annotated[ReportFormat, typer.Option("--format")] = "text",
) -> None:
    """What the work tree changes of a stack, compared with a commit; no engine, no cluster.

    Exit 0: nothing. 1: a rule refuses it, or the base. 2: unreadable. 3: something.
    """
    from kai_fleet_cli.diff import report
    from kai_fleet_cli.display import as_markdown, as_text

    try:
        result = report.report(stack, base)
    except UserError as why:
        say(f"error: {why}")
        raise typer.Exit(report.UNREADABLE) from None
    match format:
        case "json":
            sys.stdout.write(result.json() + "\n")
        case "markdown":
            sys.stdout.write(as_markdown.diff_page(result))
        case "text":
            as_text.show_diff(result, Console())
    raise typer.Exit(result.exit_code)


def schema() -> None:
    """Print the JSON Schema of a stack file."""
    from kai_fleet_cli.reference import pages

    sys.stdout.write(json.dumps(pages.schema(), indent=2) + "\n")
