"""The `helm` program, run against one cluster.

Values and passwords go by stdin, never by argument, where other users would see them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from provider.plugin import PluginError

from . import kubeconfig
from .kubeconfig import Target

# Beyond helm's own timeout, for hooks and for a slow answer, before it is stopped.
_GRACE_SECONDS: Final = 120.0


class HelmError(PluginError):
    """helm ended with an error; the text is helm's own."""


@dataclass(frozen=True)
class Chart:
    """Where a chart comes from: a path, a URL, an OCI URL, or a name in a repository."""

    chart: str
    version: str = ""
    repository: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    files: tuple[tuple[str, str], ...] = ()
    """helm's options --ca-file, --cert-file, --key-file, --keyring with their paths."""
    options: tuple[str, ...] = ()

    @property
    def local(self) -> bool:
        """Whether the chart is a directory or an archive on this machine."""
        return not self.repository and Path(self.chart).exists()


@dataclass(frozen=True)
class Deployed:
    """A release as the cluster has it."""

    name: str
    namespace: str
    revision: int
    status: str
    chart: str
    version: str
    app_version: str


class Helm:
    """helm on PATH. Without a `target` only charts can be read."""

    def __init__(self, target: Target | None, cancelled: Callable[[], bool]) -> None:
        self._target = target
        self._cancelled = cancelled
        self._lock = threading.Lock()
        self._metadata: dict[Chart, dict[str, Any]] = {}

    def metadata(self, chart: Chart) -> dict[str, Any]:
        """The chart's Chart.yaml; it fails when there is no such chart or version."""
        with self._lock:
            if chart.local:
                return _metadata_of(Path(chart.chart))
            if chart not in self._metadata:
                with self._fetched(chart) as (arguments, environment):
                    shown = self._run(["show", "chart", *arguments], environment=environment)
                self._metadata[chart] = yaml.safe_load(shown) or {}
            return self._metadata[chart]

    def deploy(
        self,
        verb: str,
        name: str,
        namespace: str,
        chart: Chart,
        values: dict[str, Any],
        options: list[str],
        seconds: float,
    ) -> Deployed:
        """`helm install` or `helm upgrade`, by `verb`; the release as it is then."""
        with self._fetched(chart) as (arguments, environment):
            shown = self._run(
                [verb, name, *arguments, "--values", "-", "-o", "json", *options],
                namespace=namespace,
                stdin=json.dumps(values),
                seconds=seconds + _GRACE_SECONDS,
                environment=environment,
            )
        found = json.loads(shown)
        of_chart = found["chart"]["metadata"]
        return Deployed(
            name=found["name"],
            namespace=found["namespace"],
            revision=int(found["version"]),
            status=found["info"]["status"],
            chart=of_chart["name"],
            version=of_chart["version"],
            app_version=of_chart.get("appVersion", ""),
        )

    def uninstall(self, name: str, namespace: str, wait: bool, seconds: float) -> str:
        """`helm uninstall`; one that is gone already is fine. What helm says that it kept."""
        arguments = ["uninstall", name, "--ignore-not-found", "--timeout", f"{seconds:.0f}s"]
        if wait:
            arguments.append("--wait")
        said = self._run(arguments, namespace=namespace, seconds=seconds + _GRACE_SECONDS)
        return "\n".join(line for line in said.splitlines() if " uninstalled" not in line).strip()

    def status(self, name: str, namespace: str) -> Deployed | None:
        """The release, None when there is none."""
        try:
            shown = self._run(["get", "metadata", name, "-o", "json"], namespace=namespace)
        except HelmError as error:
            if "release: not found" in str(error):
                return None
            raise
        found = json.loads(shown)
        return Deployed(
            name=found["name"],
            namespace=found["namespace"],
            revision=int(found["revision"]),
            status=found["status"],
            chart=found["chart"],
            version=found["version"],
            app_version=found.get("appVersion", ""),
        )

    def values(self, name: str, namespace: str) -> dict[str, Any]:
        """The values that the release was made with."""
        shown = self._run(["get", "values", name, "-o", "json"], namespace=namespace)
        return json.loads(shown) or {}

    @contextmanager
    def _fetched(self, chart: Chart) -> Iterator[tuple[list[str], dict[str, str]]]:
        """helm's arguments and environment that name the chart."""
        arguments = [part for option, path in chart.files for part in (option, path)]
        arguments += chart.options
        if chart.version and not chart.local:
            arguments += ["--version", chart.version]
        if not chart.repository:
            yield [chart.chart, *arguments], {}
        elif not chart.password:
            yield [chart.chart, "--repo", chart.repository, *arguments], {}
        else:
            # A repository with a password is added to a configuration of its own for the
            # one command: there the password goes by stdin.
            with tempfile.TemporaryDirectory(prefix="kai-fleet-helm-") as directory:
                environment = {
                    "HELM_REPOSITORY_CONFIG": f"{directory}/repositories.yaml",
                    "HELM_REPOSITORY_CACHE": f"{directory}/cache",
                }
                login = ["--username", chart.username, "--password-stdin"]
                self._run(
                    ["repo", "add", "given", chart.repository, *login],
                    stdin=chart.password,
                    environment=environment,
                )
                yield [f"given/{chart.chart}", *arguments], environment

    def _run(
        self,
        arguments: list[str],
        namespace: str = "",
        stdin: str = "",
        seconds: float = 120.0,
        environment: dict[str, str] | None = None,
    ) -> str:
        program = shutil.which("helm")
        if program is None:
            raise PluginError(
                "helm is not on PATH: install Helm 3, or let `make up` get it for the sandbox"
            )
        with ExitStack() as stack:
            command = [program, *arguments]
            if namespace:
                command += ["--namespace", namespace]
            if self._target is not None:
                config = yaml.safe_dump(_absolute(self._target)).encode()
                path = stack.enter_context(kubeconfig.written(config, ".yaml"))
                command += ["--kubeconfig", str(path), "--kube-context", self._target.context]
            process = stack.enter_context(
                subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    # As Pulumi's own provider, whatever the user's helm does.
                    env={**os.environ, "HELM_DRIVER": "secret", **(environment or {})},
                )
            )
            said, complained = self._finish(process, stdin, seconds)
        if process.returncode != 0:
            raise HelmError(_sentence(complained) or f"helm ended with {process.returncode}")
        return said

    def _finish(
        self, process: subprocess.Popen[str], stdin: str, seconds: float
    ) -> tuple[str, str]:
        waited, given = 0.0, stdin
        while True:
            try:
                return process.communicate(given, timeout=1.0)
            except subprocess.TimeoutExpired:
                # communicate keeps what it has sent and read, and goes on when called again.
                given, waited = "", waited + 1.0
            if self._cancelled() or waited > seconds:
                # helm ends tidily on an interrupt: the release is then marked as failed.
                process.terminate()
                try:
                    return process.communicate(timeout=10.0)
                except subprocess.TimeoutExpired:
                    process.kill()
                    return process.communicate()


def _metadata_of(path: Path) -> dict[str, Any]:
    """Chart.yaml of a chart on this machine, as `helm show chart` gives it, without the process."""
    try:
        if path.is_dir():
            text = (path / "Chart.yaml").read_bytes()
        else:
            with tarfile.open(path) as archive:
                inside = next(
                    it
                    for it in archive
                    if it.name.count("/") == 1 and it.name.endswith("/Chart.yaml")
                )
                member = archive.extractfile(inside)
                text = member.read() if member else b""
        found = yaml.safe_load(text)
    except (OSError, tarfile.TarError, StopIteration, yaml.YAMLError) as why:
        raise HelmError(f"{path} is not a chart: {why or 'it has no Chart.yaml'}") from None
    return found if isinstance(found, dict) else {}


def _absolute(target: Target) -> dict[str, Any]:
    """The kubeconfig cut to this target, with its paths made absolute, for a file elsewhere."""

    def entry(given: dict[str, Any]) -> dict[str, Any]:
        paths = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
        return {
            key: str((target.directory / value).resolve()) if key in paths else value
            for key, value in given.items()
        }

    context = {"cluster": "cluster", "user": "user", "namespace": target.namespace}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": target.context,
        "contexts": [{"name": target.context, "context": context}],
        "clusters": [{"name": "cluster", "cluster": entry(target.cluster)}],
        "users": [{"name": "user", "user": entry(target.user)}],
    }


def _sentence(stderr: str) -> str:
    lines = [line for line in stderr.strip().splitlines() if not line.startswith("WARNING:")]
    errors = [i for i, line in enumerate(lines) if line.startswith("Error:")]
    said = lines[errors[-1] :] if errors else lines
    return "\n".join(said).removeprefix("Error: ").strip()
