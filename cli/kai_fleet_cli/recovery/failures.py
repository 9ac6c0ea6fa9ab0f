"""Explain failures of the engine from the table `failures.yaml`."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from pulumi import automation

from kai_fleet import releases
from kai_fleet.names import RELEASE
from kai_fleet.wording import without_controls
from kai_fleet_cli.recovery.state import Errors, Resources
from kai_fleet_cli.stack_file.reading import PROJECT, ROOT
from kai_usage.keys import KAI_NAMESPACE

NAME = r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?"  # a name that may stand in a command
QUOTE = '"'
# Errors that only say that a run ended, not why.
_ENDINGS = ("update failed", "preview failed", "Resource monitor has terminated")
# Words before an error of the program itself.
LEAD = re.compile(r"(an unhandled error occurred: |Exception calling application: )*")
# An error in the CLI's output. Behind "1 mistake:" the mistake is on the next line and belongs to
# the error; several mistakes are only above.
_ERROR = re.compile(r"^(?:\s*stderr:)?\s*error: (.+(?:(?<=1 mistake:)\s+\S.+)?)$", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """A run of the engine, as sentences about its failure name it.

    Attributes:
        stack: The stack.
        resume_command: The command that refreshes, then updates or removes.
        environment: Variables that the engine had besides those of this process.
        refreshed: The run had refreshed the state.
    """

    stack: str
    resume_command: str
    environment: Mapping[str, str] = field(default_factory=dict)
    refreshed: bool = False


class Section(StrEnum):
    """A list of rows in the table: about a whole run, about a removal, about a team."""

    STACK = "stack"
    REMOVAL = "removal"
    TEAM = "team"


@dataclass(frozen=True)
class Failure:
    """A row of the table. All texts but `words`, and the commands, are templates for `str.format`.

    Attributes:
        words: The pattern that `match` looks for in the engine's output; NAME in it is a name that
            Kubernetes takes.
        cause: The cause.
        run: The command that repairs it.
        do: The repair as a sentence, if there is no command.
        run_kai: The command in place of `run` if KAI serves the webhook that failed.
        refreshed: The sentence in place of `run` and `do` if the run had refreshed the state.
        anew: The sentence in place of a command that creates KAI if the run had created KAI.
        commands: The commands that `do`, `refreshed` and `anew` name: `{0}` is the first.
        finds: What to read from the cluster to tell cause and repair in place of the row's; it
            counts in section TEAM alone.
        inside: The row is about what is in a vCluster.
        api: The API server fails for everybody.
        release: The row is about a Helm release on the host.
    """

    words: str
    cause: str
    run: str = ""
    do: str = ""
    run_kai: str = ""
    refreshed: str = ""
    anew: str = ""
    commands: Sequence[str] = ()
    finds: Literal["", "store", "namespace", "release", "record"] = ""
    inside: bool = False
    api: bool = False
    release: bool = False

    def match(self, text: str) -> dict[str, str] | None:
        """The named groups of `words` at their first match anywhere in a text; a dot also matches a
        line break.

        A group that took no part in the match is "". None if `words` do not occur.
        """
        match = re.search(self.words.replace("NAME", NAME), text, re.DOTALL)
        if match is None:
            return None
        return {name: group or "" for name, group in match.groupdict().items()}

    def sentence(self, fields: Mapping[str, str], run: str = "", *, refreshed: bool = False) -> str:
        """The cause, and the first repair that there is: `refreshed`, the command, `do`.

        Without any the cause alone. The values of `fields` are in it as they are, also their
        control characters.

        Args:
            fields: Values for the templates.
            run: The template of a command in place of the row's; "" for the row's.
            refreshed: The run had refreshed the state; only then `refreshed` counts.

        Raises:
            KeyError: A template names a field that `fields` lack.
        """
        cause = self.cause.format(**fields)
        if refreshed and self.refreshed:
            return f"{cause}: {self.text(self.refreshed, fields)}"
        command = (run or self.run).format(**fields)
        if command:
            return repaired(cause, command)
        return f"{cause}: {self.text(self.do, fields)}" if self.do else cause

    def text(self, template: str, fields: Mapping[str, str]) -> str:
        """One of the texts, with the commands that it names. Raises KeyError as `sentence`."""
        commands = [command.format(**fields) for command in self.commands]
        return template.format(*commands, **fields)


def repaired(cause: str, command: str = "") -> str:
    """The sentence with a cause and the command that repairs it; `command` is "" for none.

    It ends with the advice to run the same command again.
    """
    repair = f". Repair it with: {command}" if command else ""
    return f"{cause}{repair}, then run the same command again"


def release_fields(
    inputs: Mapping[str, object], login: str = "", kubectl: str = "kubectl"
) -> dict[str, str]:
    """The fields of a row about the Helm release with these inputs.

    `kubectl` is the command for its cluster, `login` the one that has to run before, "" for none.
    The field `reach` has both, `there` only `kubectl`. A name or namespace that the inputs lack is
    the text `None`.

    A killed run leaves Jobs of KAI's hooks, which Helm does not replace: `and_jobs` deletes them.
    It is "" in other namespaces. Only hooks have Jobs in KAI's namespace.
    """
    namespace = str(inputs.get("namespace"))
    delete_jobs = f" && {kubectl} -n {namespace} delete jobs --all"
    return {
        "release": str(inputs.get("name")),
        "namespace": namespace,
        "reach": f"{login} && {kubectl}" if login else kubectl,
        "there": kubectl,
        "and_jobs": delete_jobs if namespace == KAI_NAMESPACE else "",
    }


def with_object(groups: Mapping[str, str]) -> dict[str, str]:
    """The groups of a row and `object`: `jobs.batch "name"` in group `left` as kubectl takes it.

    Without that group `object` is only a slash.
    """
    kind, _, name = groups.get("left", "").partition(" ")
    return {**groups, "object": f"{kind}/{name.strip(QUOTE)}"}


@cache
def table() -> dict[Section, list[Failure]]:
    """The rows of each section in the order of the file: the first row that matches counts.

    The file is read once; every call returns the same lists.
    """
    rows: dict[Section, list[Failure]] = {}
    for section, fields in releases.table("failures", __package__).items():
        rows[Section(section)] = [Failure(**row) for row in fields]
    return rows


def explain(
    what: str,
    run: Run,
    error: automation.errors.CommandError,
    failed: Errors | None = None,
    resources: Resources | None = None,
) -> str:
    """Why an operation failed and what to do, as a sentence.

    By the first row about whole runs that matches, else by the last error in the CLI's output; if
    that has none, it refers to the lines above.

    Args:
        what: The operation, such as "the update".
        run: The run.
        error: The failure of the CLI.
        failed: Errors of resources. If there are any, they stand for the CLI's standard output; its
            exit code and standard error count as well.
        resources: The resources whose step failed, by URN. Rows about a Helm release count only if
            exactly one is among them.
    """
    text = str(error)
    if failed:
        # In place of the standard output, which may have errors of a wait that passed.
        code = text.partition(" stdout: ")[0]
        stderr = text.rpartition(" stderr: ")[2]
        errors = [f"error: {message.strip()}" for message in failed.values()]
        text = "\n".join([code, *errors, stderr])
    sentence = cause_and_repair(text, run, _only_release(resources or {}))
    if sentence:
        return f"{what} failed: {sentence}"
    error_line = _last_error(text)
    if error_line and not error_line.endswith(":"):  # behind a colon follow several mistakes
        return f"{what} failed: {error_line}"
    return f"{what} failed; the lines above say where and why"


def _only_release(resources: Resources) -> Mapping[str, object]:
    """The inputs of the Helm release among resources; empty if there is not exactly one."""
    found = [item for item in resources.values() if item.get("type") == RELEASE]
    if len(found) != 1:
        return {}
    inputs: Mapping[str, object] | None = found[0].get("inputs")
    return inputs or {}


def _last_error(text: str) -> str:
    """The last error in a text that says more than that the run ended; "" if there is none.

    It is one line without control characters: it may quote a tenant's API server.
    """
    for error in reversed(_ERROR.findall(text)):
        line = " ".join(without_controls(error).split())
        if not line.startswith(_ENDINGS):
            return LEAD.sub("", line, count=1)
    return ""


def cause_and_repair(
    text: str,
    run: Run,
    release: Mapping[str, object] = MappingProxyType({}),
    section: Section = Section.STACK,
) -> str:
    """Cause and repair by the first row of a section that matches; "" if none does.

    What the row quotes of the engine's output may have control characters.

    Args:
        text: The engine's output; `\\"` in it counts as a quote.
        run: The run.
        release: The inputs of the Helm release that failed; empty if not exactly one did. Rows
            about a release match only with one.
        section: Where to look. A row of REMOVAL matches if a cluster does not answer.
    """
    unescaped = text.replace(f"\\{QUOTE}", QUOTE)
    for row in table()[section]:
        if row.release and not release:
            continue
        groups = row.match(unescaped)
        if groups is not None:
            fields = {
                "stack": run.stack,
                "again": run.resume_command,
                "cancel": f"pulumi cancel --yes --stack {run.stack}",
                **release_fields(release),
                **_backend_fields(run),
                **with_object(groups),
            }
            return row.sentence(fields, refreshed=run.refreshed)
    return ""


def is_of_api(text: str) -> bool:
    """Whether the first row about a whole run that matches says that an API server fails.

    Rows about a Helm release match here, too. False if no row matches.
    """
    for row in table()[Section.STACK]:
        if row.match(text) is not None:
            return row.api
    return False


def _backend_fields(run: Run) -> dict[str, str]:
    """`restore`, the command that restores the state before the engine's last write, and `folder`
    of a file backend as a shell takes it, "" for others.

    The backend is PULUMI_BACKEND_URL of the run, else of this process. For another backend
    than a file one the user fills in `<number>` in `restore`.
    """
    url = {**os.environ, **run.environment}.get("PULUMI_BACKEND_URL", "")
    if not url.startswith("file://"):
        export = f"pulumi stack export --stack {run.stack} --version <number>"
        return {"folder": "", "restore": f"{export} | pulumi stack import --stack {run.stack}"}
    path = Path(url.removeprefix("file://").partition("?")[0]).expanduser()
    folder = ROOT / path  # the engine runs in ROOT
    state = folder / ".pulumi" / "stacks" / PROJECT / f"{run.stack}.json"
    return {
        "folder": shlex.quote(str(state.parents[2])),
        "restore": f"cp {shlex.quote(f'{state}.bak')} {shlex.quote(str(state))}",
    }
