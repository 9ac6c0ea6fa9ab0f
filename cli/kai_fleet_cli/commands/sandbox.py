"""`fleet sandbox`: the local control plane, its variables and its tools.

The wheels have no package `sandbox`, so it is imported in functions.
"""

import shlex
import sys
from pathlib import Path

import typer

from kai_fleet.names import FLEET
from kai_fleet_cli.commands.options import Sure
from kai_fleet_cli.display.terminal import confirm_name, require_answer, result, say
from kai_fleet_cli.engine.environment import OCCUPANT, require_sandbox, running_sandbox
from kai_fleet_cli.errors import UserError

app = typer.Typer(
    help="The local sandbox.", no_args_is_help=True, callback=lambda: require_sandbox()
)


@app.command()
def env() -> None:
    """Print the variables for plain `pulumi`, `helm` and `kubectl`: eval "$(… sandbox env)"."""
    for name, value in running_sandbox().env().items():
        sys.stdout.write(f"export {name}={shlex.quote(value)}\n")


@app.command()
def tools() -> None:
    """Find, download or build the sandbox's tools, and say how each one came."""
    from sandbox import lifecycle
    from sandbox.tools import toolbox

    try:
        tools_by_name = toolbox.ensure(lifecycle.TOOL_NAMES, say)
    except toolbox.ToolError as error:
        raise UserError(str(error)) from None
    for tool in tools_by_name.values():
        result(f"{tool.name} {tool.version} ({tool.origin})")


@app.command()
def down(yes: Sure = False) -> None:
    """Stop the sandbox and remove its state; the name of a stack in it has to be typed, or --yes.

    `make down` does not ask.
    """
    from sandbox import lifecycle

    running = lifecycle.find()
    if running and not yes:
        _confirm_stack(running.directory / OCCUPANT)
    lifecycle.down(say)


def _confirm_stack(occupant_file: Path) -> None:
    """Ask to type the name of the stack in the sandbox, which the file has.

    Without the file no stack is there, and nothing is asked. Raises UserError for another answer,
    and if nobody is at a terminal, EOFError at the end of stdin.
    """
    if not occupant_file.exists():
        return
    stack = occupant_file.read_text(encoding="utf-8").strip()
    loss = f"stack {stack} would be gone with the sandbox"
    require_answer(f"{FLEET} sandbox down", loss, yes=False)
    result(f"Stack {stack} goes with its clusters and its state.")
    confirm_name(stack)
