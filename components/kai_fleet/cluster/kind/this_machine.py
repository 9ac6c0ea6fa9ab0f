"""kind's config file with the GPUs of this machine, and the files of their driver.

`python -m kai_fleet.cluster.kind.this_machine GPUS` prints the file as YAML. KIND_CONFIG has the
declared config as JSON; the GPUs are added if GPUS is `yes`.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

_MEMORY_QUERY = ("nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits")
# The folder of device files; only tests set it.
_DEVICES = "KIND_DEVICE_DIRECTORY"
_DEVICE = re.compile(r"nvidia(\d+|ctl|-uvm|-uvm-tools|-modeset)")
# A 64-bit library in the output of ldconfig:
# `libnvidia-ml.so.1 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1`
_LIBRARY = re.compile(
    r"\s*(?:libnvidia-|libcuda)\S*\.so\S* \([^)]*(?:x86-64|AArch64)[^)]*\) => (/\S+)"
)


class NoGpusError(Exception):
    """Devices or libraries of the driver that a node needs are missing, or a command fails."""


def add_gpus(config: dict[str, Any]) -> None:
    """Mount the driver's devices, its libraries and nvidia-smi into the GPU node of a config.

    The GPU node is the second of `nodes`, which is the first worker, or the only node. Changes
    `config` in place: sets the node's mounts, replacing any, and adds the labels of a GPU node.
    Raises NoGpusError if there are no devices or no libraries, or if nvidia-smi or ldconfig fails;
    KeyError without `nodes`.
    """
    folder = f"/usr/lib/{platform.machine()}-linux-gnu"
    mounts = {str(device): f"/dev/{device.name}" for device in _devices()}
    mounts |= {str(library): f"{folder}/{library.name}" for library in _libraries()}
    mounts[shutil.which("nvidia-smi") or "/usr/bin/nvidia-smi"] = "/usr/bin/nvidia-smi"
    nodes = config["nodes"]
    node = nodes[1] if len(nodes) > 1 else nodes[0]
    node["labels"] = {**node.get("labels", {}), **_labels()}
    node["extraMounts"] = [
        {"hostPath": host_path, "containerPath": path} for host_path, path in mounts.items()
    ]


def _devices() -> list[Path]:
    """The driver's device files. Raises NoGpusError if no GPU is among them."""
    folder = Path(os.environ.get(_DEVICES, "/dev"))
    devices = sorted(path for path in folder.glob("nvidia*") if _DEVICE.fullmatch(path.name))
    if not any(path.name[-1].isdigit() for path in devices):
        raise NoGpusError(
            f"nvidia-smi answers, but there is no {folder}/nvidia0 to give to the node (WSL has"
            " none): write kai-fleet:cluster.kind.gpus: none, or use minikube (docs/local-gpu.md)"
        )
    return devices


def _libraries() -> list[Path]:
    """The files of the driver's libraries, by name. Raises NoGpusError without libnvidia-ml.

    All programs use libnvidia-ml. The files' names have the driver's version: ldconfig in the node
    creates the links anew.
    """
    files: dict[str, Path] = {}
    for line in _output("ldconfig", "-p").splitlines():
        match = _LIBRARY.match(line)
        if match:
            file = Path(match[1]).resolve()
            files[file.name] = file
    if not any(name.startswith("libnvidia-ml.so") for name in files):
        raise NoGpusError(
            "nvidia-smi answers, but ldconfig lists no libnvidia-ml.so: install the driver's"
            " libraries (libnvidia-compute of its version), then run the update again"
        )
    return [files[name] for name in sorted(files)]


def _labels() -> dict[str, str]:
    """The labels of the GPU node. Raises NoGpusError if nvidia-smi fails.

    The device plugin's chart looks for `gpu.present`. `gpu.memory` is the least memory of a GPU, in
    MiB, and absent if nvidia-smi prints no number: without it KAI gives no pod an amount of GPU
    memory. NVIDIA's feature discovery, which would set it, does not run in kind.
    """
    labels = {"nvidia.com/gpu.present": "true"}
    memory_mib = [int(line) for line in _output(*_MEMORY_QUERY).split() if line.isdigit()]
    if memory_mib:
        labels["nvidia.com/gpu.memory"] = str(min(memory_mib))
    return labels


def _output(*command: str) -> str:
    """The output of a command. Raises NoGpusError if it fails."""
    # A user's PATH often lacks the folders of system programs such as ldconfig.
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    environment = {**os.environ, "PATH": path}
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = str(getattr(error, "stderr", "") or error).strip()
        raise NoGpusError(f"`{' '.join(command)}` fails: {reason}") from None
    return ran.stdout


def main() -> None:
    """Print the config file; exit with 1 and a sentence if the GPUs cannot be mounted."""
    config = json.loads(os.environ["KIND_CONFIG"])
    try:
        if sys.argv[1] == "yes":
            add_gpus(config)
    except NoGpusError as error:
        raise SystemExit(str(error)) from None
    yaml.safe_dump(config, sys.stdout, sort_keys=False)


if __name__ == "__main__":
    main()
