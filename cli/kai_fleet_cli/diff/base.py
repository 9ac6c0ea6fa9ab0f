"""The plan at another commit, made by that commit's own code and configuration."""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeAlias

from kai_fleet.finding import Finding, Level
from kai_fleet.settings.secrets import Encrypted, encrypted_in
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.plan.recorder import Registered
from kai_fleet_cli.recovery.resume import graceful_shutdown
from kai_fleet_cli.stack_file.reading import beside
from kai_fleet_cli.stack_file.write import undisturbed

# The module of the command, and the folders that Python imports from: the last has the module.
Layout: TypeAlias = tuple[str, tuple[str, ...]]
_LAYOUTS: Final = (
    ("kai_fleet_cli", ("kubectl", "components", "policies", "cli")),
    ("kai_fleet.cli", (".",)),  # of versions up to 0.3
)
# What a git hook is started with would point git at another index or work tree.
_GIT_VARIABLES: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")


class BaseState(StrEnum):
    """What could be had from the base."""

    PLANNED = "planned"
    NO_STACK = "no-stack"  # the stack has no file there
    NO_PLAN = "no-plan"  # the code there has no `fleet plan`
    REFUSED = "refused"  # the rules there refuse the file there, so there are no resources
    FAILED = "failed"  # its code does not run here


@dataclass(frozen=True)
class Base:
    """The base of a diff; `secrets` are the ciphertexts of all its stack files, `beside` is what no
    plan shows of the one.
    """

    ref: str
    commit: str
    state: BaseState
    resources: tuple[Registered, ...] = ()
    problems: tuple[Finding, ...] = ()
    secrets: Sequence[Encrypted] = ()
    error: str = ""
    beside: Mapping[str, str] = field(default_factory=dict)

    @property
    def short(self) -> str:
        """The commit as people write it."""
        return self.commit[:10]


@contextmanager
def planning(root: Path, ref: str, stack: str) -> Iterator[Callable[[], Base]]:
    """A plan at `ref` that is being made, while the caller makes its own: what waits for the base.

    The commit's files are unpacked into a temporary folder, which goes whatever comes: also with
    SIGTERM, which CI sends to a cancelled job. Raises UserError.
    """
    commit = _commit(root, ref)
    with graceful_shutdown(), ExitStack() as whatever_comes:
        with undisturbed():  # a folder that is made and not registered yet would stay
            made = tempfile.TemporaryDirectory(prefix="kai-fleet-base-")
            folder = Path(whatever_comes.enter_context(made))
        project = folder / "project"
        project.mkdir()
        # Of the folder that holds the project only, where the commit has it.
        archive, here = folder / "project.tar", f"{commit}:./"
        if _git(root, "rev-parse", "--verify", "--quiet", here, check=False):
            _git(root, "archive", "--format=tar", "--output", str(archive), commit)
            with tarfile.open(archive) as files:
                files.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
                files.extractall(project)
        file, layout = project / f"Pulumi.{stack}.yaml", _layout(project, root)
        there = encrypted_in(project)
        base = Base(ref, commit, BaseState.NO_PLAN, secrets=there, beside=beside(file))
        if layout is None or not file.is_file():
            missing = base if layout is None else replace(base, state=BaseState.NO_STACK)
            yield lambda: missing
            return
        module, folders = layout
        path = os.pathsep.join(str(project / name) for name in folders)
        process = subprocess.Popen(
            [sys.executable, "-m", module, "plan", "--stack", stack, "--format", "json"],
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
            if process.poll() is None:  # the caller could not wait for it
                process.kill()
                process.communicate()


def _planned(base: Base, process: subprocess.Popen[str]) -> Base:
    """The base, once its plan is made."""
    out, errors = process.communicate()
    try:
        record = json.loads(out)
        ok, resources = record["ok"], tuple(map(_registered, record["resources"]))
        problems = [
            Finding(**{**it, "level": Level(it["level"])}) for it in record.get("problems", ())
        ]
    except (ValueError, KeyError, TypeError):
        lacking = "No such command" in errors or "No such option" in errors
        lines = errors.strip().splitlines() or [f"exit code {process.returncode}"]
        state = BaseState.NO_PLAN if lacking else BaseState.FAILED
        return replace(base, state=state, error=lines[-1].strip("│ "))
    # A refused plan has no resources; where it has, the rules had doubts only afterwards.
    state = BaseState.PLANNED if ok or resources else BaseState.REFUSED
    return replace(base, state=state, resources=resources, problems=tuple(problems))


def _registered(item: Mapping[str, Any]) -> Registered:
    texts = {key: item.get(key, "") for key in ("urn", "type", "name", "parent", "provider")}
    return Registered(**texts, inputs=item.get("inputs", {}))


def _layout(project: Path, root: Path) -> Layout | None:
    """The commit's own code; what is installed here for a project that has stack files alone."""

    def within(folder: Path) -> Iterator[Layout]:
        for module, folders in _LAYOUTS:
            if Path(folder, folders[-1], *module.split("."), "__main__.py").is_file():
                yield module, folders

    return next(within(project), None if any(within(root)) else ("kai_fleet_cli", ()))


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
