"""The plan at another commit, made by that commit's own code and configuration."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file.encrypted import encrypted

SHORT: Final = 10  # characters of a commit's name
# What a git hook is started with would point git at another index or work tree.
_GIT_VARIABLES: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")


class State(StrEnum):
    """What could be had from the base."""

    PLANNED = "planned"
    NO_STACK = "no-stack"  # the stack has no file there
    NO_PLAN = "no-plan"  # the code there has no `fleet plan`
    REFUSED = "refused"  # the rules there refuse the file there, so there are no resources
    FAILED = "failed"  # its code does not run here


@dataclass(frozen=True)
class Base:
    """The base of a diff; `encrypted` are the ciphertexts of its stack file by key."""

    ref: str
    commit: str
    state: State
    resources: tuple[Mapping[str, Any], ...] = ()
    problems: tuple[Mapping[str, str], ...] = ()
    encrypted: Mapping[str, str] = field(default_factory=dict)
    said: str = ""

    @property
    def short(self) -> str:
        """The commit as people write it."""
        return self.commit[:SHORT]


@contextmanager
def planning(root: Path, ref: str, stack: str) -> Iterator[Planning]:
    """A plan at `ref` that is being made, while the caller makes its own.

    The commit's files are unpacked into a temporary folder, which goes whatever comes: also with
    SIGTERM, which CI sends to a cancelled job. Raises UserError.
    """
    commit = _commit(root, ref)
    with _ended_by_sigterm(), tempfile.TemporaryDirectory(prefix="kai-fleet-base-") as folder:
        # Of the folder that holds the project only; git fails where the commit has no such folder.
        archive = Path(folder) / "project.tar"
        _git(root, "archive", "--format=tar", "--output", str(archive), commit, check=False)
        project = Path(folder) / "project"
        project.mkdir()
        if archive.exists() and archive.stat().st_size:
            with tarfile.open(archive) as files:
                files.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
                files.extractall(project)
        run = Planning(ref, commit, stack, project, _layout(project) or _installed(root))
        try:
            yield run
        finally:
            run.stop()


class Planning:
    """The process that plans at the base; none where there is nothing to run."""

    def __init__(
        self, ref: str, commit: str, stack: str, project: Path, layout: _Layout | None
    ) -> None:
        self._about = (ref, commit)
        self._file = project / f"Pulumi.{stack}.yaml"
        self._process: subprocess.Popen[str] | None = None
        self._state = State.PLANNED if self._file.is_file() else State.NO_STACK
        if layout is None:
            self._state = State.NO_PLAN
        elif self._state is State.PLANNED:
            self._process = subprocess.Popen(
                [sys.executable, "-m", layout.module, "plan", "--stack", stack, "--format", "json"],
                cwd=project,
                env=_environment() | layout.path(project) | {"PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )

    def base(self) -> Base:
        """The base, once its plan is made."""
        if self._process is None:
            return Base(*self._about, self._state, encrypted=encrypted(self._file))
        out, errors = self._process.communicate()
        record = _record(out)
        if record is None:
            lacking = "No such command" in errors or "No such option" in errors
            state = State.NO_PLAN if lacking else State.FAILED
            lines = errors.strip().splitlines() or [f"exit code {self._process.returncode}"]
            return Base(*self._about, state, said=lines[-1].strip("│ "))
        return Base(
            *self._about,
            # A refused plan has no resources; where it has, the rules had doubts only afterwards.
            State.PLANNED if record["ok"] or record["resources"] else State.REFUSED,
            tuple(record["resources"]),
            tuple(record.get("problems", ())),
            encrypted(self._file),
        )

    def stop(self) -> None:
        """End the process where the caller could not wait for it."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


@dataclass(frozen=True)
class _Layout:
    """Where a commit has the module of the command, and the folders that Python imports from."""

    module: str
    folders: tuple[str, ...]

    def found(self, project: Path) -> bool:
        """Whether the commit's files in `project` are laid out so."""
        inside = Path(self.folders[-1], *self.module.split("."), "__main__.py")
        return (project / inside).is_file()

    def path(self, project: Path) -> dict[str, str]:
        """PYTHONPATH for the commit's own code, before what is installed here."""
        return {"PYTHONPATH": os.pathsep.join(str(project / folder) for folder in self.folders)}


_LAYOUTS: Final = (
    _Layout("kai_fleet_cli", ("components", "policies", "cli")),
    _Layout("kai_fleet.cli", (".",)),  # up to 0.3
)


def _layout(project: Path) -> _Layout | None:
    return next((each for each in _LAYOUTS if each.found(project)), None)


def _installed(root: Path) -> _Layout | None:
    """What is installed plans a project that has stack files and no code of its own."""
    return None if _layout(root) else _Layout("kai_fleet_cli", ())


def _record(out: str) -> dict[str, Any] | None:
    try:
        record = json.loads(out)
    except ValueError:
        return None
    wanted = isinstance(record, dict) and {"ok", "resources"} <= record.keys()
    return record if wanted else None


def _commit(root: Path, ref: str) -> str:
    try:
        # --end-of-options: a name that starts with a dash is a name too
        name = f"{ref}^{{commit}}"
        return _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", name).strip()
    except UserError:
        _git(root, "rev-parse", "--git-dir")  # says so where this is no repository at all
        raise UserError(
            f"--base {ref}: this is no branch, tag or commit of the repository here; write one"
            " that `git log` knows, or fetch it first: git fetch origin <branch>"
        ) from None


def _git(root: Path, *arguments: str, check: bool = True) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=root,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise UserError("a diff needs git, which is not on PATH; install it") from None
    if check and done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["it said nothing"]
        raise UserError(f"git {arguments[0]} failed: {lines[-1]}")
    return done.stdout


def _environment() -> dict[str, str]:
    unwanted = (*_GIT_VARIABLES, "PYTHONPATH", "PYTHONSAFEPATH")
    return {key: value for key, value in os.environ.items() if key not in unwanted}


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the command through its clean-up."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what a signal does
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
