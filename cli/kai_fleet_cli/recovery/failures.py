"""Explain the engine's failures from the table `failures.yaml`."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml

from kai_fleet.settings.files.project import CHECKOUT
from kai_fleet.wording import without_controls
from kai_fleet_cli.stack_file.reading import PROJECT, ROOT

if TYPE_CHECKING:
    from pulumi import automation

TABLE: Final = Path(__file__).with_name("failures.yaml")
NAME: Final = r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?"  # it goes into a command
# What precedes an error of the program itself.
_LEAD: Final = re.compile(r"(an unhandled error occurred: |Exception calling application: )+")


@dataclass(frozen=True)
class Failure:
    """A row of the table: `run` is a command, `do` a sentence; `run_kai` is for a part of KAI.

    `inside`: the row is about what is in a vCluster.
    """

    words: str
    cause: str
    run: str = ""
    do: str = ""
    run_kai: str = ""
    inside: bool = False

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
    read = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return {part: [Failure(**row) for row in rows] for part, rows in read.items()}


def explain(
    what: str,
    stack: str,
    why: automation.errors.CommandError,
    environment: Mapping[str, str],
    again: str,
) -> str:
    """Explain in a sentence why `what` (the update…) failed, and what to do.

    `environment` is what the engine had besides this process's own, `again` the command that
    refreshes and updates.
    """
    text = str(why)
    if sentence := of_stack(text, stack, again, environment):
        return f"{what} failed: {sentence}"
    error = last_error(text)
    complete = not error.endswith(":")  # else a list follows, which the lines above have
    if error and complete and error not in ("update failed", "preview failed"):
        return f"{what} failed: {error}"
    return f"{what} failed; the lines above say where and why"


def of_stack(text: str, stack: str, again: str, environment: Mapping[str, str]) -> str:
    """Cause and repair by the first row that fits of those for a whole run; "" where none does."""
    for row in table()["stack"]:
        if (found := row.match(text)) is None:
            continue
        state = _state_file(stack, environment)
        return row.sentence(
            {
                "stack": stack,
                "again": again,
                "cancel": f"pulumi cancel --yes --stack {stack}",
                "folder": shlex.quote(str(state.parents[2])) if state else "",
                "restore": _restore(stack, state),
                "pulumi": _cli() if "{pulumi}" in row.run else "",
                **found,
            }
        )
    return ""


def last_error(text: str) -> str:
    """The engine's last error line in the dump of a CommandError.

    It may quote a tenant's API server, so control characters are removed.
    """
    errors = re.findall(r"^(?:\s*stderr:)?\s*error: (.+)$", text, re.M)
    return _LEAD.sub("", without_controls(errors[-1]).strip(), count=1) if errors else ""


def _state_file(stack: str, environment: Mapping[str, str]) -> Path | None:
    """The file of a stack's state on a file backend; None on every other backend."""
    url = {**os.environ, **environment}.get("PULUMI_BACKEND_URL", "")
    scheme, separator, rest = url.partition("://")
    if not separator or scheme != "file":
        return None
    folder = ROOT / Path(rest.partition("?")[0]).expanduser()  # a relative one is the engine's
    return folder / ".pulumi" / "stacks" / PROJECT / f"{stack}.json"


def _restore(stack: str, state: Path | None) -> str:
    """The command that puts back what the engine kept of a state before its last write."""
    if state is None:
        into = f"pulumi stack import --stack {stack}"
        return f"pulumi stack export --stack {stack} --version <number> | {into}"
    return f"cp {shlex.quote(f'{state}.bak')} {shlex.quote(str(state))}"


def _cli() -> str:
    """Pulumi's CLI as a shell finds it, also one that was fetched for this checkout."""
    if CHECKOUT is None:
        return "pulumi"
    from sandbox.tools import toolbox

    cli = toolbox.ensure(("pulumi",), lambda _: None)["pulumi"]
    return "pulumi" if cli.origin == "path" else shlex.quote(str(cli.path))
