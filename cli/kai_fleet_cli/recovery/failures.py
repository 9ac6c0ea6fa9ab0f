"""Explain the engine's failures from the table `failures.yaml`."""

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import yaml
from pulumi import automation

from kai_fleet.wording import without_controls
from kai_fleet_cli.stack_file.reading import PROJECT, ROOT

NAME: Final = r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?"  # it goes into a command
# Errors of a run that others ended.
_ENDS: Final = ("update failed", "preview failed", "Resource monitor has terminated")
# What precedes an error of the program itself.
LEAD: Final = re.compile(r"(an unhandled error occurred: |Exception calling application: )*")


@dataclass(frozen=True)
class Failure:
    """A row of the table: `run` is a command, `do` a sentence; `run_kai` is for a part of KAI.

    `inside`: the row is about what is in a vCluster. `api`: a whole API server fails.
    """

    words: str
    cause: str
    run: str = ""
    do: str = ""
    run_kai: str = ""
    inside: bool = False
    api: bool = False

    def match(self, text: str) -> dict[str, str] | None:
        """The named groups of the words, where these stand in the text."""
        found = re.search(self.words.replace("NAME", NAME), text, re.DOTALL)
        return {key: group or "" for key, group in found.groupdict().items()} if found else None

    def sentence(self, fill: Mapping[str, str], run: str = "") -> str:
        """Cause and repair; `run` is the command in place of the row's."""
        cause = self.cause.format(**fill)
        if command := (run or self.run).format(**fill):
            return f"{cause}. Repair it with: {command}, then run the same command again"
        return f"{cause}: {self.do.format(**fill)}" if self.do else cause


@cache
def table() -> dict[str, list[Failure]]:
    """The rows of `stack` and of `team`."""
    read = yaml.safe_load(Path(__file__).with_name("failures.yaml").read_text(encoding="utf-8"))
    return {part: [Failure(**row) for row in rows] for part, rows in read.items()}


def explain(
    what: str,
    stack: str,
    why: automation.errors.CommandError,
    environment: Mapping[str, str],
    again: str,
    failed: Mapping[str, str] | None = None,
) -> str:
    """Explain in a sentence why `what` (the update…) failed, and what to do.

    `environment` is what the engine had besides this process's own, `again` the command that
    refreshes and updates, `failed` the errors by URN.
    """
    text = str(why)
    if failed:  # a wait may have printed errors that passed: stdout says nothing more of the cause
        code, stderr = text.partition(" stdout: ")[0], text.rpartition(" stderr: ")[2]
        lines = [f"error: {message.strip()}" for message in failed.values()]
        text = "\n".join([code, *lines, stderr])
    if sentence := of_stack(text, stack, again, environment):
        return f"{what} failed: {sentence}"
    # Behind a colon follows a list: one item of it is said here, of more say the lines above.
    errors = re.findall(r"^(?:\s*stderr:)?\s*error: (.+(?:(?<=1 mistake:)\s+\S.+)?)$", text, re.M)
    # It may quote a tenant's API server.
    errors = [" ".join(without_controls(error).split()) for error in errors]
    error = next((error for error in reversed(errors) if not error.startswith(_ENDS)), "")
    error = LEAD.sub("", error, count=1)
    if error and not error.endswith(":"):
        return f"{what} failed: {error}"
    return f"{what} failed; the lines above say where and why"


def of_stack(text: str, stack: str, again: str, environment: Mapping[str, str]) -> str:
    """Cause and repair by the first row that fits of those for a whole run; "" where none does."""
    for row in table()["stack"]:
        if (found := row.match(text)) is not None:
            cancel = f"pulumi cancel --yes --stack {stack}"
            fill = {"stack": stack, "again": again, "cancel": cancel}
            return row.sentence(fill | _backend(stack, environment) | found)
    return ""


def of_api(text: str) -> bool:
    """Whether the first row that fits says that an API server fails whoever asks it."""
    return next((row.api for row in table()["stack"] if row.match(text) is not None), False)


def _backend(stack: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The command that puts back what the engine kept of a state before its last write, and the
    folder of a file backend.
    """
    url = {**os.environ, **environment}.get("PULUMI_BACKEND_URL", "")
    if not url.startswith("file://"):
        into = f"pulumi stack import --stack {stack}"
        export = f"pulumi stack export --stack {stack} --version <number>"
        return {"folder": "", "restore": f"{export} | {into}"}
    place = url.removeprefix("file://").partition("?")[0]
    folder = ROOT / Path(place).expanduser()  # a relative one is the engine's
    state = folder / ".pulumi" / "stacks" / PROJECT / f"{stack}.json"
    return {
        "folder": shlex.quote(str(state.parents[2])),
        "restore": f"cp {shlex.quote(f'{state}.bak')} {shlex.quote(str(state))}",
    }
