"""What KWOK plays for pods: running at once, or after the time that real ones take."""

import os
from pathlib import Path
from typing import Final

import yaml

# How long a pod takes to start, in seconds; at once where unset. For comparisons in which the time
# that real pods take counts: a script waits for one team after the other.
POD_SECONDS: Final = "KAI_FLEET_POD_SECONDS"
POD_END_SECONDS: Final = 2.0  # with it: what a program that heeds SIGTERM takes with its node
STAGES: Final = Path(__file__).with_name("kwok_stages.yaml")


def played(directory: Path) -> Path:
    """The file for the KWOK of a control plane that is kept in `directory`."""
    return directory / STAGES.name if os.environ.get(POD_SECONDS) else STAGES


def ensure(directory: Path) -> None:
    """Have that file there."""
    if not (setting := os.environ.get(POD_SECONDS)):
        return
    stages = list(yaml.safe_load_all(STAGES.read_text(encoding="utf-8")))
    delays = {"pod-running": float(setting), "pod-gone": POD_END_SECONDS}
    for stage in stages:
        if delay := delays.get(stage["metadata"]["name"]):
            stage["spec"]["delay"] = {"durationMilliseconds": int(delay * 1000)}
    played(directory).write_text(yaml.safe_dump_all(stages), encoding="utf-8")
