"""`kubectl exec` and `kubectl logs` for the pods of control planes, which have no containers.

A command runs on this machine, with folders of its own in place of `/tmp` and `/backup`, and with
`sandbox.vcluster.store` in place of `/vcluster`. Only what somebody runs by this program is run:
nothing that a pod or a cluster asks for.
"""

import re
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from sandbox.control_plane.kube_api import AdminApi, Object
from sandbox.directory import CHECKOUT

_PROGRAM: Final = """#!/bin/sh
cd {checkout} && exec {python} -m sandbox.vcluster.store "$1" {folder} {namespace} {name}
"""
_KUBECTL: Final = """#!/bin/sh
cd {checkout} && exec {python} -m sandbox.vcluster.containers {folder} "$@"
"""
# Paths in the container, where they begin.
_PATHS: Final = re.compile(r"(?<![\w./-])/(vcluster|backup|tmp)\b")
_COMPLETE: Final = "complete"  # the file for which the pod of a restore waits


def write_kubectl(folder: Path) -> None:
    """Write the program that stands for kubectl in the sandbox in `folder`."""
    text = _KUBECTL.format(checkout=CHECKOUT, python=sys.executable, folder=folder)
    _write_program(folder / "containers" / "kubectl", text)


def main() -> int:
    """Run `DIRECTORY exec|logs … POD -- COMMAND` and return its exit code."""
    folder = Path(sys.argv[1])
    words, command = sys.argv[2:], list[str]()
    if "--" in words:
        end = words.index("--")
        words, command = words[:end], words[end + 1 :]
    asked = _arguments(words)
    api = AdminApi.of_kubeconfig(file=str(folder / "kubeconfig"))
    path = f"/api/v1/namespaces/{asked.namespace}/pods/{asked.pod}"
    pod = api.find(path)
    if pod is None or pod.get("status", {}).get("phase") == "Pending":
        print(f'Error from server: pods "{asked.pod}" does not run', file=sys.stderr)
        return 1
    place = _prepare(folder, asked, pod)
    if asked.verb == "logs":
        print((place / "log").read_text(), end="")
        return 0
    done = subprocess.run([_local(word, place) for word in command])
    if (place / "backup" / _COMPLETE).exists():
        _run_pod(api, path, pod, place)
    return done.returncode


def _arguments(words: list[str]) -> Namespace:
    parser = ArgumentParser()
    parser.add_argument("--context")
    parser.add_argument("verb", choices=("exec", "logs"))
    parser.add_argument("-i", action="store_true")
    parser.add_argument("-n", dest="namespace", required=True)
    parser.add_argument("-c", dest="container")
    parser.add_argument("pod")
    return parser.parse_args(words)


def _prepare(folder: Path, asked: Namespace, pod: Object) -> Path:
    """Make the folders of a pod, which stand for its file system; those of another one go."""
    place = folder / "containers" / f"{asked.namespace}.{asked.pod}.{pod['metadata']['uid']}"
    for part in ("tmp", "backup"):
        (place / part).mkdir(parents=True, exist_ok=True, mode=0o700)
    name = pod["metadata"]["labels"]["release"]
    program = _PROGRAM.format(
        checkout=CHECKOUT,
        python=sys.executable,
        folder=folder,
        namespace=asked.namespace,
        name=name,
    )
    _write_program(place / "vcluster", program)
    return place


def _local(word: str, place: Path) -> str:
    """A word of a command with the paths of this machine."""
    return _PATHS.sub(rf"{place}/\1", word)


def _run_pod(api: AdminApi, path: str, pod: Object, place: Path) -> None:
    """Run the command of the pod that restores, and write how it ended into its status."""
    (container,) = pod["spec"]["containers"]
    command = [_local(word, place) for word in container["command"]]
    with (place / "log").open("w") as log:
        done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT)
    phase = "Failed" if done.returncode else "Succeeded"
    api.patch(f"{path}/status", {"status": {"phase": phase}})


def _write_program(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.write_text(text)
    file.chmod(0o700)


if __name__ == "__main__":
    sys.exit(main())
