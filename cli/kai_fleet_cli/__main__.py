"""`fleet`: the commands around `pulumi up`."""

import gc
import os
import sys

import typer

from kai_fleet_cli.commands import init, inspection, options, sandbox, teams, updates
from kai_fleet_cli.display.terminal import pulumi_first, say
from kai_fleet_cli.errors import UserError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command()(init.init)
for command in (
    updates.up,
    updates.preview,
    inspection.plan,
    inspection.diff,
    teams.teams,
    inspection.doctor,
    inspection.report,
):
    app.command(cls=options.OfAStack)(command)
app.command()(inspection.releases)
app.command()(updates.destroy)
app.callback()(options.main)
app.add_typer(teams.app, name="team")
app.add_typer(sandbox.app, name="sandbox")


def main() -> None:
    """Run a command; a user's mistake is one sentence on stderr and exit code 1.

    Then the process exits at once: Python would free all objects of Pulumi's SDKs first, for half
    a second. Until then it searches none of them for garbage, which takes as long.
    """
    gc.disable()
    code: str | int | None = 0
    try:
        app()
    except UserError as why:
        sys.stderr.write(f"error: {why}\n")
        if first := pulumi_first(str(why)):
            say(first)
        code = 1
    except SystemExit as end:
        code = end.code
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except OSError:  # the reader is gone, which Python handles
        raise SystemExit(code) from None
    os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    main()
