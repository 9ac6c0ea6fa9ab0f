"""What commands share: their flags, and how they print a result."""

import json
import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer

from kai_fleet_cli.display.terminal import result

StackFile = Annotated[str, typer.Option("--stack", "-s", help="Its file is Pulumi.STACK.yaml.")]
Sure = Annotated[bool, typer.Option("--yes", "-y", help="Do it without a question.")]
AsJson = Annotated[bool, typer.Option("--json", help="For machines.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="A file readable only by you.")]


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
