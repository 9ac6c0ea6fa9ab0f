"""`python -m fleet`: the commands around `pulumi up`."""

from __future__ import annotations

import atexit
import gc
import json
import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from fleet.environment import NotPossible, for_stack
from fleet.screen import engine_line
from fleet.teams import commands, stack_commands

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
commands.app.add_typer(stack_commands.app)
app.add_typer(commands.app, name="team")
app.command()(commands.teams)

out = Console()  # rich leaves colours out where this is no terminal, and for NO_COLOR
notes = Console(stderr=True)

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
    stack: Stack = "sandbox",
    config: Annotated[
        Path | None, typer.Option("--config", help="A stack file from anywhere.")
    ] = None,
    format: Annotated[Format, typer.Option("--format")] = Format.text,
) -> None:
    """What a stack declares and what the rules say; no engine, no cluster, no network.

    Exit 0: fine. 1: a rule refuses it. 2: the file cannot be read.
    """
    from fleet import plan as offline
    from fleet import plan_markdown, plan_text

    result = offline.plan(stack, config)
    match format:
        case Format.json:
            sys.stdout.write(result.json() + "\n")
        case Format.yaml:
            sys.stdout.write(result.yaml())
        case Format.markdown:
            sys.stdout.write(plan_markdown.page(result))
        case Format.text:
            plan_text.show(result, out)
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
    from fleet.diffs import diff_markdown, diff_report, diff_text

    try:
        report = diff_report.report(stack, base)
    except NotPossible as why:
        say(f"error: {why}")
        raise typer.Exit(diff_report.UNREADABLE) from None
    match format:
        case DiffFormat.json:
            sys.stdout.write(report.json() + "\n")
        case DiffFormat.markdown:
            sys.stdout.write(diff_markdown.page(report))
        case DiffFormat.text:
            diff_text.show(report, out)
    raise typer.Exit(report.exit_code)


@app.command()
def up(stack: Stack = "sandbox") -> None:
    """Make the cluster as declared. On the sandbox's stacks, start the sandbox first."""
    from fleet import loaded_plugins

    loaded_plugins.load()  # first: it loads while this process does
    from fleet import engine, summary

    environment = for_stack(stack, say)
    opened = engine.stack(stack, environment.variables)
    outcome = engine.up(opened, engine_line, color=out.is_terminal)
    summary.show(stack, outcome, environment.standins, out)


@app.command()
def preview(stack: Stack = "sandbox") -> None:
    """Say what `up` would change, resource by resource, with every rule's verdict."""
    from fleet import loaded_plugins

    loaded_plugins.load()
    from fleet import engine

    environment = for_stack(stack, say)
    opened = engine.stack(stack, environment.variables)
    if engine.preview(opened, engine_line, color=out.is_terminal).unchanged:
        out.print("Nothing would change.")


@app.command()
def destroy(stack: Annotated[str, typer.Option("--stack", "-s")]) -> None:
    """Remove everything that a stack made from its cluster."""
    from fleet import engine

    environment = for_stack(stack, say, judged=False)
    engine.destroy(engine.stack(stack, environment.variables), engine_line, color=out.is_terminal)
    environment.vacate()


@app.command()
def cancel(stack: Annotated[str, typer.Option("--stack", "-s")]) -> None:
    """Take the lock off a stack whose update was killed. The next `up` goes on from there."""
    from fleet import engine
    from fleet.recovery import locks

    environment = for_stack(stack, say, judged=False)
    holder = locks.holder(stack, environment.variables)
    if holder is not None and holder.alive:
        raise NotPossible(
            f"stack {stack} is being updated by {holder}, and that process runs. Wait for it, or"
            f" end it first: kill {holder.pid}"
        )
    engine.stack(stack, environment.variables).cancel()
    say(f"stack {stack} is free; run its update again")


@app.command()
def restore(stack: Annotated[str, typer.Option("--stack", "-s")]) -> None:
    """Put back the last good state of a stack whose state file is broken, and keep that one."""
    from fleet.recovery import restore as copies

    environment = for_stack(stack, say, judged=False)
    put = copies.restore(stack, environment.variables)
    say(f"the state of stack {stack} is that of {put.source} again: {put.resources} resources")
    say(f"the broken one is kept: {put.broken}")
    say(f"see what an update would do, then run it: make preview STACK={stack}")


@app.command()
def kubeconfig(team: str, stack: Stack = "sandbox") -> None:
    """Print a team's kubeconfig: whoever has it is that vCluster's administrator."""
    from fleet import engine

    environment = for_stack(stack, say, judged=False)
    outputs = engine.stack(stack, environment.variables).outputs()
    known = outputs["kubeconfigs"].value if "kubeconfigs" in outputs else {}
    if team not in known:
        teams = ", ".join(known) or "none yet; run `make up` first"
        raise NotPossible(f"stack {stack} has no team {team}; its teams: {teams}")
    sys.stdout.write(known[team])


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
    json_: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Say what is wrong on a stack's live clusters, why, and what to do; it changes nothing.

    Without --stack or --context: stack sandbox. Exit 0: healthy. 1: broken. 2: cannot look.
    """
    from fleet.doctor import show
    from fleet.doctor.finding import ExitCode
    from fleet.doctor.visit import visit

    chosen = stack or (None if context else "sandbox")
    try:
        found = visit(chosen, team, context)
    except NotPossible as why:
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
    from fleet.schema import schema as stack_schema

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


@sandbox_app.command("down")
def sandbox_down() -> None:
    """Stop the sandbox and remove its state."""
    from sandbox import lifecycle

    lifecycle.down(say)


def _running() -> Sandbox:
    from sandbox import lifecycle

    running = lifecycle.find()
    if running is None:
        raise NotPossible("the sandbox is not running; start it with: make up")
    return running


def main() -> None:
    """Run a command; a user's mistake is one sentence and exit code 1."""
    # Python would look for cycles in all that is imported, over and over, and once more at its end:
    # a quarter of the imports' time. The program's run turns it on again, without those.
    gc.disable()
    atexit.register(gc.freeze)
    try:
        app()
    except NotPossible as why:
        say(f"error: {why}")
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        say("interrupted; run the same command again to go on")
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
