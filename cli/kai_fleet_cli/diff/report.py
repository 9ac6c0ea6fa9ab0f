"""A stack's diff: the plan at a commit, by that commit's own code, and that of the work tree."""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from kai_fleet.deployed import of_resources
from kai_fleet.settings import Settings
from kai_fleet.settings.secrets import Encrypted, encrypted, encrypted_in, moved
from kai_fleet_cli.diff import grants
from kai_fleet_cli.diff.changes import Change, Item, Summary, difference, of_changes
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.plan import offline
from kai_fleet_cli.plan.recorder import Registered
from kai_fleet_cli.recovery.resume import graceful_shutdown
from kai_fleet_cli.stack_file.reading import ROOT, beside, facts_beside, read
from kai_fleet_policies import validation
from kai_fleet_policies.model.cluster import HOST

_CODE: Final = ("kubectl", "components", "policies", "cli")  # what a commit imports from
_GONE: Final = (
    "Pulumi.{0}.yaml is gone: nothing of the stack is removed by that. To remove what it made,"
    " run this where the file still is: fleet destroy --stack {0}"
)
_BESIDE: Final = "changes, from which the engine takes more than a plan shows: read it in the file"


@dataclass(frozen=True)
class Base:
    """The base of a diff. Without a plan, `error` says why; `is_new`: the stack has no file there.

    `secrets` are the ciphertexts of all its stack files, `beside` is what no plan shows of its own,
    `settings` are those of its file as the code here reads it, None where it reads too little.
    """

    ref: str
    commit: str
    resources: Sequence[Registered] = ()
    is_new: bool = False
    error: str = ""
    secrets: Sequence[Encrypted] = ()
    beside: Mapping[str, str] = field(default_factory=dict)
    settings: Settings | None = None

    @property
    def at(self) -> str:
        """The ref and its commit, for messages."""
        return f"{self.ref} ({self.commit[:10]})"


@dataclass(frozen=True)
class DiffReport:
    """The result for a reviewer. `now` is None where the work tree has no file for the stack.

    `note` says why there are not two plans to compare.
    """

    stack: str
    base: Base
    now: offline.Plan | None
    note: str = ""
    changes: Sequence[Change] = ()
    summary: Summary = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """0 nothing changes, 1 refused, 2 unreadable, 3 differs, or the base has no plan."""
        if self.now is not None and self.now.exit_code:
            return self.now.exit_code
        if self.summary.get("refused"):
            return 1
        return 3 if self.note or any(self.summary.values()) else 0

    @property
    def verdict(self) -> str:
        """The result in a few words: `refused`, `nothing changes`, `1 lost, 2 changed`."""
        if self.exit_code in (1, 2):
            return "refused"
        if self.note and not self.base.is_new:
            return "not compared"
        counts = (f"{len(items)} {part}" for part, items in self.summary.items() if items)
        return ", ".join(counts) or "nothing changes"

    def record(self) -> dict[str, Any]:
        """The diff's JSON."""
        return {
            "stack": self.stack,
            "base": {"ref": self.base.ref, "commit": self.base.commit, "error": self.base.error},
            "same": self.exit_code == 0,
            "note": self.note,
            **{part: [asdict(item) for item in items] for part, items in self.summary.items()},
            "resources": [asdict(change) for change in self.changes],
            "problems": [problem.record() for problem in self.now.problems] if self.now else [],
        }


def compare(stack: str, ref: str, root: Path = ROOT) -> DiffReport:
    """The diff of a stack of the project in `root` against a commit of its repository.

    Raises UserError where `ref` is no commit, or neither side has the stack.
    """
    file = root / f"Pulumi.{stack}.yaml"
    base = base_at(root, ref, stack)
    now = offline.plan(stack, file) if file.exists() else None
    if now is None and base.is_new:
        raise UserError(f"there is no {file.name}, neither here nor at {ref}")
    return report(base, now, file)


def report(base: Base, now: offline.Plan | None, file: Path) -> DiffReport:
    """The diff of a base against the plan of a stack file."""
    stack = file.name.split(".")[1]
    if now is None:
        return DiffReport(stack, base, None, _GONE.format(stack))
    here, note = encrypted(file), ""
    now = replace(now, problems=(*now.problems, *moved(base.secrets, here)))
    changes, refused = list[Change](), list[Item]()
    if base.error:
        note = f"There is no plan at {base.at}: {base.error}"
    elif not now.resources:
        note = "The rules refuse the stack as it is now: there is no plan."
    else:
        note = f"The stack is new: at {base.at} it has no file." if base.is_new else ""
        changes = difference(base.resources, now.resources)
        refused = _refusals(stack, file, base.resources) if base.resources and now.ok else []
    summary = of_changes(changes, refused)
    summary["granted"] = grants.granted(base.settings, grants.settings_in(file))
    summary["secret"] = list(_secrets(base, file, here))
    summary["changed"][:0] = _of_file(base, file)
    return DiffReport(stack, base, now, note, changes, summary)


def _of_file(base: Base, file: Path) -> Iterator[Item]:
    """What differs in the file, and no plan shows."""
    for key in sorted(dict(base.beside.items() ^ beside(file).items())):
        yield Item(HOST, f"{file.name} {key}", _BESIDE)


def _secrets(base: Base, file: Path, here: Sequence[Encrypted]) -> Iterator[Item]:
    """The keys whose ciphertext differs."""
    old = {secret.path: secret.content for secret in base.secrets if secret.file == file.name}
    new = {secret.path: secret.content for secret in here}
    for key in sorted(old.keys() | new.keys()):
        if key not in old:
            yield Item(HOST, key, "has a secret now")
        elif key not in new:
            yield Item(HOST, key, "has no secret any more")
        elif old[key] != new[key]:
            yield Item(HOST, key, "is encrypted anew: only the engine can say if it changed")


def _refusals(stack: str, file: Path, resources: Sequence[Registered]) -> list[Item]:
    """What an update refuses and no plan shows: the rules judge a file where these run now."""
    deployed = of_resources((each.urn, each.type, each.inputs) for each in resources)
    verdict = validation.validate(read(file), deployed, facts_beside(file), stack=stack)
    problems = verdict.refused
    problems += validation.removal_findings(verdict, deployed.urns, stack)
    return [Item(HOST, each.subject, f"{each.message} [{each.check}]") for each in problems]


def base_at(root: Path, ref: str, stack: str) -> Base:
    """The plan of a stack at `ref`.

    The commit's files are unpacked into a temporary folder, which is always removed: also at
    SIGTERM, which CI sends to a cancelled job. Raises UserError.
    """
    commit = _commit(root, ref)
    with graceful_shutdown(), tempfile.TemporaryDirectory(prefix="kai-fleet-base-") as folder:
        project = Path(folder, "project")
        project.mkdir()
        # Only the project's own folder, where the commit has it.
        if _git(root, "rev-parse", "--verify", "--quiet", f"{commit}:./", check=False):
            archive = Path(folder, "project.tar")
            _git(root, "archive", "--format=tar", "--output", str(archive), commit)
            with tarfile.open(archive) as files:
                files.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
                files.extractall(project)
        file = project / f"Pulumi.{stack}.yaml"
        base = Base(
            ref,
            commit,
            secrets=encrypted_in(project),
            beside=beside(file),
            settings=grants.settings_in(file),
        )
        return _planned(base, stack, project) if file.is_file() else replace(base, is_new=True)


def _planned(base: Base, stack: str, project: Path) -> Base:
    # The commit's own code comes before what is installed here.
    path = os.pathsep.join(str(project / name) for name in _CODE)
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
        resources = [Registered(**item) for item in record["resources"]]
        refused = [each["cause"] for each in record["problems"] if each["level"] == "mandatory"]
    except (ValueError, KeyError, TypeError):
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return replace(base, error=f"its code does not run here: {lines[-1].strip('│ ')}")
    if refused and not resources:
        return replace(base, error=f"the rules refuse the stack's file there: {refused[0]}")
    return replace(base, resources=resources)


def _commit(root: Path, ref: str) -> str:
    try:
        # --end-of-options: a name that starts with a dash is a name too
        return _git(root, "rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}").strip()
    except UserError as why:
        raise UserError(
            f"--base {ref}: this is no branch, tag or commit of the repository here ({why}); write"
            " one that `git log` knows, or fetch it first: git fetch origin <branch>"
        ) from None


def _git(root: Path, *arguments: str, check: bool = True) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    except FileNotFoundError:
        raise UserError("a diff needs git, which is not on PATH; install it") from None
    if check and done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["it printed nothing"]
        raise UserError(f"git {arguments[0]} failed: {lines[-1]}")
    return done.stdout
