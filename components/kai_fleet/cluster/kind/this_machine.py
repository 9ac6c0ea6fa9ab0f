"""kind's config file with what only this machine knows: its GPUs, and their driver's files.

`python -m kai_fleet.cluster.kind.this_machine GPUS` prints the file from KIND_CONFIG,
the declared part as JSON: with the GPUs of this machine where GPUS is `yes`.
"""

import copy
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import yaml

GPU_LABEL: Final = "nvidia.com/gpu.present"  # the device plugin's chart looks for it
MEMORY_LABEL: Final = "nvidia.com/gpu.memory"  # NVIDIA's feature discovery does not run here
# Where device files are; another folder only in tests.
_DEVICES: Final = "KIND_DEVICE_DIRECTORY"
_DEVICE = re.compile(r"nvidia(\d+|ctl|-uvm|-uvm-tools|-modeset)")
# `libnvidia-ml.so.1 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1`
_LIBRARY = re.compile(r"\s*(lib(?:nvidia-|cuda)\S*\.so\S*) \(([^)]*)\) => (/\S+)")
_WORDS_OF_64_BITS: Final = ("x86-64", "AArch64")


class NoGpusError(Exception):
    """The driver answers, but what a node needs of it is not there."""


def with_gpus(
    config: dict[str, Any],
    devices: Iterable[Path],
    libraries: Iterable[Path],
    smi: Path,
    memory: int | None = None,
) -> dict[str, Any]:
    """The config with the driver's devices, libraries and nvidia-smi mounted into the GPU node.

    `memory` is that of each GPU in MiB; without it KAI gives no pod an amount of GPU memory.
    """
    result = copy.deepcopy(config)
    node = result["nodes"][1 if len(result["nodes"]) > 1 else 0]
    folder = f"/usr/lib/{platform.machine()}-linux-gnu"
    mounts = [(str(device), f"/dev/{device.name}") for device in devices]
    mounts += [(str(library), f"{folder}/{library.name}") for library in libraries]
    mounts.append((str(smi), "/usr/bin/nvidia-smi"))
    known = {MEMORY_LABEL: str(memory)} if memory else {}
    node["labels"] = {**node.get("labels", {}), GPU_LABEL: "true", **known}
    node["extraMounts"] = [{"hostPath": host, "containerPath": inside} for host, inside in mounts]
    return result


def driver_devices(folder: Path) -> list[Path]:
    """The device files of the driver. Raises NoGpusError where there are none."""
    devices = sorted(path for path in folder.glob("nvidia*") if _DEVICE.fullmatch(path.name))
    if not any(path.name[-1].isdigit() for path in devices):
        raise NoGpusError(
            f"nvidia-smi answers, but there is no {folder}/nvidia0 to give to the node (WSL has"
            " none): write kai-fleet:cluster.kind.gpus: none, or use minikube (docs/local-gpu.md)"
        )
    return devices


def driver_libraries(listed: str) -> list[Path]:
    """The files behind the driver's libraries, as `ldconfig -p` lists them.

    The files themselves carry the driver's version; ldconfig in the node makes the links anew.
    Raises NoGpusError where libnvidia-ml, which everything else asks, is missing.
    """
    libraries: dict[str, Path] = {}
    for line in listed.splitlines():
        match = _LIBRARY.match(line)
        if match and any(word in match.group(2) for word in _WORDS_OF_64_BITS):
            path = Path(match.group(3)).resolve()
            libraries[path.name] = path
    if not any(name.startswith("libnvidia-ml.so") for name in libraries):
        raise NoGpusError(
            "nvidia-smi answers, but ldconfig lists no libnvidia-ml.so: install the driver's"
            " libraries (libnvidia-compute of its version), then run the update again"
        )
    return [libraries[name] for name in sorted(libraries)]


def smallest_memory(listed: str) -> int | None:
    """The MiB that every GPU has, of nvidia-smi's list of numbers; None where it gives none."""
    numbers = [int(line) for line in listed.split() if line.isdigit()]
    return min(numbers, default=None)


def _output(program: str, *arguments: str) -> str:
    # A user's PATH often lacks the folders of the system's own programs, such as ldconfig.
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    executable = shutil.which(program, path=path)
    if executable is None:
        raise NoGpusError(f"{program} is not on PATH: it says where the driver's libraries are")
    ran = subprocess.run([executable, *arguments], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise NoGpusError(f"`{program} {' '.join(arguments)}` fails: {ran.stderr.strip()}")
    return ran.stdout


def main() -> None:
    """Print the config file; exit 1 with a sentence where its GPUs cannot be passed on."""
    config = json.loads(os.environ["KIND_CONFIG"])
    if sys.argv[1] == "yes":
        try:
            query = ("--query-gpu=memory.total", "--format=csv,noheader,nounits")
            config = with_gpus(
                config,
                driver_devices(Path(os.environ.get(_DEVICES, "/dev"))),
                driver_libraries(_output("ldconfig", "-p")),
                Path(shutil.which("nvidia-smi") or "/usr/bin/nvidia-smi"),
                smallest_memory(_output("nvidia-smi", *query)),
            )
        except NoGpusError as error:
            sys.stderr.write(f"{error}\n")
            raise SystemExit(1) from None
    yaml.safe_dump(config, sys.stdout, sort_keys=False)


if __name__ == "__main__":
    main()
