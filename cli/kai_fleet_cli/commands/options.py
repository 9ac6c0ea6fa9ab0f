"""What commands share: their flags, and how they print a result."""

import json
import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from kai_fleet_cli.display.terminal import result

StackFile = Annotated[str, typer.Option("--stack", "-s", help="Its file is Pulumi.STACK.yaml.")]
Sure = Annotated[bool, typer.Option("--yes", "-y", help="Do it without a question.")]
AsJson = Annotated[bool, typer.Option("--json", help="For machines.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="A file readable only by you.")]


class OfAStack(TyperCommand):
    """A command that takes a word for `--stack`, where that is not written and the word is the name
    of a stack with a file: `fleet up prod`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as click does, then move the word."""
        from kai_fleet_cli.stack_file.reading import stacks  # and all settings: a tenth of a second

        ctx.allow_extra_args = True
        super().parse_args(ctx, args)
        words = [*(ctx.params.get("names") or ()), *ctx.args]
        source = ctx.get_parameter_source("stack")
        unwritten = source is not None and source.name == "DEFAULT"
        # `up --yes sandbox` agrees to the losses of the stack that it is of anyway.
        agreed = ctx.params.get("yes") and words[:1] == [ctx.params["stack"]]
        if unwritten and words and words[0] in stacks() and not agreed:
            ctx.params["stack"] = words.pop(0)
        if "names" in ctx.params:
            ctx.params["names"] = words
        elif words:
            known = ", ".join(stacks()) or "none"
            ctx.fail(f"{words[0]} is too much: this is of one stack. Stacks with a file: {known}")
        ctx.args = []
        return []


def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """GPU platforms for many teams, as code."""
    if version:
        result(f"fleet {metadata.version('kai-fleet-cli')}")
        raise typer.Exit


def print_json(record: Any) -> None:
    """Print a command's result as JSON."""
    sys.stdout.write(json.dumps(record, indent=2, ensure_ascii=False, default=str) + "\n")


def write_private(content: str, output: Path | None, then: str = "") -> None:
    """Print a secret, or write it to a file that only its owner can read."""
    from kai_fleet_cli.stack_file import edit

    if output is None:
        sys.stdout.write(content)
        return
    edit.put(output, content, 0o600)
    result(f"{output} is written{then and f': {then}'}")
