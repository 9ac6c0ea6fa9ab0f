"""Flags that commands share, and how commands print a result."""

import json
import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from kai_fleet_cli.display.terminal import result
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file import edit
from kai_fleet_cli.stack_file.reading import stacks

StackFile = Annotated[str, typer.Option("--stack", "-s", help="Its file is Pulumi.STACK.yaml.")]
Sure = Annotated[bool, typer.Option("--yes", "-y", help="Do it without a question.")]
AsJson = Annotated[bool, typer.Option("--json", help="For machines.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="A file readable only by you.")]


class Fleet(TyperGroup):
    """All commands."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command as typer does. Raises UserError if stdin ends at a question."""
        try:
            return super().invoke(ctx)
        except EOFError:
            typer.echo(err=True)  # the question has no line break
            raise UserError("stdin ended at the question, which counts as no") from None


class OfAStack(TyperCommand):
    """A command that takes the name of a stack with a file for `--stack`: `fleet up prod`.

    Without `--stack` its first word is the stack if it is such a name.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as typer does, then move the word to `--stack`; return no remaining words.

        `ctx` is typer's own Context, which has no public name. The other words go to `names`; if
        the command takes none, raises typer's UsageError, as for what typer does not parse.
        """
        ctx.allow_extra_args = True
        super().parse_args(ctx, args)
        words = [*(ctx.params.get("names") or ()), *ctx.args]
        if words and self._is_stack(ctx, words[0]):
            ctx.params["stack"] = words.pop(0)
        if "names" in ctx.params:
            ctx.params["names"] = words
        elif words:
            names = ", ".join(stacks()) or "none"
            ctx.fail(f"{words[0]} is too much: this is of one stack. Stacks with a file: {names}")
        ctx.args = []
        return []

    def _is_stack(self, ctx: Any, word: str) -> bool:
        """Whether the first word is a stack with a file, and takes the place of `--stack`, which is
        not written.

        The name of the default stack does not with `--yes`: there it is a name to agree to.
        """
        source = ctx.get_parameter_source("stack")
        is_default = source is not None and source.name == "DEFAULT"
        if not is_default:
            return False
        # `up --yes sandbox` agrees to losses of the default stack: its word stays a name.
        if ctx.params.get("yes") and word == ctx.params["stack"]:
            return False
        return word in stacks()


def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """GPU platforms for many teams, as code."""
    if version:
        result(f"fleet {metadata.version('kai-fleet-cli')}")
        raise typer.Exit


def print_json(record: object) -> None:
    """Print a command's result as JSON; values that JSON does not know become text."""
    sys.stdout.write(json.dumps(record, indent=2, ensure_ascii=False, default=str) + "\n")


def write_private(content: str, output: Path | None, next_step: str = "") -> None:
    """Write a secret to a file that only its owner can read; print that and the next step, if any.

    It replaces a file that is there, or to which a link that is there leads. Without a file print
    the secret alone on stdout. Raises UserError if the file cannot be written.
    """
    if output is None:
        sys.stdout.write(content)
        return
    edit.write_atomically(output, content.encode(), 0o600)
    result(f"{output} is written: {next_step}" if next_step else f"{output} is written")
