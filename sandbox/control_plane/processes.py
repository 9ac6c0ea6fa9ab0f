"""The sandbox's processes: started detached, remembered on disk, stopped for certain."""

import contextlib
import hashlib
import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil

from sandbox.control_plane.ports import free
from sandbox.directory import SandboxError

# In the environment of every process of a sandbox: its directory.
MARK: Final = "KAI_FLEET_SANDBOX_PART"
# Go trades processor time for memory; twenty control planes fit on a machine that way.
LEAN: Final = {"GOGC": "50"}
# There are more vClusters than cores. Go on several cores, which wake for each timer, takes a third
# more CPU time, and a quarter more to start.
ONE_OF_MANY: Final = LEAN | {"GOMAXPROCS": "1"}
# Two readings of one process's start differ by less; a recycled pid by far more.
_SAME_START_SECONDS: Final = 0.5
_RELEASE_SECONDS: Final = 5.0
_END_SECONDS: Final = 10.0
_PLUGIN: Final = re.compile("pulumi-(resource|language|analyzer)-|kai-fleet-policy-pack$")


@dataclass(frozen=True)
class ServerProcess:
    """One process: what to run, where its output goes, and the address on which it listens."""

    name: str
    command: tuple[str, ...]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    listens: tuple[str, int] | None = None

    def digest(self) -> str:
        """A hash of the command and the environment."""
        text = json.dumps([self.command, sorted(self.environment.items())])
        return hashlib.sha256(text.encode()).hexdigest()


class Processes:
    """All processes of the sandbox in `directory`. Pids are in `directory`/pids."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._records = directory / "pids"
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    def running(self, name: str) -> psutil.Process | None:
        """The living process of that name, or None."""
        return living(self._record(name))

    def runs(self, part: ServerProcess) -> bool:
        """Whether the part runs, and as described."""
        record = self._record(part.name)
        return living(record) is not None and record.get("digest") == part.digest()

    def ensure(self, part: ServerProcess) -> bool:
        """Run the part as described; True when it had to be started.

        A process that runs with another command is stopped first. Raises SandboxError when
        another program has its port.
        """
        if self.runs(part):
            return False
        self.stop([part.name])
        self._start(part)
        return True

    def _start(self, part: ServerProcess) -> None:
        if part.listens is not None:
            _wait_until_free(part.name, *part.listens)
        part.log.parent.mkdir(parents=True, exist_ok=True)
        self._records.mkdir(parents=True, exist_ok=True)
        with part.log.open("ab") as log:
            process = subprocess.Popen(
                part.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **part.environment, MARK: str(self.directory)},
                cwd=self.directory,
                start_new_session=True,  # Ctrl-C in the user's terminal is not for these
            )
        self._started[part.name] = process
        started = psutil.Process(process.pid).create_time()
        record = {"pid": process.pid, "started": started, "digest": part.digest()}
        path = self._path(part.name)
        new = path.with_suffix(".new")
        new.write_text(json.dumps(record))
        new.replace(path)

    def wait_for(
        self,
        part: ServerProcess,
        answers: Callable[[], bool],
        say: Callable[[str], None],
        seconds: float = 120,
    ) -> None:
        """Wait until the part answers. Raises SandboxError when it stops or takes too long."""
        begun = time.monotonic()
        next_report = 10.0
        while not answers():
            self.require(part)
            waited = time.monotonic() - begun
            if waited > seconds:
                raise SandboxError(
                    f"{part.name} does not answer after {seconds:.0f} s{_last_words(part.log)}"
                )
            if waited > next_report:
                next_report += 10
                say(f"waiting for {part.name} ({waited:.0f} s)")
            time.sleep(0.1)

    def require(self, part: ServerProcess) -> None:
        """Raise SandboxError unless the part is running."""
        if self.running(part.name) is None:
            raise SandboxError(f"{part.name} stopped while starting{_last_words(part.log)}")

    def names(self) -> list[str]:
        """Every part that was started and not stopped, dead ones included."""
        return sorted(path.stem for path in self._records.glob("*.json"))

    def stop(self, names: Iterable[str]) -> None:
        """Kill these parts: their state is in etcd, whose write-ahead log survives a kill."""
        names = list(names)
        left = [process for name in names if (process := self.running(name))]
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        until = time.monotonic() + _END_SECONDS
        while any(map(_alive, left)) and time.monotonic() < until:
            time.sleep(0.05)
        for name in names:
            if started := self._started.pop(name, None):
                started.poll()
            self._path(name).unlink(missing_ok=True)

    def stop_everything(self) -> None:
        """End every process of this sandbox. Raises SandboxError when one cannot be ended."""
        # The supervisor first: it would start again what it misses.
        self.stop(name for name in self.names() if name == "supervisor")
        found = {name: process for name in self.names() if (process := self.running(name))}
        self.stop(self.names())
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if self._is_plugin(process):
                    process.kill()
        if alive := [f"{left.pid} ({name})" for name, left in found.items() if _alive(left)]:
            raise SandboxError(
                f"These processes of the sandbox could not be ended: {', '.join(alive)}. End them "
                "as the user who started them, then run this again."
            )

    def _is_plugin(self, process: psutil.Process) -> bool:
        """Whether it is a plugin of an engine on this sandbox: one that was killed leaves some."""
        names = [Path(word).name for word in process.cmdline()[:2]]  # the program, or its script
        home = str(self.directory / "pulumi-home")
        return any(map(_PLUGIN.match, names)) and process.environ().get("PULUMI_HOME") == home

    def _path(self, name: str) -> Path:
        return self._records / f"{name}.json"

    def _record(self, name: str) -> dict[str, Any]:
        try:
            return dict(json.loads(self._path(name).read_text()))
        except (OSError, ValueError, TypeError):
            return {}


def _wait_until_free(name: str, address: str, port: int) -> None:
    """Wait until a killed process has released its port. Raises SandboxError."""
    until = time.monotonic() + _RELEASE_SECONDS
    while not free(port, address):
        if time.monotonic() > until:
            raise SandboxError(
                f"{name} cannot start: another program or sandbox listens on {address}:{port}, "
                "which this one was using. End the other, or take this one down (`make down`)."
            )
        time.sleep(0.05)


def living(record: Mapping[str, Any]) -> psutil.Process | None:
    """The process of a record's `pid`, unless it ended and its pid went to another."""
    try:
        process = psutil.Process(record["pid"])
        same = abs(process.create_time() - record["started"]) < _SAME_START_SECONDS
        return process if same and _alive(process) else None
    except (psutil.NoSuchProcess, KeyError):
        return None


def _alive(process: psutil.Process) -> bool:
    try:
        if process.status() != psutil.STATUS_ZOMBIE:
            return True
    except psutil.NoSuchProcess:
        return False
    with contextlib.suppress(ChildProcessError, OSError):
        os.waitpid(process.pid, os.WNOHANG)  # ours, and over
    return False


def _last_words(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    last = f": {lines[-1].strip()[:300]}" if lines else "."
    return f"{last} (log: {log})"
