"""The commands that only look: at files, at clusters, at the versions known here."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer
from rich.console import Console

from kai_fleet import releases as known
from kai_fleet_cli.commands.options import AsJson, StackFile, print_json
from kai_fleet_cli.display.terminal import result, say
from kai_fleet_cli.errors import UserError

ReportFormat: TypeAlias = Literal["text", "json", "markdown"]


def plan(
    stack: Annotated[
        str | None,
        typer.Option(
            "--stack", "-s", help="Its file is Pulumi.STACK.yaml.", show_default="sandbox"
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A stack file from anywhere.")] = None,
    format: Annotated[ReportFormat, typer.Option("--format")] = "text",
) -> None:
    """What a stack declares and what the rules say; no engine, no cluster, no network.

    Exit 0: fine. 1: a rule refuses it. 2: the file cannot be read.
    """
    from kai_fleet_cli.display import as_markdown, as_text
    from kai_fleet_cli.plan import offline

    of_file = config and config.stem.removeprefix("Pulumi.")
    planned = offline.plan(of_file or "sandbox" if stack is None else stack, config)
    match format:
        case "json":
            sys.stdout.write(planned.json() + "\n")
        case "markdown":
            sys.stdout.write(as_markdown.plan_page(planned))
        case "text":
            as_text.show_plan(planned, Console())
    raise typer.Exit(planned.exit_code)


def diff(
    base: Annotated[str, typer.Option("--base", help="A branch, tag or commit.")] = "HEAD",
    stack: StackFile = "sandbox",
    format: Annotated[ReportFormat, typer.Option("--format")] = "text",
) -> None:
    """What the work tree changes of a stack, compared with a commit; no engine, no cluster.

    Exit 0: nothing. 1: the update would be refused. 2: unreadable. 3: something.
    """
    from kai_fleet_cli.diff.report import compare
    from kai_fleet_cli.display import as_markdown, as_text

    try:
        found = compare(stack, base)
    except UserError as why:
        say(f"error: {why}")
        raise typer.Exit(2) from None
    match format:
        case "json":
            print_json(found.record())
        case "markdown":
            sys.stdout.write(as_markdown.diff_page(found))
        case "text":
            as_text.show_diff(found, Console())
    raise typer.Exit(found.exit_code)


def releases(as_json: AsJson = False) -> None:
    """The versions of KAI and vCluster that are known here, and how long each gets fixes."""
    tables: dict[str, Mapping[str, Any]] = {"KAI": known.KAI, "vCluster": known.VCLUSTER}
    if as_json:
        ends = {kind: {v: table[v].support_end for v in table} for kind, table in tables.items()}
        print_json({"known": {kind: list(ends[kind]) for kind in ends}, "supportedUntil": ends})
        return
    for kind, table in tables.items():
        for version in (*table, known.RETRACTED) if kind == "KAI" else table:
            words = known.standing(table, version).words
            default = "; what a stack gets that names none" * (version == known.DEFAULT_VCLUSTER)
            result(f"{kind} {version:<9} {words}{default}")
    result("A newer version of either can be tried with untested: true beside its version.")


def doctor(
    stack: StackFile = "sandbox",
    team: Annotated[str | None, typer.Option(help="Only this team, and the host.")] = None,
    context: Annotated[str | None, typer.Option(help="A kubectl context, for the stack's.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what is wrong on a stack's live clusters, why, and what to do; it changes nothing.

    Exit 0: healthy. 1: broken. 2: cannot look. 3: may read nothing of a cluster.
    """
    from kai_fleet_cli.doctor.diagnosis import ExitCode, diagnose, show

    try:
        with Console(stderr=True).status("reading clusters"):
            diagnosis = diagnose(stack, team, context)
    except UserError as error:
        say(f"error: {error}")
        raise typer.Exit(ExitCode.BLIND) from None
    if as_json:
        print_json(diagnosis.record())
    else:
        show(diagnosis, Console())
    raise typer.Exit(diagnosis.exit_code)


def report(
    html: Annotated[
        Path, typer.Option("--html", help="The file of the page, which loads nothing.")
    ] = Path("report.html"),
    stack: StackFile = "sandbox",
    as_json: AsJson = False,
) -> None:
    """Write a page of a stack's GPUs now: teams, queues, who waits and why, findings.

    Exit 0: everything was read. 1: the stack's file is refused. 2: the host did not answer.
    3: the page is there, and says what was not read.
    """
    from dataclasses import asdict

    from pydantic.alias_generators import to_camel

    from kai_fleet.cluster.kube.errors import UnreachableError
    from kai_fleet_cli.doctor.diagnosis import ExitCode
    from kai_fleet_cli.report import build

    try:
        with Console(stderr=True).status("reading clusters"):
            found = build.now(stack)
    except UnreachableError as error:
        say(f"error: the host cluster is not reached: {error}")
        raise typer.Exit(ExitCode.BLIND) from None
    if as_json:
        print_json(
            asdict(found, dict_factory=lambda of: {to_camel(key): value for key, value in of})
        )
        raise typer.Exit(found.exit_code)
    try:
        html.write_text(build.page(found), encoding="utf-8")
    except OSError as why:
        raise UserError(f"{html} cannot be written: {why.strerror}; write another --html") from None
    for sentence in found.missing:
        say(f"not read: {sentence}")
    say(f"{html} is written")
    raise typer.Exit(found.exit_code)
