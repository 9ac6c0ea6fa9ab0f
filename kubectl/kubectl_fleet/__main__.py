"""`kubectl fleet …`: what a team asks its own cluster. kubectl runs `kubectl-fleet` of the PATH."""

from __future__ import annotations

import typer

from kubectl_fleet.commands import app as my
from kubectl_fleet.errors import run_command

app = typer.Typer(
    help="Your queues, your GPUs, your pods that wait; by the kubeconfig that kubectl uses.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(my)
app.add_typer(my, name="my", hidden=True)  # as the command `fleet` has it


def main() -> None:
    """Run a command of the plugin."""
    run_command(app)
