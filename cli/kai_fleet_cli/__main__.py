"""`fleet`: the commands around `pulumi up`."""

import sys

import typer

from kai_fleet_cli.commands import live, plan, releases, sandbox, team_stacks, teams, updates
from kai_fleet_cli.engine import checkout
from kubectl_fleet.commands import app as my
from kubectl_fleet.errors import run_command

app = typer.Typer(
    help="GPU platforms for many teams, as code.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
teams.app.add_typer(team_stacks.app)
for command in (
    updates.up,
    updates.preview,
    plan.plan,
    plan.diff,
    teams.teams,
    teams.kubeconfig,
    live.doctor,
    live.usage,
    live.report,
    releases.releases,
    updates.drift,
    updates.cancel,
    updates.restore,
    updates.destroy,
    plan.schema,
):
    app.command()(command)
app.add_typer(teams.app, name="team")
app.add_typer(my, name="my")
app.add_typer(sandbox.app, name="sandbox")


def main() -> None:
    """Run a command; a user's mistake is one sentence and exit code 1."""
    run_command(_run)


def _run() -> None:
    checkout.require_same(sys.argv[0])
    app()


if __name__ == "__main__":
    main()
