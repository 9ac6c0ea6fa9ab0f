"""The sandbox's directory: where it is, what it holds, and who may change it."""

import fcntl
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parent.parent
CONTEXT: Final = "kai-fleet-sandbox"
# What a sandbox consists of; a directory with anything else in it is never taken for one.
_STATE: Final = "sandbox.json"
_LOCK: Final = "lock"


class SandboxError(RuntimeError):
    """Something a person can act on: the text says what is wrong, where, and what to do."""


@dataclass(frozen=True)
class Sandbox:
    """A sandbox that was started. `standins` says, in words, what is not the real thing in it."""

    directory: Path
    standins: tuple[str, ...]

    @property
    def kubeconfig(self) -> Path:
        """An administrator's kubeconfig; its context is `kai-fleet-sandbox`."""
        return self.directory / "kubeconfig"

    def env(self) -> dict[str, str]:
        """The environment variables for the engine, its plugins and a person's tools.

        A language host that was built runs programs with the first python3 on PATH.
        """
        folders = [self.directory / "bin", Path(sys.prefix) / "bin", os.environ.get("PATH", "")]
        return {
            "PATH": os.pathsep.join(map(str, folders)),
            "KUBECONFIG": str(self.kubeconfig),
            "KAI_FLEET_KUBECTL": str(self.directory / "containers" / "kubectl"),
            "KAI_FLEET_CHARTS": str(self.directory / "charts"),
            "PULUMI_BACKEND_URL": f"file://{self.directory / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE": "sandbox",
            "PULUMI_HOME": str(self.directory / "pulumi-home"),
            # The program's providers set it, too, but the plugin that is built reads it here.
            "PULUMI_K8S_ENABLE_PATCH_FORCE": "true",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        }


@dataclass(frozen=True)
class State:
    """The saved state of a sandbox: the first port of its window, and its tools."""

    base_port: int
    tools: dict[str, dict[str, str]] = field(default_factory=dict)
    standins: tuple[str, ...] = ()

    def tool_paths(self) -> dict[str, Path]:
        """Name and executable."""
        return {name: Path(tool["path"]) for name, tool in self.tools.items()}


def chosen() -> Path:
    """Where the sandbox is or would be: `$KAI_FLEET_SANDBOX`, else `.sandbox` in the checkout."""
    named = os.environ.get("KAI_FLEET_SANDBOX")
    return Path(named).expanduser().absolute() if named else CHECKOUT / ".sandbox"


def check(directory: Path) -> None:
    """Raise SandboxError when the directory holds something that is not a sandbox."""
    if not directory.is_dir():
        return
    names = {entry.name for entry in directory.iterdir()}
    if names and _LOCK not in names and _STATE not in names:
        raise SandboxError(
            f"{directory} holds files that are not a sandbox's, so it is neither used nor "
            "removed: set KAI_FLEET_SANDBOX to a directory that does not exist yet."
        )


def create(directory: Path) -> None:
    """Make the directory and its folders, for its owner only. Raises SandboxError."""
    check(directory)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    (directory / _LOCK).touch()
    for name in ("bin", "charts", "logs", "pids", "pulumi-home", "state", "vclusters"):
        (directory / name).mkdir(exist_ok=True, mode=0o700)


def remove(directory: Path) -> None:
    """Remove the directory with all it holds. Raises SandboxError."""
    check(directory)
    shutil.rmtree(directory)


def read_state(directory: Path) -> State | None:
    """The saved state; None where none was saved."""
    try:
        found = json.loads((directory / _STATE).read_text())
        return State(found["base_port"], found["tools"], tuple(found["standins"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_state(directory: Path, state: State) -> None:
    """Save the state; the file appears whole or not at all."""
    new = directory / f"{_STATE}.new"
    new.write_text(json.dumps(asdict(state), indent=2) + "\n")
    new.replace(directory / _STATE)


def locked(directory: Path, say: Callable[[str], None]) -> AbstractContextManager[None]:
    """Lock the sandbox: of two `up`s, or an `up` and a `down`, one waits."""
    return held(
        directory / _LOCK, lambda: say("waiting for another command that works on this sandbox")
    )


@contextmanager
def held(file: Path, waits: Callable[[], None]) -> Iterator[None]:
    """Hold a lock file, created where it is missing; `waits` is called where another holds it.

    Its removal by the holder, with its folder, ends the lock.
    """
    while True:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with file.open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                waits()
                fcntl.flock(lock, fcntl.LOCK_EX)
            if file.exists() and file.stat().st_ino == os.fstat(lock.fileno()).st_ino:
                yield
                return
