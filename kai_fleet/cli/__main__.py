"""`fleet`: the commands around `pulumi up`."""

from __future__ import annotations

import json
import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.prompt import Confirm

from kai_fleet.cli import checkout_check
from kai_fleet.cli.commands import my, releases, report, team_stacks, teams, usage
from kai_fleet.cli.display.screen import engine_line
from kai_fleet.cli.engine.environment import for_stack
from kai_fleet.cli.engine.interruption import resumable_by
from kai_fleet.cli.errors import UserError, run_command

if TYPE_CHECKING:
    from sandbox.lifecycle import Sandbox

app = typer.Typer(
    help="GPU platforms for many teams, as code.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
sandbox_app = typer.Typer(help="The local sandbox.", no_args_is_help=True)
app.add_typer(sandbox_app, name="sandbox")
teams.app.add_typer(team_stacks.app)
app.add_typer(teams.app, name="team")
app.add_typer(my.app, name="my")
app.command()(teams.teams)
app.command()(teams.kubeconfig)
app.command()(releases.releases)
app.command()(report.report)
app.command()(usage.usage)

out = Console()  # rich leaves colours out where this is no terminal, and for NO_COLOR
notes = Console(stderr=True)

DRIFT = 3  # the exit code of `fleet drift` where something was changed by hand
Refresh = Annotated[
    bool,
    typer.Option("--refresh", help="First see what is there, and mend what a killed run left."),
]
Stack = Annotated[str, typer.Option("--stack", "-s", help="Its file is Pulumi.STACK.yaml.")]


class Format(StrEnum):
    """How a plan is written."""

    text = "text"
    json = "json"
    yaml = "yaml"
    markdown = "markdown"


class DiffFormat(StrEnum):
    """How a diff is written."""

    text = "text"
    json = "json"
    markdown = "markdown"


def say(text: str) -> None:
    """One line of progress, on stderr."""
    notes.print(text, highlight=False, markup=False, soft_wrap=True)


@app.command()
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
    format: Annotated[Format, typer.Option("--format")] = Format.text,
) -> None:
    """What a stack declares and what the rules say; no engine, no cluster, no network.

    Exit 0: fine. 1: a rule refuses it. 2: the file cannot be read.
    """
    from kai_fleet.cli.plan import as_markdown, as_text
    from kai_fleet.cli.plan import offline as offline

    of_file = config and config.stem.removeprefix("Pulumi.")
    result = offline.plan(of_file or "sandbox" if stack is None else stack, config)
    match format:
        case Format.json:
            sys.stdout.write(result.json() + "\n")
        case Format.yaml:
            sys.stdout.write(result.yaml())
        case Format.markdown:
            sys.stdout.write(as_markdown.page(result))
        case Format.text:
            as_text.show(result, out)
    raise typer.Exit(result.exit_code)


@app.command()
def diff(
    base: Annotated[str, typer.Option("--base", help="A branch, tag or commit.")],
    stack: Stack = "sandbox",
    format: Annotated[DiffFormat, typer.Option("--format")] = DiffFormat.text,
) -> None:
    """What the work tree changes of a stack, compared with a commit; no engine, no cluster.

    Exit 0: nothing. 1: a rule refuses it, or the base. 2: unreadable. 3: something.
    """
    from kai_fleet.cli.diff import as_markdown, as_text, report

    try:
        found = report.report(stack, base)
    except UserError as why:
        say(f"error: {why}")
        raise typer.Exit(report.UNREADABLE) from None
    match format:
        case DiffFormat.json:
            sys.stdout.write(found.json() + "\n")
        case DiffFormat.markdown:
            sys.stdout.write(as_markdown.page(found))
        case DiffFormat.text:
            as_text.show(found, out)
    raise typer.Exit(found.exit_code)


@app.command()
def up(
    stack: Stack = "sandbox",
    refresh: Refresh = False,
    remove_team: Annotated[
        list[str] | None,
        typer.Option("--remove-team", help="A team that is no longer declared may go."),
    ] = None,
) -> None:
    """Make the cluster as declared. On the sandbox's stacks, start the sandbox first.

    A team that the file does not declare any more goes only when it is named.
    """
    from kai_fleet.cli.engine import removal_question, runs, summary
    from kai_fleet.cli.recovery import failures
    from kai_fleet.policies.stack.unnamed_removals import VARIABLE

    names = remove_team or []
    with resumable_by(f"up --refresh --stack {stack}", say):
        environment = for_stack(stack, say)
        by_name = {VARIABLE: ",".join(names)} if names else {}
        opened = runs.stack(stack, {**environment.variables, **by_name})
        try:
            try:
                outcome = runs.up(opened, engine_line, color=out.is_terminal, refresh=refresh)
            except runs.EngineError:
                if not (names := removal_question.named(opened, names, out)):
                    raise
                opened = runs.stack(stack, {**environment.variables, VARIABLE: ",".join(names)})
                outcome = runs.up(opened, engine_line, color=out.is_terminal, refresh=refresh)
        except UserError as why:
            raise UserError(failures.naming(str(why), stack, names)) from None
    summary.show(stack, outcome, environment.standins, out)


@app.command()
def preview(
    stack: Stack = "sandbox",
    details: Annotated[
        bool, typer.Option("--details", help="Every property, old and new.")
    ] = False,
) -> None:
    """Say what `up` would change, resource by resource, with every rule's verdict."""
    from kai_fleet.cli.engine import runs

    environment = for_stack(stack, say)
    opened = runs.stack(stack, environment.variables)
    if runs.preview(opened, engine_line, color=out.is_terminal, details=details).unchanged:
        out.print("Nothing would change.")
    elif not details:
        out.print(f"Every property: make preview STACK={stack} DETAILS=1", highlight=False)


@app.command()
def drift(stack: Stack = "sandbox") -> None:
    """Say what was changed by hand since the last update; it changes nothing.

    Exit 0: nothing. 1: it cannot be looked at. 3: something.
    """
    from kai_fleet.cli.engine import runs

    environment = for_stack(stack, say, validated=False)
    found = runs.drift(runs.stack(stack, environment.variables), engine_line)
    for name, operation in found.resources.items():
        out.print(f"{name}: {'gone' if operation == 'delete' else 'changed'}", highlight=False)
    if found.resources:
        say(f"To make it as declared again: .venv/bin/fleet up --refresh --stack {stack}")
        raise typer.Exit(DRIFT)
    if found.silent:
        told = "; ".join(f"{name}: {why}" for name, why in found.silent.items())
        raise UserError(f"not every vCluster of stack {stack} can be looked at: {told}")
    out.print("Nothing was changed by hand.")


@app.command()
def destroy(stack: Annotated[str, typer.Option("--stack", "-s")], refresh: Refresh = False) -> None:
    """Remove everything that a stack made from its cluster."""
    from kai_fleet.cli.engine import runs

    with resumable_by(f"destroy --refresh --stack {stack}", say):
        environment = for_stack(stack, say, validated=False)
        opened = runs.stack(stack, environment.variables)
        runs.destroy(opened, engine_line, color=out.is_terminal, refresh=refresh)
    environment.vacate()


@app.command()
def cancel(stack: Annotated[str, typer.Option("--stack", "-s")]) -> None:
    """Take the lock off a stack whose update was killed. The next `up` goes on from there."""
    from kai_fleet.cli.engine import runs
    from kai_fleet.cli.recovery import locks

    environment = for_stack(stack, say, validated=False)
    holder = locks.holder(stack, environment.variables)
    if holder is not None and holder.alive:
        raise UserError(
            f"stack {stack} is being updated by {holder}, and that process runs. Wait for it, or"
            f" end it first: kill {holder.pid}"
        )
    runs.stack(stack, environment.variables).cancel()
    say(f"stack {stack} is free; run its update again")


@app.command()
def restore(
    stack: Annotated[str, typer.Option("--stack", "-s")],
    yes: Annotated[bool, typer.Option("--yes", help="Do it without a question.")] = False,
) -> None:
    """Put back the last good state of a stack whose state cannot be read."""
    from pulumi import automation

    from kai_fleet.cli.engine import runs
    from kai_fleet.cli.recovery import restore as copies

    environment = for_stack(stack, say, validated=False)
    found = copies.newest(stack, environment.variables)
    say(f"the newest copy that can be read is {found.source}: {found.resources} resources")
    if not yes and not (sys.stdin.isatty() and Confirm.ask("Import it (pulumi stack import)?")):
        raise UserError(
            f"nothing was done; to import it: .venv/bin/fleet restore --yes --stack {stack}"
        )
    opened = runs.stack(stack, environment.variables)
    opened.import_stack(automation.Deployment(version=3, deployment=dict(found.deployment)))
    say(f"the state of stack {stack} is that copy's; the broken one is beside it, as .bak")
    say(f"to have it say what is there: .venv/bin/fleet up --refresh --stack {stack}")


@app.command()
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
    json_: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Say what is wrong on a stack's live clusters, why, and what to do; it changes nothing.

    Without --stack, --context or --kubeconfig: stack sandbox.

    Exit 0: healthy. 1: broken. 2: cannot look.
    """
    from kai_fleet.cli.display.progress import clusters_read
    from kai_fleet.cli.doctor import show
    from kai_fleet.cli.doctor.diagnosis import diagnose
    from kai_fleet.cli.doctor.finding import ExitCode

    chosen = stack or (None if context or kubeconfig else "sandbox")
    try:
        with clusters_read() as heard:
            found = diagnose(chosen, team, context, kubeconfig, heard)
    except UserError as why:
        say(f"error: {why}")
        raise typer.Exit(ExitCode.BLIND) from None
    if json_:
        sys.stdout.write(json.dumps(found.record(), indent=2, ensure_ascii=False) + "\n")
    else:
        show.show(found, out)
    raise typer.Exit(found.exit_code)


@app.command()
def schema() -> None:
    """Print the JSON Schema of a stack file."""
    from kai_fleet.cli.stack_file.schema import schema as stack_schema

    sys.stdout.write(json.dumps(stack_schema(), indent=2) + "\n")


@sandbox_app.command("kubeconfig")
def sandbox_kubeconfig() -> None:
    """Print the path of the sandbox's kubeconfig."""
    sys.stdout.write(f"{_running().kubeconfig}\n")


@sandbox_app.command("env")
def sandbox_env() -> None:
    """Print the variables for plain `pulumi`, `helm` and `kubectl`: eval "$(… sandbox env)"."""
    for name, value in _running().env().items():
        sys.stdout.write(f"export {name}={shlex.quote(value)}\n")


@sandbox_app.command("tools")
def sandbox_tools() -> None:
    """Get the sandbox's tools, and say where each one is from."""
    from sandbox import lifecycle
    from sandbox.tools import toolbox

    try:
        found = toolbox.ensure(lifecycle.TOOLS, say)
    except toolbox.ToolError as why:
        raise UserError(str(why)) from None
    for tool in found.values():
        out.print(f"{tool.name} {tool.version} ({tool.origin})", highlight=False)


@sandbox_app.command("down")
def sandbox_down() -> None:
    """Stop the sandbox and remove its state."""
    from sandbox import lifecycle

    lifecycle.down(say)


def _running() -> Sandbox:
    from sandbox import lifecycle

    running = lifecycle.find()
    if running is None:
        raise UserError("the sandbox is not running; start it with: make up")
    return running


def main() -> None:
    """Run a command; a user's mistake is one sentence and exit code 1."""
    run_command(_run)


def _run() -> None:
    checkout_check.check(sys.argv[0])
    app()


if __name__ == "__main__":
    main()
