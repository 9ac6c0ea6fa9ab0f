"""Explain the engine's failures from the table `failures.yaml`."""

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml
from pulumi import automation

from kai_fleet.names import RELEASE
from kai_fleet.releases.keys import KAI_NAMESPACE
from kai_fleet.wording import without_controls
from kai_fleet_cli.stack_file.reading import PROJECT, ROOT

NAME: Final = r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?"  # it goes into a command
QUOTE: Final = '"'
# Errors of a run that others ended.
_ENDS: Final = ("update failed", "preview failed", "Resource monitor has terminated")
# What precedes an error of the program itself.
LEAD: Final = re.compile(r"(an unhandled error occurred: |Exception calling application: )*")


@dataclass(frozen=True)
class Failure:
    """A row of the table: `run` is a command, `do` a sentence; `run_kai` is for a part of KAI.

    Args:
        refreshed: In place of both where the run refreshed the state before it failed.
        anew: In place of both where the run made KAI anew.
        finds: What the cluster is asked for, `store`, `namespace` or `release`, for cause and fix.
        inside: The row is about what is in a vCluster.
        api: A whole API server fails.
        release: The row is about a Helm release on the host.
    """

    words: str
    cause: str
    run: str = ""
    do: str = ""
    run_kai: str = ""
    refreshed: str = ""
    anew: str = ""
    finds: str = ""
    inside: bool = False
    api: bool = False
    release: bool = False

    def match(self, text: str) -> dict[str, str] | None:
        """The named groups of the words, where these stand in the text."""
        found = re.search(self.words.replace("NAME", NAME), text, re.DOTALL)
        return {key: group or "" for key, group in found.groupdict().items()} if found else None

    def sentence(self, fill: Mapping[str, str], run: str = "", *, refreshed: bool = False) -> str:
        """Cause and repair; `run` is the command in place of the row's."""
        cause = self.cause.format(**fill)
        if refreshed and self.refreshed:
            return f"{cause}: {self.refreshed.format(**fill)}"
        if command := (run or self.run).format(**fill):
            return repaired(cause, command)
        return f"{cause}: {self.do.format(**fill)}" if self.do else cause


def repaired(cause: str, command: str) -> str:
    """The sentence of a cause and the command that repairs it; without one, of the cause alone."""
    repair = f". Repair it with: {command}" if command else ""
    return f"{cause}{repair}, then run the same command again"


def of_release(
    inputs: Mapping[str, Any], login: str = "", kubectl: str = "kubectl"
) -> dict[str, str]:
    """What a row says of a Helm release with these inputs, in the cluster of `kubectl`.

    Of KAI's hooks a killed run leaves Jobs, which Helm does not replace. Nothing else has Jobs in
    KAI's namespace.
    """
    namespace = str(inputs.get("namespace"))
    jobs = f" && {kubectl} -n {namespace} delete jobs --all"
    return {
        "release": str(inputs.get("name")),
        "namespace": namespace,
        "reach": f"{login} && {kubectl}" if login else kubectl,
        "there": kubectl,
        "and_jobs": jobs if namespace == KAI_NAMESPACE else "",
    }


def with_object(found: Mapping[str, str]) -> dict[str, str]:
    """The groups of a row, with what kubectl takes for `jobs.batch "name"`."""
    kind, _, name = found.get("left", "").partition(" ")
    return {**found, "object": f"{kind}/{name.strip(QUOTE)}"}


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
    resources: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    refreshed: bool = False,
) -> str:
    """Explain in a sentence why `what` (the update…) failed, and what to do.

    `environment` is what the engine had besides this process's own, `again` the command that
    refreshes and updates, `failed` the errors by URN, `resources` what failed; `refreshed`: the
    run refreshed the state before.
    """
    text = str(why)
    if failed:  # a wait may have printed errors that passed: stdout says nothing more of the cause
        code, stderr = text.partition(" stdout: ")[0], text.rpartition(" stderr: ")[2]
        lines = [f"error: {message.strip()}" for message in failed.values()]
        text = "\n".join([code, *lines, stderr])
    releases = [item for item in (resources or {}).values() if item.get("type") == RELEASE]
    release = (releases[0].get("inputs") or {}) if len(releases) == 1 else {}
    if sentence := of_stack(text, stack, again, environment, release, refreshed=refreshed):
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


def of_removal(text: str, stack: str, again: str, *, refreshed: bool = False) -> str:
    """Cause and repair of a removal whose cluster does not answer; "" of another failure."""
    return of_stack(text, stack, again, {}, part="removal", refreshed=refreshed)


def of_stack(
    text: str,
    stack: str,
    again: str,
    environment: Mapping[str, str],
    release: Mapping[str, Any] = MappingProxyType({}),
    *,
    refreshed: bool = False,
    part: str = "stack",
) -> str:
    """Cause and repair by the first row that fits of a part of the table, by default that for a
    whole run; "" where none does.

    `release` are the inputs of the one Helm release that failed.
    """
    for row in table()[part]:
        if row.release and not release:
            continue
        if (found := row.match(text.replace(f"\\{QUOTE}", QUOTE))) is not None:
            cancel = f"pulumi cancel --yes --stack {stack}"
            fill = {"stack": stack, "again": again, "cancel": cancel} | of_release(release)
            filled = fill | _backend(stack, environment) | with_object(found)
            return row.sentence(filled, refreshed=refreshed)
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
