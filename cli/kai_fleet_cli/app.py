"""The commands of `fleet`, and what becomes of a user's mistake."""

import sys

import typer

from kai_fleet_cli.commands import backups, init, inspection, options, sandbox, teams, updates
from kai_fleet_cli.display.terminal import pulumi_first, say
from kai_fleet_cli.errors import UserError
from kai_usage.words import without_controls

app = typer.Typer(
    cls=options.Fleet,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(init.init)
for command in (
    updates.up,
    updates.preview,
    inspection.plan,
    inspection.diff,
    teams.teams,
    inspection.doctor,
    inspection.report,
    inspection.upgrade,
):
    app.command(cls=options.OfAStack)(command)
app.command()(inspection.releases)
app.command()(updates.destroy)
app.callback()(options.main)
teams.app.command()(backups.backup)
teams.app.command()(backups.restore)
app.add_typer(teams.app, name="team")
app.add_typer(sandbox.app, name="sandbox")


def run() -> None:
    """Run the command of the arguments. Raises SystemExit with its exit code.

    For a UserError print its message on stderr, and what to run first if it names a command of
    Pulumi that this shell does not find; the exit code is 1. Ctrl-C in a command that does not
    handle it prints nothing, with exit code 130; the end of stdin at a question prints a word, with
    exit code 1. Every other exception passes.
    """
    try:
        app()
    except UserError as error:
        message = without_controls(str(error))  # a tenant's server may have written a part of it
        sys.stderr.write(f"error: {message}\n")
        if first := pulumi_first(str(error)):
            say(first)
        raise SystemExit(1) from None
