"""`fleet init`: write the stack file of a cluster, and say what to do next."""

from typing import Annotated

import typer
from rich.console import Console
from rich.prompt import Prompt

from kai_fleet.cluster.kube.kubeconfig import contexts
from kai_fleet.names import FLEET
from kai_fleet_cli.display import terminal
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.init import stack_file
from kai_fleet_cli.stack_file import reading


def init(
    stack: Annotated[str, typer.Argument(help="It writes Pulumi.STACK.yaml.")],
    context: Annotated[
        str | None,
        typer.Option(help="A kubectl context. Unset: a terminal asks, else it is the current."),
    ] = None,
) -> None:
    """Write a first stack file from what a cluster has; it replaces no file, and only reads."""
    path = reading.path_of(stack)
    if path.exists():
        plan_command = f"{FLEET} plan --stack {stack}"
        raise UserError(
            f"{path.name} is there already: see `{plan_command}`, or write another name"
        )
    if context is None and terminal.can_ask():
        context = _ask_context()
    with Console(stderr=True).status("reading the cluster"):
        content, next_steps = stack_file.text(stack, context)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
    terminal.result(next_steps)


def _ask_context() -> str | None:
    """The context that a person chooses; None, for the current one, if there are not several, or
    if the kubeconfig cannot be read. Raises EOFError at the end of stdin.
    """
    names, current = contexts()
    if len(names) < 2:
        return None
    if current:
        return Prompt.ask("Context", choices=names, default=current)
    return Prompt.ask("Context", choices=names)
