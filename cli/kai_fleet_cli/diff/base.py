"""The plan at another commit, made by that commit's own code and configuration."""

import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kai_fleet.settings.secrets import Encrypted, encrypted_in
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.plan.recorder import Registered
from kai_fleet_cli.recovery.resume import graceful_shutdown
from kai_fleet_cli.stack_file.reading import beside

_CODE: Final = ("kubectl", "components", "policies", "cli")  # what a commit imports from
_UNSET: Final = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"),
    *("PYTHONPATH", "PYTHONSAFEPATH"),
)


@dataclass(frozen=True)
class Base:
    """The base of a diff. Without a plan, `error` says why; `is_new`: the stack has no file there.

    `secrets` are the ciphertexts of all its stack files, `beside` is what no plan shows of its own.
    """

    ref: str
    commit: str
    resources: tuple[Registered, ...] = ()
    is_new: bool = False
    error: str = ""
    secrets: Sequence[Encrypted] = ()
    beside: Mapping[str, str] | None = None

    @property
    def at(self) -> str:
        """The ref and its commit, for messages."""
        return f"{self.ref} ({self.commit[:10]})"


@contextmanager
def planning(root: Path, ref: str, stack: str) -> Iterator[Callable[[], Base]]:
    """Start the plan at `ref`, while the caller makes its own; yield what waits for it.

    The commit's files are unpacked into a temporary folder, which is always removed: also at
    SIGTERM, which CI sends to a cancelled job. Raises UserError.
    """
    commit = _commit(root, ref)
    with graceful_shutdown(), ExitStack() as cleanup:
        # A signal before the new folder is registered would leave it behind.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
        folder = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="kai-fleet-base-"))
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
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
        base = Base(ref, commit, secrets=encrypted_in(project), beside=beside(file))
        if not file.is_file():
            yield lambda: replace(base, is_new=True)
            return
        path = os.pathsep.join(str(project / name) for name in _CODE)
        process = subprocess.Popen(
            [sys.executable, "-m", "kai_fleet_cli", "plan", "--stack", stack, "--format", "json"],
            cwd=project,
            # The commit's own code comes before what is installed here.
            env=_environment() | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield lambda: _planned(base, process)
        finally:
            if process.poll() is None:  # the caller failed before it waited
                process.kill()
                process.communicate()


def _planned(base: Base, process: subprocess.Popen[str]) -> Base:
    out, errors = process.communicate()
    try:
        record = json.loads(out)
        resources = tuple(Registered(**item) for item in record["resources"])
        problems = [each for each in record["problems"] if each["level"] == "mandatory"]
        refused = [each.get("message") or f"{each['cause']}; {each['fix']}" for each in problems]
    except (ValueError, KeyError, TypeError):
        lines = errors.strip().splitlines() or [f"exit code {process.returncode}"]
        return replace(base, error=f"its code does not run here: {lines[-1].strip('│ ')}")
    if refused and not resources:
        return replace(base, error=f"the rules refuse the stack's file there: {refused[0]}")
    return replace(base, resources=resources)


def _commit(root: Path, ref: str) -> str:
    # --end-of-options: a name that starts with a dash is a name too
    verify = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    if commit := _git(root, *verify, check=False).strip():
        return commit
    _git(root, "rev-parse", "--git-dir")  # raises where this is no repository at all
    raise UserError(
        f"--base {ref}: this is no branch, tag or commit of the repository here; write one"
        " that `git log` knows, or fetch it first: git fetch origin <branch>"
    )


def _git(root: Path, *arguments: str, check: bool = True) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=root, env=_environment(), capture_output=True, text=True
        )
    except FileNotFoundError:
        raise UserError("a diff needs git, which is not on PATH; install it") from None
    if check and done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["it printed nothing"]
        raise UserError(f"git {arguments[0]} failed: {lines[-1]}")
    return done.stdout


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key not in _UNSET}
