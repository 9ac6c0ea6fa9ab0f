"""Recording stand-ins for docker, kind, nvidia-smi and what the node's script calls."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kai_fleet_cli.stack_file.reading import ROOT
from kai_fleet_stack.host_access import kind_config
from kai_fleet_stack.settings.sections.access import Kind

SCRIPTS = ROOT / "components" / "kai_fleet" / "cluster" / "kind"
REAL = (
    *("bash", "cat", "cp", "cut", "dirname", "echo", "env", "grep", "mktemp", "python3", "rm"),
    *("sha256sum", "sh", "sleep", "tail", "touch", "tee", "mkdir"),
)
# Every stand-in notes its call; what FAIL names fails, with a line of its own.
HEAD = """#!/bin/bash
me=${0##*/}
all="$me $*"
echo "${all%%$'\\n'*}" >>"$STATE/calls"
if [ -f "$STATE/fail" ] && grep -qxF -- "$me $1" "$STATE/fail"; then
  echo "$me: $1 broke" >&2
  exit 1
fi
"""
DOCKER = """case "$1" in
  inspect) [ -f "$STATE/stopped" ] && echo false || echo true ;;
  start) rm -f "$STATE/stopped" ;;
  exec)
    case "$*" in
      *" cat "*) cat "$STATE/record" ;;
      *" sh -c "*) echo "${@: -1}" | cut -d ' ' -f 2,3 >"$STATE/record" ;;
      *" bash -c "*) printf '%s\\n' "${@: -1}" >"$STATE/node-script" ;;
    esac ;;
esac
"""
KIND = """case "$1 $2" in
  "get clusters") cat "$STATE/clusters" 2>/dev/null || echo "No kind clusters found." >&2 ;;
  "get nodes") cat "$STATE/nodes" ;;
  "get kubeconfig") cat "$STATE/kubeconfig" ;;
  "create cluster")
    echo "Creating cluster \\"$4\\" ..." >&2
    cp "$6" "$STATE/kind.yaml"
    echo "$4" >>"$STATE/clusters"
    echo "$4-control-plane" >"$STATE/nodes" ;;
  "delete cluster") rm -f "$STATE/clusters" "$STATE/record" ;;
esac
"""
SMI = """case "$1" in
  --query-gpu=memory.total) printf '24564\\n49140\\n' ;;
  *) echo "GPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-5d1f)" ;;
esac
"""
LDCONFIG = 'cat "$STATE/libraries" 2>/dev/null || true\n'


@dataclass
class Machine:
    """A folder of stand-ins, and what they noted."""

    directory: Path
    name: str = "lab"
    kind: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bin, self.state = self.directory / "bin", self.directory / "state"
        self.devices = self.directory / "dev"
        for folder in (self.bin, self.state, self.devices):
            folder.mkdir(parents=True)
        for name in REAL:
            (self.bin / name).symlink_to(shutil.which(name) or f"/usr/bin/{name}")
        self.put("docker", DOCKER)
        self.put("kind", KIND)
        (self.state / "kubeconfig").write_text("apiVersion: v1\nkind: Config\n")

    def put(self, name: str, body: str = "") -> None:
        """Have a stand-in on PATH."""
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(HEAD + body)
        path.chmod(0o755)

    def without(self, name: str) -> None:
        (self.bin / name).unlink()

    def with_gpu(self) -> None:
        """A driver, its device files and its libraries."""
        self.put("nvidia-smi", SMI)
        self.put("ldconfig", LDCONFIG)
        for name in ("nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-caps"):
            (self.devices / name).touch()
        library = self.directory / "libnvidia-ml.so.565.77"
        library.touch()
        (self.directory / "libnvidia-ml.so.1").symlink_to(library)
        self.libraries(f"libnvidia-ml.so.1 (libc6,x86-64) => {self.directory}/libnvidia-ml.so.1")

    def libraries(self, *lines: str) -> None:
        (self.state / "libraries").write_text("\n".join(f"\t{line}" for line in lines))

    def fail(self, *calls: str) -> None:
        """Have these calls, by program and first argument, fail."""
        (self.state / "fail").write_text("\n".join(calls) + "\n")

    def run(self, verb: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "kai_fleet.cluster.probes", "kind", verb],
            cwd=ROOT,
            env={**self.environment(), **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def environment(self) -> dict[str, str]:
        import json

        kind = Kind.model_validate(self.kind)
        gpu_node = "worker" if kind.workers else "control-plane"
        return {
            "PATH": str(self.bin),
            "HOME": os.environ.get("HOME", "/"),
            "STATE": str(self.state),
            "KIND_NAME": self.name,
            "KIND_CONFIG": json.dumps(kind_config(self.name, kind), sort_keys=True),
            "KIND_GPUS": kind.gpus,
            "KIND_GPU_NODE": f"{self.name}-{gpu_node}",
            "KIND_DEVICE_DIRECTORY": str(self.devices),
        }

    def calls(self) -> list[str]:
        """What was called since the last question, in order."""
        log = self.state / "calls"
        found = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return found
