"""The `helm` program, run against one cluster; values go by stdin, where nobody else sees them."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import psutil
import yaml

from kai_fleet.provider.errors import PluginError
from sandbox.providers.cluster import Target

_PREFIX: Final = "kai-fleet-plugin-"


class HelmError(PluginError):
    """helm ended with an error; the text is helm's own."""


class Helm:
    """helm on PATH. Without a cluster only charts can be read. Every call raises HelmError."""

    def __init__(self, where: Target | None, cancelled: Callable[[], bool]) -> None:
        self._cancelled, self._options = cancelled, list[str]()
        if where is not None:
            file = _private_file(where.kubeconfig)
            self._options = ["--kubeconfig", file, "--kube-context", where.context]

    def version(self, chart: list[str]) -> str:
        """The exact version of a chart, which helm's arguments name."""
        return str((yaml.safe_load(self._run("show", "chart", *chart)) or {}).get("version", ""))

    def deploy(self, verb: str, name: str, namespace: str, values: Any, options: list[str]) -> None:
        """`helm install` or `helm upgrade`, by the verb."""
        in_namespace = ["--namespace", namespace, "--values", "-"]
        self._run(verb, name, *options, *in_namespace, stdin=json.dumps(values))

    def uninstall(self, name: str, namespace: str, options: list[str]) -> str:
        """`helm uninstall`; what helm says that it kept."""
        said = self._run("uninstall", name, "--namespace", namespace, *options)
        return "\n".join(line for line in said.splitlines() if " uninstalled" not in line).strip()

    def get(self, what: str, name: str, namespace: str) -> dict[str, Any] | None:
        """The `metadata` or the `values` of a release; None where there is none."""
        try:
            found = self._run("get", what, name, "--namespace", namespace, "-o", "json")
            return json.loads(found) or {}
        except HelmError as error:
            if "release: not found" in str(error):
                return None
            raise

    def _run(self, *arguments: str, stdin: str = "") -> str:
        program = shutil.which("helm")
        if program is None:
            raise PluginError("helm is not on PATH: let `make up` get it for the sandbox")
        with subprocess.Popen(
            [program, *arguments, *self._options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # As Pulumi's own provider, whatever the user's helm does.
            env={**os.environ, "HELM_DRIVER": "secret"},
        ) as process:
            said, complained = self._finish(process, stdin)
        if process.returncode != 0:
            raise HelmError(_sentence(complained) or f"helm ended with {process.returncode}")
        return said

    def _finish(self, process: subprocess.Popen[str], stdin: str) -> tuple[str, str]:
        while True:
            try:
                return process.communicate(stdin, timeout=1.0)
            except subprocess.TimeoutExpired:
                # communicate keeps what it has sent and read, and goes on when called again.
                stdin = ""
                if self._cancelled():
                    process.terminate()  # helm ends tidily: the release is then marked as failed


def _sentence(stderr: str) -> str:
    """helm's own error, without what its command line puts before it."""
    said = stderr.strip().rpartition("Error: ")[2]
    return said.removeprefix("INSTALLATION FAILED: ").removeprefix("UPGRADE FAILED: ").strip()


@functools.cache
def _folder() -> Path:
    """For files of this process that others must not read; what a kill left, the next removes."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        pid = left.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _private_file(text: str) -> str:
    handle, name = tempfile.mkstemp(dir=_folder())
    with os.fdopen(handle, "w") as file:
        file.write(text)
    return name
