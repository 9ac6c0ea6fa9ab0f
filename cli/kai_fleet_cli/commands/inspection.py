"""The commands that only read: files, clusters, and the known versions."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from pydantic.alias_generators import to_camel
from rich.console import Console

from kai_fleet import releases as known_releases
from kai_fleet.cluster.kube.errors import UnreachableError
from kai_fleet_cli.commands.options import AsJson, StackFile, print_json
from kai_fleet_cli.diff.report import compare
from kai_fleet_cli.display import as_markdown, as_text
from kai_fleet_cli.display.terminal import result, say
from kai_fleet_cli.doctor.diagnosis import ExitCode, diagnose, show
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.hosts import host_version
from kai_fleet_cli.plan import import_file, offline
from kai_fleet_cli.plan.upgrade import steps
from kai_fleet_cli.report import build
from kai_fleet_cli.report.page import page
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.teams.changes import stack_file
from kai_fleet_stack.declared import host_of

ReportFormat = Literal["text", "json", "markdown"]
Target = Annotated[str, typer.Option(help="Unset: the newest advised version.")]


def plan(
    stack: Annotated[
        str | None,
        typer.Option(
            "--stack", "-s", help="Its file is Pulumi.STACK.yaml.", show_default="sandbox"
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A stack file from anywhere.")] = None,
    format: Annotated[ReportFormat, typer.Option("--format")] = "text",
    import_to: Annotated[
        Path | None,
        typer.Option("--import", help="Write a file for pulumi import --file, of a lost state."),
    ] = None,
) -> None:
    """What a stack declares and what the rules say; no engine, no cluster, no network.

    Exit 0: fine. 1: a rule refuses it. 2: the file cannot be read.
    """
    if stack is None:
        file_stack = config.stem.removeprefix("Pulumi.") if config else ""
        stack = file_stack or "sandbox"
    planned = offline.plan(stack, config)
    if import_to and planned.ok:
        import_file.write(planned.resources, import_to)
        say(
            f"not in {import_to}, and made anew by the update: commands, queue trees, patches of"
            " namespaces"
        )
    match format:
        case "json":
            sys.stdout.write(planned.json() + "\n")
        case "markdown":
            sys.stdout.write(as_markdown.plan_page(planned))
        case "text":
            as_text.show_plan(planned)
    raise typer.Exit(planned.exit_code)


def diff(
    base: Annotated[str, typer.Option("--base", help="A branch, tag or commit.")] = "HEAD",
    stack: StackFile = "sandbox",
    format: Annotated[ReportFormat, typer.Option("--format")] = "text",
) -> None:
    """What the work tree changes of a stack, compared with a commit; no engine, no cluster.

    Exit 0: nothing. 1: the update would be refused. 2: unreadable. 3: something, or not compared.
    """
    try:
        comparison = compare(stack, base)
    except UserError as error:
        say(f"error: {error}")
        raise typer.Exit(2) from None
    match format:
        case "json":
            print_json(comparison.record())
        case "markdown":
            sys.stdout.write(as_markdown.diff_page(comparison))
        case "text":
            as_text.show_diff(comparison)
    raise typer.Exit(comparison.exit_code)


def releases(as_json: AsJson = False) -> None:
    """The versions of KAI and vCluster that are known here, and how long each gets fixes."""
    tables: dict[str, Mapping[str, known_releases.Release]] = {
        "KAI": known_releases.KAI,
        "vCluster": known_releases.VCLUSTER,
    }
    if as_json:
        ends = {name: _support_ends(table) for name, table in tables.items()}
        known = {name: list(table) for name, table in tables.items()}
        print_json({"known": known, "supportedUntil": ends})
        return
    for name, table in tables.items():
        versions = list(table)
        if name == "KAI":
            versions.append(known_releases.RETRACTED)
        for version in versions:
            words = known_releases.standing(table, version).words
            if version == known_releases.DEFAULT_VCLUSTER:
                words += "; what a stack gets that names none"
            result(f"{name} {version:<9} {words}")
    result("A newer version of either can be tried with untested: true beside its version.")


def _support_ends(table: Mapping[str, known_releases.Release]) -> dict[str, object]:
    """The day on which each version gets its last fixes; None if no date is published."""
    return {version: release.support_end for version, release in table.items()}


def upgrade(
    stack: StackFile = "sandbox",
    host: Annotated[str, typer.Option(help="Unset: the one that it has.")] = "",
    vcluster: Target = "",
    kubernetes: Target = "",
    kai: Target = "",
    team: Annotated[list[str] | None, typer.Option(help="Only this team; repeatable.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print the steps to newer versions of vCluster, host, inner Kubernetes and KAI; no more.

    They begin at what the stack file says. Exit 1: a rule refuses a step.
    """
    file = stack_file(stack)
    names = [file.team(name).name for name in team or file.teams]
    teams = [each for each in host_of(reading.settings_of(stack)).teams if each.name in names]
    targets = {"vCluster": vcluster, "host": host, "Kubernetes": kubernetes, "KAI": kai}
    try:
        found = steps(stack, teams, host_version(stack), targets)
    except known_releases.UnknownVersionError as error:
        raise UserError(str(error)) from None
    if as_json:
        print_json({"stack": stack, "steps": found})
        return
    for number, step in enumerate(found, 1):
        result(f"{number}. {step['text']}")
    if not found:
        result(f"stack {stack}: nothing to do")


def doctor(
    stack: StackFile = "sandbox",
    team: Annotated[str | None, typer.Option(help="Only this team, and the host.")] = None,
    context: Annotated[str | None, typer.Option(help="A kubectl context, for the stack's.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what is wrong on a stack's live clusters, why, and what to do; it changes nothing.

    Exit 0: healthy. 1: broken. 2: cannot look. 3: may read nothing of a cluster.
    """
    try:
        with Console(stderr=True).status("reading clusters"):
            diagnosis = diagnose(stack, team, context)
    except UserError as error:
        say(f"error: {error}")
        raise typer.Exit(ExitCode.BLIND) from None
    if as_json:
        print_json(diagnosis.record())
    else:
        show(diagnosis)
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
    try:
        with Console(stderr=True).status("reading clusters"):
            report_now = build.read_report(stack)
    except UnreachableError as error:
        say(f"error: the host cluster is not reached: {error}")
        raise typer.Exit(ExitCode.BLIND) from None
    if as_json:
        print_json(asdict(report_now, dict_factory=_in_camel_case))
        raise typer.Exit(report_now.exit_code)
    try:
        html.write_text(page(report_now), encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{html} cannot be written: {error.strerror}; write another --html"
        ) from None
    for sentence in report_now.missing:
        say(f"not read: {sentence}")
    say(f"{html} is written")
    raise typer.Exit(report_now.exit_code)


def _in_camel_case(fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """A dataclass's fields, each as name and value, as a mapping with keys in camel case."""
    return {to_camel(name): value for name, value in fields}
