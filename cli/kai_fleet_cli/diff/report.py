"""A diff of a stack: the plan of the work tree against the plan at a commit, by its own code."""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from kai_fleet.ownership.deployed import of_resources
from kai_fleet_cli.diff import grants
from kai_fleet_cli.diff.changes import Change, Summary, SummaryLine, difference, summary_of_changes
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.plan import offline
from kai_fleet_cli.plan.recorder import Registered
from kai_fleet_cli.recovery.resume import graceful_shutdown
from kai_fleet_cli.stack_file.reading import ROOT, facts_beside, read, unplanned_values
from kai_fleet_policies.finding import Finding
from kai_fleet_policies.model.cluster import HOST
from kai_fleet_stack import validation
from kai_fleet_stack.settings import Settings
from kai_fleet_stack.settings.secrets import (
    Ciphertext,
    ciphertexts_in_folder,
    ciphertexts_of,
    moved_ciphertexts,
)

# Of a commit's packages.
_SOURCE_FOLDERS = ("usage", "kubectl", "components", "policies", "stack", "cli")
_FILE_IS_GONE = (
    "Pulumi.{0}.yaml is gone: nothing of the stack is removed by that. To remove what it made,"
    " run this where the file still is: fleet destroy --stack {0}"
)
_UNPLANNED_KEY = "changes, from which the engine takes more than a plan shows: read it in the file"


@dataclass(frozen=True)
class Base:
    """The base of a diff: a commit, and the plan of the stack there.

    Attributes:
        ref: The branch, tag or commit that was asked for.
        commit: Its full hash.
        resources: The plan's resources; empty if there is no plan.
        is_new: The stack has no file at the commit.
        error: Why there is no plan; "" if there is one, or if the stack has no file.
        secrets: The ciphertexts of all stack files at the commit.
        unplanned: Keys of the stack's file that no plan shows, with their values as JSON.
        settings: The settings of the stack's file, as the code here reads them; None if too little
            of it is right, or it is not there.
    """

    ref: str
    commit: str
    resources: Sequence[Registered] = ()
    is_new: bool = False
    error: str = ""
    secrets: Sequence[Ciphertext] = ()
    unplanned: Mapping[str, str] = field(default_factory=dict)
    settings: Settings | None = None

    @property
    def at(self) -> str:
        """The ref and the first ten digits of its commit, for messages."""
        return f"{self.ref} ({self.commit[:10]})"


@dataclass(frozen=True)
class DiffReport:
    """The result for a reviewer.

    `now` is the plan of the work tree, None if that has no file for the stack. `note` says why
    there are no two plans to compare; else it is "". `changes` are those between the plans, all
    resources of a new stack; `summary` also has what no plan shows: refusals, grants, secrets and
    other keys of the file. Both are empty if `now` is None.
    """

    stack: str
    base: Base
    now: offline.Plan | None
    note: str = ""
    changes: Sequence[Change] = ()
    summary: Summary = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """The exit code of `fleet diff`; the first that fits.

        2 the work tree's file is unreadable, 1 a rule refuses it, 3 something differs or there are
        no two plans, 0 nothing changes.
        """
        if self.now is not None and self.now.exit_code:
            return self.now.exit_code
        if self.summary.get("refused"):
            return 1
        if self.note or any(self.summary.values()):
            return 3
        return 0

    @property
    def verdict(self) -> str:
        """The result in a few words: `refused`, `nothing changes`, `1 lost, 2 changed`.

        `refused` also for a file that cannot be read. `not compared` if `note` says why there are
        no two plans, but for a new stack.
        """
        if self.exit_code in (1, 2):
            return "refused"
        if self.note and not self.base.is_new:
            return "not compared"
        counts = [f"{len(lines)} {section}" for section, lines in self.summary.items() if lines]
        return ", ".join(counts) or "nothing changes"

    @property
    def problems(self) -> Sequence[Finding]:
        """The findings about the work tree's file, advisory ones too; none without a file."""
        return self.now.problems if self.now else ()

    def record(self) -> dict[str, object]:
        """The diff's JSON, with a key for each section of the summary; none without a file now."""
        record: dict[str, object] = {
            "stack": self.stack,
            "base": {
                "ref": self.base.ref,
                "commit": self.base.commit,
                "error": self.base.error,
            },
            "same": self.exit_code == 0,
            "note": self.note,
        }
        for section, lines in self.summary.items():
            record[section] = [line.record() for line in lines]
        record["resources"] = [asdict(change) for change in self.changes]
        record["problems"] = [problem.record() for problem in self.problems]
        return record


def compare(stack: str, ref: str, root: Path = ROOT) -> DiffReport:
    """The diff of a stack of the project in `root` against a commit of its repository.

    Raises:
        UserError: git is not installed, `ref` is no commit, its files cannot be unpacked, or the
            stack has a file neither here nor there.
        Interrupted: The process got SIGINT or SIGTERM.
        Others as `offline.plan`.
    """
    file = root / f"Pulumi.{stack}.yaml"
    base = base_at(root, ref, stack)
    now = offline.plan(stack, file) if file.exists() else None
    if now is None and base.is_new:
        raise UserError(f"there is no {file.name}, neither here nor at {ref}")
    return report(base, now, file)


def report(base: Base, now: offline.Plan | None, file: Path) -> DiffReport:
    """The diff of a base against the plan of a stack file; `now` is None if the file is gone.

    The plan gets findings about ciphertexts that the base has at other keys. The stack's name is
    that of the file. The file is read anew for its grants, secrets and other keys; one that cannot
    be read has none. Raises UserError if it cannot be read any more, and both plans have resources.
    """
    stack = file.stem.removeprefix("Pulumi.")
    if now is None:
        return DiffReport(stack, base, None, _FILE_IS_GONE.format(stack))
    secrets = ciphertexts_of(file)
    now = replace(now, problems=(*now.problems, *moved_ciphertexts(base.secrets, secrets)))
    changes = list[Change]()
    refused = list[SummaryLine]()
    if not base.error and now.resources:
        changes = difference(base.resources, now.resources)
        if base.resources and now.ok:
            refused = _refusals(stack, file, base.resources)
    summary = summary_of_changes(changes, refused)
    summary["granted"] = grants.granted_lines(base.settings, grants.settings_in(file))
    summary["secret"] = list(_changed_secrets(base, file, secrets))
    summary["changed"] = [*_unplanned_keys(base, file), *summary["changed"]]
    return DiffReport(
        stack,
        base,
        now,
        note=_note(base, now),
        changes=changes,
        summary=summary,
    )


def _note(base: Base, now: offline.Plan) -> str:
    """Why there are no two plans to compare; "" if there are."""
    if base.error:
        return f"There is no plan at {base.at}: {base.error}"
    if not now.resources:
        return "The rules refuse the stack as it is now: there is no plan."
    if base.is_new:
        return f"The stack is new: at {base.at} it has no file."
    return ""


def _unplanned_keys(base: Base, file: Path) -> Iterator[SummaryLine]:
    """A line for each key of the file that differs and that no plan shows."""
    differing = dict(base.unplanned.items() ^ unplanned_values(file).items())
    for key in sorted(differing):
        yield SummaryLine(HOST, f"{file.name} {key}", _UNPLANNED_KEY)


def _changed_secrets(
    base: Base, file: Path, secrets: Sequence[Ciphertext]
) -> Iterator[SummaryLine]:
    """A line for each key of the file whose ciphertext differs, is new, or is gone."""
    old = {secret.path: secret.content for secret in base.secrets if secret.file == file.name}
    new = {secret.path: secret.content for secret in secrets}
    for key in sorted(old.keys() | new.keys()):
        if key not in old:
            yield SummaryLine(HOST, key, "has a secret now")
        elif key not in new:
            yield SummaryLine(HOST, key, "has no secret any more")
        elif old[key] != new[key]:
            yield SummaryLine(HOST, key, "is encrypted anew: only the engine can say if it changed")


def _refusals(stack: str, file: Path, resources: Sequence[Registered]) -> list[SummaryLine]:
    """What an update refuses although the plan is fine, such as the removal of a team that the file
    does not name as removed.

    `resources` are those of the base. The rules judge the file once more, as if these were
    deployed. Raises UserError if the file cannot be read.
    """
    deployed = of_resources(
        (resource.urn, resource.type, resource.inputs) for resource in resources
    )
    verdict = validation.validate(read(file), deployed, facts_beside(file), stack=stack)
    return [
        SummaryLine(HOST, finding.subject, f"{finding.message} [{finding.check}]", finding.commands)
        for finding in verdict.refused
    ]


def base_at(root: Path, ref: str, stack: str) -> Base:
    """The base with the plan of a stack at `ref`, or with the reason why it has none.

    The commit's files are unpacked into a temporary folder, and its own code makes the plan: it
    runs here, with this process's environment. The folder is always removed: also at SIGTERM, which
    CI sends to a cancelled job.

    Raises:
        UserError: git is not installed, `ref` is no commit, or its files cannot be unpacked.
        Interrupted: The process got SIGINT or SIGTERM.
    """
    commit = _commit(root, ref)
    with graceful_shutdown(), tempfile.TemporaryDirectory(prefix="kai-fleet-base-") as folder:
        project = Path(folder, "project")
        project.mkdir()
        _unpack(root, commit, project)
        file = project / f"Pulumi.{stack}.yaml"
        base = Base(
            ref,
            commit,
            secrets=ciphertexts_in_folder(project),
            unplanned=unplanned_values(file),
            settings=grants.settings_in(file),
        )
        if not file.is_file():
            return replace(base, is_new=True)
        return _planned(base, stack, project)


def _unpack(root: Path, commit: str, project: Path) -> None:
    """Unpack the files that a commit has in `root`, the project's folder; none if it lacks that.

    Links are unpacked as they are. Raises UserError if git fails.
    """
    files = _git(root, "rev-parse", "--verify", "--quiet", f"{commit}:./", check=False)
    if not files:
        return
    archive = project.with_name("project.tar")
    _git(root, "archive", "--format=tar", "--output", str(archive), commit)
    with tarfile.open(archive) as tar:
        tar.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
        tar.extractall(project)


def _planned(base: Base, stack: str, project: Path) -> Base:
    """The base with the plan by the commit's code, or with the error why there is none.

    It is an error if the code prints no plan that this code can read, or if rules refuse the file
    so that there are no resources. Resources beside refusals count.
    """
    # The commit's packages are found before those that are installed here.
    path = os.pathsep.join(str(project / folder) for folder in _SOURCE_FOLDERS)
    done = subprocess.run(
        [sys.executable, "-m", "kai_fleet_cli", "plan", "--stack", stack, "--format", "json"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    try:
        record = json.loads(done.stdout)
        resources = [Registered(**resource) for resource in record["resources"]]
        refused = [
            problem["cause"] for problem in record["problems"] if problem["level"] == "mandatory"
        ]
    except (ValueError, KeyError, TypeError):
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return replace(base, error=f"its code does not run here: {lines[-1].strip('│ ')}")
    if refused and not resources:
        return replace(base, error=f"the rules refuse the stack's file there: {refused[0]}")
    return replace(base, resources=resources)


def _commit(root: Path, ref: str) -> str:
    """The full hash of a commit. Raises UserError if `ref` names none, or without git."""
    try:
        # --end-of-options: a name may start with a dash.
        return _git(root, "rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}").strip()
    except UserError as why:
        raise UserError(
            f"--base {ref}: this is no branch, tag or commit of the repository here ({why}); write"
            " one that `git log` knows, or fetch it first: git fetch origin <branch>"
        ) from None


def _git(root: Path, *arguments: str, check: bool = True) -> str:
    """Run git in `root`, and return its standard output as it is.

    Raises UserError if git is not installed, and with `check` if it fails.
    """
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=root,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise UserError("a diff needs git, which is not on PATH; install it") from None
    if check and done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["it printed nothing"]
        raise UserError(f"git {arguments[0]} failed: {lines[-1]}")
    return done.stdout
