"""A copy of the checkout with a stack and a sandbox of its own, to be broken in every way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml
from kubernetes import client, config
from ruamel.yaml import YAML

from kai_fleet_cli.stack_file.reading import ROOT
from sandbox.control_plane.processes import Processes
from sandbox.directory import read_state
from tests.engine import sandbox_commands
from tests.engine.product import name_the_removed

STACK = "faults"
PARTS = (
    "__main__.py",
    "Pulumi.yaml",
    "kubectl",
    "components",
    "cli",
    "policies",
    "pyproject.toml",
    "sandbox",
)
QUEUE = {"cpu": {"quota": "unlimited"}, "memory": {"quota": "unlimited"}}
ML = {
    "scheduler": {"mode": "virtual", "version": "v0.9.3"},
    "nodePool": {"kai-fleet/pool": "ml"},
    "gpus": 8,
    "queues": {
        "default": {
            **QUEUE,
            "gpu": {"quota": 8},
            "children": {
                "train": {**QUEUE, "gpu": {"quota": 6}},
                "serve": {**QUEUE, "gpu": {"quota": 2, "limit": 4}},
            },
        }
    },
}
CONFIG: dict[str, Any] = {
    "kai-fleet:cluster": {"name": STACK, "context": "kai-fleet-sandbox"},
    "kai-fleet:gpu": {"provider": "device-plugin"},
    "kai-fleet:vcluster": {
        "version": "v0.36.1",
        "kubernetesVersion": "v1.36.3",
        "access": {"type": "NodePort", "host": "127.0.0.1"},
    },
    "kai-fleet:teams": {
        "dev": {
            "scheduler": {"mode": "default"},
            "nodePool": {"kai-fleet/pool": "dev"},
            "gpus": 2,
        }
    },
}


def client_of(kubeconfig: Path) -> client.ApiClient:
    """A client of the cluster of that kubeconfig."""
    return config.new_client_from_config_dict(yaml.safe_load(kubeconfig.read_text()))


@dataclass
class Ran:
    """A command that ended: its exit code, and everything that it printed."""

    code: int
    reported: str

    @property
    def last(self) -> str:
        """Its last line, where the sentence for a user is, but for how a shell finds pulumi."""
        lines = [line for line in self.reported.splitlines() if line.strip()]
        if lines and lines[-1].startswith("pulumi is not on the PATH"):
            lines.pop()
        return lines[-1] if lines else ""


@dataclass
class Running:
    """A command that runs."""

    process: psutil.Popen
    log: Path

    def reported(self) -> str:
        """What it printed so far."""
        return self.log.read_text(errors="replace")

    def wait_for(self, words: str, seconds: float = 180.0) -> None:
        """Return as soon as it has printed the words; it is an error if it ends without them."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            ended = self.process.poll() is not None
            if words in self.reported():
                return
            assert not ended, f"it ended, and {words!r} was not printed: {self.reported()}"
            time.sleep(0.02)
        raise AssertionError(f"{words!r} was not printed in {seconds} s: {self.reported()}")

    def parts(self) -> list[psutil.Process]:
        """It and the processes under it, without the sandbox's, which outlive it."""
        try:
            below = self.process.children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        return [self.process, *(process for process in below if not _of_sandbox(process))]

    def engine(self) -> psutil.Process:
        """The engine that it runs."""
        return next(part for part in self.parts() if part.name() == "pulumi")

    def kill(self, who: str) -> None:
        """SIGKILL: `all` of it, the `engine`, or a `provider`. Returns when they are dead."""
        killed = []
        for process in self.parts():
            try:
                line = " ".join(process.cmdline())
                engine = process.name() == "pulumi"
            except psutil.Error:
                continue
            provider = "pulumi-resource-kubernetes" in line
            if who == "all" or (who == "engine" and engine) or (who == "provider" and provider):
                _quietly(process.kill)
                killed.append(process)
        until = time.monotonic() + 10.0
        while any(map(_lives, killed)) and time.monotonic() < until:
            time.sleep(0.02)

    def end(self, seconds: float = 240.0) -> Ran:
        """Wait for its end."""
        try:
            code = self.process.wait(seconds)
        except psutil.TimeoutExpired:
            alive = "\n".join(" ".join(part.cmdline()) for part in self.parts())
            self.kill("all")
            raise AssertionError(f"no end in {seconds} s:\n{self.reported()}\n{alive}") from None
        return Ran(code, self.reported())


@dataclass
class Case:
    """The copy, and what a person does in it."""

    checkout: Path
    sandbox: Path
    environment: dict[str, str] = field(default_factory=dict)
    state_folder: Path | None = None

    @classmethod
    def make(cls, directory: Path) -> Case:
        """Copy the checkout and write the stack file, without any team but `dev`."""
        checkout = directory / "checkout"
        checkout.mkdir()
        for name in PARTS:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, checkout / name)
            else:
                shutil.copy(source, checkout / name)
        (checkout / ".venv").symlink_to(ROOT / ".venv")
        case = cls(checkout, directory / "sandbox")
        case.write(CONFIG)
        return case

    @property
    def file(self) -> Path:
        """The stack file."""
        return self.checkout / f"Pulumi.{STACK}.yaml"

    @property
    def state(self) -> Path:
        """The state file of the stack."""
        return self.sandbox / "state" / ".pulumi" / "stacks" / "kai-fleet" / f"{STACK}.json"

    @property
    def host(self) -> Path:
        """The host cluster's kubeconfig."""
        return self.sandbox / "kubeconfig"

    def inside(self, team: str) -> Path:
        """A vCluster's kubeconfig."""
        return self.sandbox / "vclusters" / f"team-{team}.{team}" / "kubeconfig"

    def write(self, config: Mapping[str, Any], file: Path | None = None) -> None:
        """Have this configuration."""
        salt = YAML().load((ROOT / "Pulumi.sandbox.yaml").read_text())["encryptionsalt"]
        with (file or self.file).open("w") as out:
            YAML().dump({"config": dict(config), "encryptionsalt": salt}, out)

    def edit(self, change: Callable[[Any], None]) -> None:
        """Change the configuration as a person does."""
        document = YAML().load(self.file.read_text())
        before = set(document["config"].get("kai-fleet:teams") or ())
        change(document["config"])
        name_the_removed(document["config"], before)
        with self.file.open("w") as out:
            YAML().dump(document, out)

    def teams(self) -> set[str]:
        """The teams of the stack file."""
        return set(YAML().load(self.file.read_text())["config"]["kai-fleet:teams"])

    def start(self, *arguments: str, stack: str = STACK, **variables: str) -> Running:
        """Run a fleet command, to go on in the meantime."""
        log = self.checkout.parent / f"{arguments[0]}-{time.monotonic_ns()}.log"
        with log.open("w") as out:
            process = psutil.Popen(
                [sys.executable, "-m", "kai_fleet_cli", *arguments, "--stack", stack],
                cwd=self.checkout,
                env=self.variables() | variables,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return Running(process, log)

    def fleet(self, *arguments: str, stack: str = STACK, **variables: str) -> Ran:
        """Run a fleet command to its end."""
        return self.start(*arguments, stack=stack, **variables).end()

    def typed(self, command: str) -> Ran:
        """Run a command of plain Pulumi, as the docs say for a sandbox."""
        line = f'exec 2>&1; eval "$(.venv/bin/fleet sandbox env)" && {command}'
        own = {key: item for key, item in self.variables().items() if key != "PYTHONPATH"}
        done = sandbox_commands.typed(self.checkout, line, **own)
        return Ran(done.returncode, done.stdout)

    def up(self) -> Ran:
        """An update that must go well."""
        ran = self.fleet("up")
        assert ran.code == 0, ran.reported
        return ran

    def sandbox_up(self) -> None:
        """Have every part of the sandbox running."""
        self._python("from sandbox import lifecycle; lifecycle.up(lambda _: None)")

    def part(self, name: str) -> psutil.Process:
        """A process of the sandbox."""
        found = Processes(self.sandbox).running(name)
        assert found is not None, name
        return found

    def tool(self, name: str) -> Path:
        """A tool of the sandbox."""
        state = read_state(self.sandbox)
        assert state is not None
        return state.tool_paths()[name]

    def variables(self) -> dict[str, str]:
        """The environment of a command."""
        own = {"KAI_FLEET_SANDBOX": str(self.sandbox), "COLUMNS": "200", "PYTHONPATH": ""}
        return {**os.environ, **own, **self.environment}

    def _python(self, program: str) -> None:
        subprocess.run(
            [sys.executable, "-c", program], cwd=self.checkout, env=self.variables(), check=True
        )


def _of_sandbox(process: psutil.Process) -> bool:
    try:
        return "KAI_FLEET_SANDBOX_PART" in process.environ()
    except psutil.Error:
        return False


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _quietly(act: Callable[[], None]) -> None:
    try:
        act()
    except psutil.Error:
        return
