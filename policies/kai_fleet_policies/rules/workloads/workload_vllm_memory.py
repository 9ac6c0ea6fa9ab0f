"""A vLLM server takes as much of the GPU's memory as its pod requests."""

import math
import re
from typing import Any

from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.fleet.pods import PodContainer
from kai_fleet.releases.keys import SCHEDULER
from kai_fleet.releases.sharing import HAMI_CORE
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.problem import Level, Problems, Severity, of_workload

LEVEL = Level.ADVISORY
SEVERITY = Severity.MEDIUM
WHY = (
    "vLLM takes 90% of a GPU unless told otherwise, and KAI isolates its memory in no mode but"
    " HamiCore and NvFractions: two servers on one GPU run out of memory, or one is killed at its"
    " limit (W7)."
)
REMEDY = "Write --gpu-memory-utilization with the same number as the annotation gpu-fraction."

FLAG = "--gpu-memory-utilization"
DEFAULT = 0.9  # vLLM's own, where the flag is absent

_SET = re.compile(r"--gpu[-_]memory[-_]utilization(?:\s*=\s*|\s+)[\"']?([^\s\"',;|&]+)")
_VLLM = re.compile(r"\bvllm\s+serve\b|\bvllm\.entrypoints\b")
_SLACK = 0.005


def check(cluster: DeclaredCluster) -> Problems:
    """The vLLM containers of each workload that asks KAI for a share of a GPU.

    In mode HamiCore a container sees its share as the whole GPU, and 90% of that is right.
    """
    if any(kai.sharing == HAMI_CORE for kai in cluster.scheduling.kai):
        return
    for workload in cluster.workloads:
        annotations = workload.annotations
        if workload.scheduler != SCHEDULER or annotations is UNKNOWN:
            continue  # other rules speak of these
        fraction = _number(annotations.get("gpu-fraction"))
        memory = annotations.get("gpu-memory")
        if not annotations.keys() & {"gpu-fraction", "gpu-memory"}:
            continue
        place, containers = of_workload(workload, cluster), workload.containers
        is_open = UNKNOWN in (containers, annotations.get("gpu-fraction"), memory)
        messages = [UNKNOWN] if is_open else [_judge(it, fraction, memory) for it in containers]
        if UNKNOWN in messages:
            yield place.undecided("its share of a GPU and its containers' arguments are known")
        yield from (place.advisory(it) for it in messages if it and it is not UNKNOWN)


def _judge(container: PodContainer, fraction: float | None, memory: object) -> Any:
    """A message, "" where all is well, UNKNOWN where the arguments are not known yet."""
    command, arguments = container.command, container.arguments
    if command is UNKNOWN or arguments is UNKNOWN or UNKNOWN in (*command, *arguments):
        return UNKNOWN
    text = " ".join(str(part) for part in (*command, *arguments))
    values = _SET.findall(text)
    image = str(container.image or "").rpartition("/")[2].partition(":")[0]
    if not (values or _VLLM.search(text) or ("vllm" in image and not command)):
        return ""
    if fraction is None:
        return (
            "" if values else _unset(f"gpu-memory: {memory} MiB", "that part of the GPU's memory")
        )
    if not values:
        if abs(fraction - DEFAULT) <= _SLACK:
            return ""
        return _unset(f"gpu-fraction: {fraction:g}", f"{fraction:g}")
    taken = _number(values[-1])
    if taken is None:
        return f"takes {FLAG} from {values[-1]}; see that it is {fraction:g}, its gpu-fraction"
    if abs(taken - fraction) <= _SLACK:
        return ""
    consequence = (
        "it takes memory that other pods on the GPU are promised"
        if taken > fraction
        else "the rest of its share lies idle"
    )
    return (
        f"asks for gpu-fraction {fraction:g} and runs vLLM with {FLAG}={taken:g}: {consequence};"
        f" write {FLAG}={fraction:g}"
    )


def _unset(request: str, wanted: str) -> str:
    return (
        f"asks for {request} and runs vLLM without {FLAG}, which then takes {DEFAULT:g} of the GPU;"
        f" add {FLAG}={wanted}"
    )


def _number(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
