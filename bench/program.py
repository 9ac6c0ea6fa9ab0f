"""The program's side of a comparison: `fleet` on a stack file of the benchmark's own."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from bench.measure import Ran, run
from bench.stacks import text
from kai_fleet_cli.stack_file.reading import ROOT, path_of
from sandbox.lifecycle import Sandbox

STACK: Final = "bench"
QUEUES: Final = ROOT / f"queues.{STACK}.yaml"
LARGEST: Final = 100_000  # bytes: Pulumi hands a stack file on as one variable of 128 KiB at most


@dataclass
class Program:
    """Runs `fleet` as a person does, from the shell."""

    sandbox: Sandbox

    def write(self, config: Mapping[str, Any]) -> None:
        """Edit the stack file; a queue tree that is too large for Pulumi goes beside it."""
        written = text({"config": dict(config)})
        if len(written) > LARGEST:
            QUEUES.write_text(text(config["kai-fleet:queues"]))
            written = text({"config": {**config, "kai-fleet:queues": QUEUES.name}})
        path_of(STACK).write_text(written)

    def fleet(self, *arguments: str, fine: tuple[int, ...] = (0,)) -> Ran:
        """One command. Raises CommandFailed."""
        command = [sys.executable, "-m", "kai_fleet_cli", *arguments, "--stack", STACK]
        return run(command, {**os.environ, **self.sandbox.env()}, ROOT, fine=fine)

    def hand(self, *command: str, stdin: str = "", fine: tuple[int, ...] = (0,)) -> Ran:
        """One command of the script's, in the same environment. Raises CommandFailed."""
        return run(command, {**os.environ, **self.sandbox.env()}, ROOT, stdin, fine)


@contextmanager
def on_the_sandbox(sandbox: Sandbox) -> Iterator[Program]:
    """The program on a stack that goes with the end, and its file with it."""
    program = Program(sandbox)
    try:
        yield program
    finally:
        if path_of(STACK).exists():
            program.fleet("destroy", "--yes")
            path_of(STACK).unlink()
            QUEUES.unlink(missing_ok=True)
