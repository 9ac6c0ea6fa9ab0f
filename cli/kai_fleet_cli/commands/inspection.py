"""The commands that only look: `plan`, `diff` and `schema` at files, the others at clusters."""

import sys
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer
from rich.console import Console

from kai_fleet_cli.commands.options import AsJson, StackFile, print_json, with_exit_codes
from kai_fleet_cli.display.terminal import clusters_read, say
from kai_fleet_cli.errors import UserError

ReportFormat: TypeAlias = Literal["text", "json", "markdown"]


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
    from kai_fleet_cli.diff.report import UNREADABLE, compare
    from kai_fleet_cli.display import as_markdown, as_text

    try:
        result = compare(stack, base)
    except UserError as why:
        say(f"error: {why}")
        raise typer.Exit(UNREADABLE) from None
    match format:
        case "json":
            print_json(result.record())
        case "markdown":
            sys.stdout.write(as_markdown.diff_page(result))
        case "text":
            as_text.show_diff(result, Console())
    raise typer.Exit(result.exit_code)


def schema() -> None:
    """Print the JSON Schema of a stack file."""
    from kai_fleet_cli.reference import pages

    print_json(pages.schema())


def doctor(
    stack: Annotated[
        str | None, typer.Option("--stack", "-s", help="Its file is Pulumi.STACK.yaml.")
    ] = None,
    team: Annotated[
        str | None, typer.Option("--team", help="Only this team, and the host.")
    ] = None,
    context: Annotated[
        str | None, typer.Option("--context", help="A kubectl context, in place of the stack's.")
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option("--kubeconfig", help="A kubeconfig file, without a stack.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what is wrong on a stack's live clusters, why, and what to do; it changes nothing.

    Without --stack, --context or --kubeconfig: stack sandbox.

    Exit 0: healthy. 1: broken. 2: cannot look. 3: may read nothing of a cluster.
    """
    from kai_fleet_cli.doctor.diagnosis import diagnose, show
    from kai_fleet_cli.waiting.finding import ExitCode

    chosen = stack or (None if context or kubeconfig else "sandbox")
    try:
        with clusters_read() as heard:
            diagnosis = diagnose(chosen, team, context, kubeconfig, heard)
    except UserError as error:
        say(f"error: {error}")
        raise typer.Exit(ExitCode.BLIND) from None
    if as_json:
        print_json(diagnosis.record())
    else:
        show(diagnosis, Console())
    raise typer.Exit(diagnosis.exit_code)


def usage(
    stack: StackFile = "sandbox",
    team: Annotated[str | None, typer.Option("--team", help="Only this team.")] = None,
    since: Annotated[
        str, typer.Option("--since", help="How far back Prometheus is asked: 90m, 12h, 7d, 4w.")
    ] = "7d",
    now: Annotated[
        bool, typer.Option("--now", help="A sample of now, also where there is a Prometheus.")
    ] = False,
    prometheus: Annotated[
        str | None, typer.Option("--prometheus", help="The URL of one, in place of the stack's.")
    ] = None,
    as_json: AsJson = False,
    csv: Annotated[bool, typer.Option("--csv", help="One line for each queue.")] = False,
) -> None:
    """Say who used how many GPUs of a stack: guaranteed, borrowed, idle, owed; and who waits.

    GPU-hours from the Prometheus of kai-fleet:monitoring, else a sample of now.
    """
    from kai_fleet_cli.report.usage import as_csv, show, usage_of

    if as_json and csv:
        raise UserError("--json and --csv are two forms of the same; write one of them")
    with clusters_read() as heard:
        answer = usage_of(stack, team, since, sample=now, url=prometheus, heard=heard)
    if as_json:
        print_json(answer.record())
    elif csv:
        sys.stdout.write(as_csv(answer))
    else:
        show(answer, Console())
    for sentence in answer.foreign:
        say(f"error: {sentence}")
    if answer.foreign:
        raise typer.Exit(1)


def report(
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page of HTML to this file.")
    ] = None,
    stack: StackFile = "sandbox",
    format: Annotated[
        ReportFormat | None,
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
    match format or (None if html else "text"):
        case "json":
            from kai_fleet_cli.report.model import record

            print_json(record(stack_report))
        case "markdown":
            from kai_fleet_cli.display import as_markdown

            sys.stdout.write(as_markdown.report_page(stack_report))
        case "text":
            from kai_fleet_cli.display import as_text

            as_text.show_report(stack_report, Console())
    for sentence in stack_report.foreign:
        say(f"error: {sentence}")
    raise typer.Exit(1 if stack_report.foreign else stack_report.exit_code)
