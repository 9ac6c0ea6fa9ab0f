"""Run the tools that a person would use on a sandbox, and look at its processes and keys."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from kai_fleet_cli.stack_file.reading import ROOT
from sandbox.control_plane.etcd import Etcd, below
from sandbox.control_plane.ports import Ports
from sandbox.control_plane.processes import MARK, Processes
from sandbox.directory import read_state
from sandbox.lifecycle import Sandbox
from sandbox.nodes.fake_nodes import EVERY_NODE, POOL_LABEL, fake_node


def completed(
    sandbox: Sandbox,
    *command: str,
    cwd: Path | None = None,
    stdin: str | None = None,
    **env: str,
) -> subprocess.CompletedProcess[str]:
    """Run a command with the sandbox's tools and variables to its end."""
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **sandbox.env(), **env},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


def typed(checkout: Path, command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a line as a person does in a copy of the checkout, by the copy's own code."""
    parts = ("", "usage", "kubectl", "components", "policies", "stack", "cli")
    own = {"PYTHONPATH": os.pathsep.join(str(checkout / part) for part in parts)}
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=checkout,
        env={**os.environ, **own, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def fleet(
    sandbox: Sandbox, folder: Path, *arguments: str, stack: str
) -> subprocess.CompletedProcess[str]:
    """Run a `fleet` command of this checkout on a stack of a folder."""
    return subprocess.run(
        [sys.executable, "-m", "kai_fleet_cli", *arguments, "--stack", stack],
        cwd=folder,
        env={**os.environ, "KAI_FLEET_SANDBOX": str(sandbox.directory), "COLUMNS": "120"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def fleet_on(sandbox: Sandbox, folder: Path, stack: str) -> Callable[..., str]:
    """A function that runs a `fleet` command on a stack, which has to end well.

    With `fails` it has to fail. It returns what the command prints on stdout, else on stderr.
    """

    def run(*arguments: str, fails: bool = False) -> str:
        ran = fleet(sandbox, folder, *arguments, stack=stack)
        assert bool(ran.returncode) == fails, ran.stdout + ran.stderr
        return ran.stderr if fails else ran.stdout

    return run


def pulumi(sandbox: Sandbox, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run plain `pulumi` in a folder, with the programs of this checkout on PATH."""
    path = os.pathsep.join([sandbox.env()["PATH"], str(ROOT / ".venv" / "bin")])
    command = ("pulumi", *arguments, "--non-interactive")
    return completed(sandbox, *command, cwd=folder, PATH=path)


def run(sandbox: Sandbox, *command: str, **options: Any) -> str:
    """What a command prints. AssertionError with the end of its output where it fails."""
    done = completed(sandbox, *command, **options)
    assert done.returncode == 0, f"{command}: {done.stdout[-800:]}{done.stderr}"
    return done.stdout


def kubectl(sandbox: Sandbox, *arguments: str, **kwargs: Any) -> Any:
    """Run kubectl; parsed where `-o json` ends the arguments."""
    text = run(sandbox, "kubectl", *arguments, **kwargs)
    return json.loads(text) if arguments[-2:] == ("-o", "json") else text


def until(true: Callable[[], Any], seconds: float = 60) -> Any:
    """Ask until the answer is true; AssertionError after that time."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.3)
    return found


def listed(items: Iterable[Any]) -> str:
    """A List of objects, as kubectl reads it."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)})


@contextmanager
def nodes(sandbox: Sandbox, pools: Iterable[str]) -> Iterator[None]:
    """For a while, have a node with two GPUs in each of these pools, where a team's KAI runs."""
    has = {**EVERY_NODE, "cpu": "32", "memory": "128Gi", "nvidia.com/gpu": "2"}
    text = listed(fake_node(f"{pool}-1", {POOL_LABEL: pool}, has, has, []) for pool in pools)
    kubectl(sandbox, "create", "-f", "-", stdin=text)
    try:
        yield
    finally:
        kubectl(sandbox, "delete", "--wait=false", "--ignore-not-found", "-f", "-", stdin=text)


def synced(sandbox: Sandbox, namespace: str, pool: str, deployments: Iterable[str]) -> None:
    """Add the pods that a real vCluster has on its host, which a removal has to end."""
    container = {"name": "main", "image": "synced"}
    spec = {"nodeSelector": {POOL_LABEL: pool}, "containers": [container]}
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "spec": spec}
        | {"metadata": {"name": f"{name}-x-inside", "namespace": namespace}}
        for name in ("coredns", *deployments)
    ]
    kubectl(sandbox, "create", "-f", "-", stdin=listed(pods))
    get = ("-n", namespace, "get", "pods", "-o", "json")
    until(lambda: all("nodeName" in pod["spec"] for pod in kubectl(sandbox, *get)["items"]))


def pids(sandbox: Sandbox) -> dict[str, int]:
    processes = Processes(sandbox.directory)
    found = {name: processes.running(name) for name in processes.names()}
    return {name: process.pid for name, process in found.items() if process is not None}


def keys(sandbox: Sandbox, prefix: str) -> int:
    """How many keys etcd has below a path."""
    state = read_state(sandbox.directory)
    assert state is not None
    asked = Etcd(sandbox.directory, Ports(state.base_port)).client()
    answer = asked.post("/v3/kv/range", below(prefix) | {"count_only": True})
    return int(answer.get("count", 0))


def marked(directory: Path) -> list[int]:
    """Living processes that belong to the sandbox, by their own environment."""
    found = []
    for pid in psutil.pids():
        try:
            if psutil.Process(pid).environ().get(MARK) == str(directory):
                found.append(pid)
        except (psutil.Error, OSError):
            continue
    return found
