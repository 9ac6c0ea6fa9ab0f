"""`fleet init`: the stack file of a cluster, and what to do then."""

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.prompt import Prompt

from kai_fleet.cluster.kube.kubeconfig import contexts
from kai_fleet.settings.files.project import FLEET
from kai_fleet_cli.display import terminal
from kai_fleet_cli.errors import UserError


def init(
    stack: Annotated[str, typer.Argument(help="It writes Pulumi.STACK.yaml.")],
    context: Annotated[
        str | None,
        typer.Option(help="A kubectl context. Unset: a terminal asks, else it is the current."),
    ] = None,
) -> None:
    """Write a first stack file from what a cluster has; it replaces no file, and only reads."""
    from kai_fleet_cli.init import stack_file
    from kai_fleet_cli.stack_file import reading

    if (path := reading.path_of(stack)).exists():
        again = f"{FLEET} plan --stack {stack}"
        raise UserError(f"{path.name} is there already: see `{again}`, or write another name")
    if context is None and terminal.asks():
        names, current = contexts()
        if len(names) > 1:
            asked: Any = {"default": current} if current else {}
            context = Prompt.ask("Context", choices=names, **asked)
    with Console(stderr=True).status("reading the cluster"):
        content, then = stack_file.text(stack, context)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
    except OSError as why:
        raise UserError(f"{path} cannot be written: {why.strerror}") from None
    terminal.result(then)
