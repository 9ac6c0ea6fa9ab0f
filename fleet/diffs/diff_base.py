"""The plan at another commit, made by that commit's own code and configuration."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from fleet.encrypted import encrypted
from fleet.environment import NotPossible

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


class Planning:
    """A plan at the base that is being made, while the caller makes its own."""

    def __init__(self, root: Path, ref: str, stack: str) -> None:
        self.ref, self.stack = ref, stack
        self.commit = _commit(root, ref)
        self.prefix = _git(root, "rev-parse", "--show-prefix").strip()
        self.root = root

    @contextmanager
    def running(self) -> Iterator[_Run]:
        """Check the commit out beside the work tree, start its plan, and tidy up whatever comes.

        A signal ends the caller's part at once; what is made and removed here is not cut off.
        """
        # Hooks are for the people who work in a tree, not for this one.
        add = ("-c", "core.hooksPath=/dev/null", "worktree", "add", "--detach", "--quiet")
        with _ended_by_signal(), _Undisturbed() as signals:
            folder = tempfile.mkdtemp(prefix="kai-fleet-base-")
            tree = Path(folder) / "tree"
            try:
                _git(self.root, *add, str(tree), self.commit)
                with signals.heard():
                    run = _Run(self, tree / self.prefix)
                    try:
                        yield run
                    finally:
                        run.stop()
            finally:
                _git(self.root, "worktree", "remove", "--force", str(tree), check=False)
                shutil.rmtree(folder, ignore_errors=True)


class _Run:
    """The process that plans at the base; none where there is nothing to run."""

    def __init__(self, planning: Planning, project: Path) -> None:
        self._planning = planning
        self._file = project / f"Pulumi.{planning.stack}.yaml"
        self._process: subprocess.Popen[str] | None = None
        self._state = State.PLANNED
        if not self._file.is_file():
            self._state = State.NO_STACK
        if not (project / "fleet" / "__main__.py").is_file():
            self._state = State.NO_PLAN
        if self._state is State.PLANNED:
            self._process = subprocess.Popen(
                [*_PYTHON, "plan", "--stack", planning.stack, "--format", "json"],
                cwd=project,
                env=_environment() | {"PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )

    def base(self) -> Base:
        """The base, once its plan is made."""
        about = (self._planning.ref, self._planning.commit)
        if self._process is None:
            return Base(*about, self._state, encrypted=encrypted(self._file))
        out, errors = self._process.communicate()
        record = _record(out)
        if record is None:
            lacking = "No such command" in errors or "No such option" in errors
            state = State.NO_PLAN if lacking else State.FAILED
            lines = errors.strip().splitlines() or [f"exit code {self._process.returncode}"]
            return Base(*about, state, said=lines[-1].strip("│ "))
        return Base(
            *about,
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


_PYTHON: Final = (sys.executable, "-m", "fleet")


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
    except NotPossible:
        _git(root, "rev-parse", "--git-dir")  # says so where this is no repository at all
        raise NotPossible(
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
        raise NotPossible("a diff needs git, which is not on PATH; install it") from None
    if check and done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["it said nothing"]
        raise NotPossible(f"git {arguments[0]} failed: {lines[-1]}")
    return done.stdout


def _environment() -> dict[str, str]:
    unwanted = (*_GIT_VARIABLES, "PYTHONPATH", "PYTHONSAFEPATH")
    return {key: value for key, value in os.environ.items() if key not in unwanted}


@contextmanager
def _ended_by_signal() -> Iterator[None]:
    """Let SIGTERM, which CI sends to a cancelled job, end the command through its clean-up."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    if not _says_what_signals_do():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _says_what_signals_do() -> bool:
    return threading.current_thread() is threading.main_thread()


class _Undisturbed(AbstractContextManager["_Undisturbed"]):
    """Puts signals off until its end, also for git: one that is killed half-way leaves a tree that
    it locked.

    Programs that are started inherit what is blocked. This process needs more than that: another
    thread of it would take a signal that is blocked in this one.
    """

    _NUMBERS: Final = (signal.SIGTERM, signal.SIGINT)

    def __init__(self) -> None:
        self._came: list[int] = []
        self._handlers: dict[int, Any] = {}
        self._mask: set[int] = set()

    def __enter__(self) -> _Undisturbed:
        self._put_off()
        return self

    def __exit__(self, *_: object) -> None:
        self._hear()

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Signals count as ever meanwhile, and one that came before counts now."""
        self._hear()
        try:
            yield
        finally:
            self._put_off()

    def _put_off(self) -> None:
        if _says_what_signals_do():
            self._mask = {*signal.pthread_sigmask(signal.SIG_BLOCK, self._NUMBERS)}
            for number in self._NUMBERS:
                self._handlers[number] = signal.signal(number, self._note)

    def _note(self, number: int, _: FrameType | None) -> None:
        self._came.append(number)

    def _hear(self) -> None:
        if self._handlers:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            while self._handlers:
                signal.signal(*self._handlers.popitem())
        if self._came:
            signal.raise_signal(self._came.pop(0))
