"""kind's config file with the parts of this machine: its GPUs and the files of their driver.

`python -m kai_fleet.cluster.kind.this_machine GPUS` prints the file from KIND_CONFIG,
the declared part as JSON: with the GPUs of this machine where GPUS is `yes`.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import yaml

_MEMORY: Final = ("nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits")
# Where device files are; another folder only in tests.
_DEVICES: Final = "KIND_DEVICE_DIRECTORY"
_DEVICE: Final = re.compile(r"nvidia(\d+|ctl|-uvm|-uvm-tools|-modeset)")
# `libnvidia-ml.so.1 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1`, of 64 bits.
_LIBRARY: Final = re.compile(
    r"\s*(?:libnvidia-|libcuda)\S*\.so\S* \([^)]*(?:x86-64|AArch64)[^)]*\) => (/\S+)"
)


class NoGpusError(Exception):
    """The driver answers, but devices or libraries that a node needs are missing."""


def add_gpus(config: dict[str, Any]) -> None:
    """Mount the driver's devices, libraries and nvidia-smi into the GPU node of a config.

    Raises NoGpusError.
    """
    there, folder = os.environ.get(_DEVICES, "/dev"), f"/usr/lib/{platform.machine()}-linux-gnu"
    devices = sorted(path for path in Path(there).glob("nvidia*") if _DEVICE.fullmatch(path.name))
    if not any(path.name[-1].isdigit() for path in devices):
        raise NoGpusError(
            f"nvidia-smi answers, but there is no {there}/nvidia0 to give to the node (WSL has"
            " none): write kai-fleet:cluster.kind.gpus: none, or use minikube (docs/local-gpu.md)"
        )
    # The files behind the driver's libraries: they carry the driver's version; ldconfig in the
    # node makes the links anew. libnvidia-ml is what everything else asks.
    found = map(_LIBRARY.match, _output("ldconfig", "-p").splitlines())
    files = {file.name: file for match in found if match for file in [Path(match[1]).resolve()]}
    if not any(name.startswith("libnvidia-ml.so") for name in files):
        raise NoGpusError(
            "nvidia-smi answers, but ldconfig lists no libnvidia-ml.so: install the driver's"
            " libraries (libnvidia-compute of its version), then run the update again"
        )
    mounts = {str(device): f"/dev/{device.name}" for device in devices}
    mounts |= {str(files[name]): f"{folder}/{name}" for name in sorted(files)}
    mounts[shutil.which("nvidia-smi") or "/usr/bin/nvidia-smi"] = "/usr/bin/nvidia-smi"
    # The device plugin's chart looks for the first. NVIDIA's feature discovery does not run here:
    # without the second, what every GPU has in MiB, KAI gives no pod an amount of GPU memory.
    labels = {"nvidia.com/gpu.present": "true"}
    sizes = [int(line) for line in _output(*_MEMORY).split() if line.isdigit()]
    if sizes:
        labels["nvidia.com/gpu.memory"] = str(min(sizes))
    node = config["nodes"][1 if len(config["nodes"]) > 1 else 0]
    node["labels"] = {**node.get("labels", {}), **labels}
    node["extraMounts"] = [{"hostPath": host, "containerPath": to} for host, to in mounts.items()]


def _output(*command: str) -> str:
    # A user's PATH often lacks the folders of the system's own programs, such as ldconfig.
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    environment = {**os.environ, "PATH": path}
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = str(getattr(error, "stderr", "") or error).strip()
        raise NoGpusError(f"`{' '.join(command)}` fails: {reason}") from None
    return ran.stdout


def main() -> None:
    """Print the config file; exit 1 with a sentence where its GPUs cannot be passed on."""
    config = json.loads(os.environ["KIND_CONFIG"])
    try:
        if sys.argv[1] == "yes":
            add_gpus(config)
    except NoGpusError as error:
        raise SystemExit(str(error)) from None
    yaml.safe_dump(config, sys.stdout, sort_keys=False)


if __name__ == "__main__":
    main()
