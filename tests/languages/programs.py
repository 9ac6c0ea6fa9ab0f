"""A program of a stack, run by its language host, or inline where no registry has such a host."""

import json
import shlex
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pulumi import automation

from kai_fleet.provider import version
from tests.engine.remote import PLUGIN
from tests.languages.sdks import run

# What an operation did and what the stack has after it:
# {"changes": {"create": 3}, "outputs": {"url": {"value": "http://…", "secret": False}}}
Program = Callable[..., Any]
NODE = ("node", "bin/inline.cjs")
GO = ("./inline",)


class Inline:
    """A compiled program, run by the Automation API of its language."""

    def __init__(self, command: tuple[str, ...], project: Path, env: dict[str, str]) -> None:
        self.command, self.project, self.env = command, project, env
        self.settings: dict[str, str] = {}

    def __call__(self, operation: str, **settings: str) -> Any:
        self.settings |= settings  # such a stack keeps none between two runs
        given = [f"{key}={value}" for key, value in self.settings.items()]
        return json.loads(run([*self.command, "lab", operation, *given], self.project, self.env))


class Hosted:
    """A project, run by the CLI and its language host."""

    def __init__(self, project: Path, sandbox: Any, env: dict[str, str]) -> None:
        self.stack = automation.create_stack(
            "lab",
            work_dir=str(project),
            opts=automation.LocalWorkspaceOptions(
                env_vars=env,
                pulumi_command=automation.PulumiCommand(root=str(sandbox.directory)),
            ),
        )

    def __call__(self, operation: str, **settings: str) -> Any:
        for key, value in settings.items():
            secret = key == "kubeconfig"
            self.stack.set_config(key, automation.ConfigValue(value, secret=secret))
        result = getattr(self.stack, operation)()
        outputs = {} if operation == "destroy" else self.stack.outputs()
        return {
            "changes": dict(result.summary.resource_changes or {}),
            "outputs": {k: {"value": it.value, "secret": it.secret} for k, it in outputs.items()},
        }


class Plugin:
    """The plugin in Pulumi's home, and its environment beside it as `pulumi package add` leaves it.

    Its interpreter is this checkout's. Nothing of it is on PATH: that would be taken first.
    """

    def __init__(self, folder: Path, sandbox: Any) -> None:
        self._started = folder / "started"
        self._command = [sandbox.directory / "bin" / "pulumi", "plugin"]
        self._folder, self._env = folder, sandbox.env()
        scripts = {
            "pulumi-resource-kai-fleet": f"touch {shlex.quote(str(self._started))}\n",
            "plugin/venv/bin/fleet-probe": "",
        }
        archive = folder / "plugin.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            for name, first in scripts.items():
                script = folder / Path(name).name
                program = shlex.quote(str(PLUGIN / script.name))
                script.write_text(f'#!/bin/sh\n{first}exec {program} "$@"\n')
                script.chmod(0o755)
                tar.add(script, name)
        what = ["resource", "kai-fleet", version(), "--file", archive]
        run([*self._command, "install", *what], folder, self._env)

    def started(self) -> bool:
        """Whether the engine started it since this was asked last."""
        was = self._started.exists()
        self._started.unlink(missing_ok=True)
        return was

    def remove(self) -> None:
        run([*self._command, "rm", "resource", "kai-fleet", "--yes"], self._folder, self._env)
