"""A GPU share is requested in one way, with a value that KAI takes."""

import math
import re
from collections.abc import Iterator, Mapping

from kai_fleet import releases
from kai_fleet.fleet.cluster import Cluster
from kai_fleet.fleet.pods import PodTemplate
from kai_fleet.releases.keys import (
    CONTAINER,
    DEVICES,
    FRACTION,
    GPU_RESOURCES,
    MEMORY,
    MPS,
    SCHEDULER,
)
from kai_fleet.values import UNKNOWN
from kai_fleet.wording import listed
from kai_fleet_policies.problem import Level, ProblemPlace, Problems, Severity, called, of_workload

LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = "KAI's admission refuses such pods, or schedules them wrong where it does not notice (W3)."
REMEDY = (
    'Write one of: the annotation gpu-fraction ("0.5"), the annotation gpu-memory ("2000", MiB),'
    " or whole GPUs in the container's resources."
)

_MOST_DEVICES = 9999  # as the guard of the pods has it; KAI multiplies in 64 bits
_LEAST = 0.01  # KAI rounds to hundredths what it adds to a queue
# Whoever makes a pod may write anything: more digits than these cost hours, or are no number.
_FLOAT = re.compile(r"[+-]?([0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?")
_COUNT = re.compile(r"0*[1-9][0-9]{0,17}")
_MEMORY = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?(Mi?B?|Gi?B?|Ti?B?)", re.IGNORECASE)
_PERCENT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?%")
_BYTES = {"m": 10**6, "mi": 2**20, "g": 10**9, "gi": 2**30, "t": 10**12, "ti": 2**40}


def check(cluster: Cluster) -> Problems:
    """Each workload that asks KAI for a part of a GPU."""
    for workload in cluster.workloads:
        annotations = workload.annotations
        place = of_workload(workload, cluster)
        if annotations is UNKNOWN:
            yield place.undecided("its annotations are known")
            continue
        if not annotations.keys() & {FRACTION, MEMORY, DEVICES, CONTAINER, MPS}:
            continue
        for message in _messages(annotations, workload):
            yield place.mandatory(message)
        unknown = [k for k in (FRACTION, MEMORY, DEVICES) if annotations.get(k) is UNKNOWN]
        if unknown:
            yield place.undecided(f"the value of {listed(unknown, 'and')} is known")
        if FRACTION in annotations or MEMORY in annotations:
            yield from _whole_gpus(workload, place)
        if CONTAINER in annotations:
            yield from _container(cluster, workload, annotations, place)


def _messages(annotations: Mapping[str, object], workload: PodTemplate) -> Iterator[str]:
    fraction, memory = annotations.get(FRACTION), annotations.get(MEMORY)
    if fraction is not None and fraction is not UNKNOWN:
        yield from _fraction(str(fraction))
    if memory is not None and memory is not UNKNOWN and not _count(memory):
        yield (
            f'has {MEMORY}: "{memory}"; write a positive whole number of MiB,'
            f' for example {MEMORY}: "{_mebibytes(str(memory)) or 2000}"'
        )
    if FRACTION in annotations and MEMORY in annotations:
        yield f"has both {FRACTION} and {MEMORY}; write only one of them"
    shared = FRACTION in annotations or MEMORY in annotations
    devices = annotations.get(DEVICES)
    if DEVICES in annotations and not shared:
        yield (
            f"has {DEVICES} alone: it says on how many GPUs a share is taken;"
            f' add {FRACTION}, for example {FRACTION}: "0.5", or ask for whole GPUs instead'
        )
    if devices is not None and devices is not UNKNOWN:
        count = _count(devices)
        if not count:
            yield f'has {DEVICES}: "{devices}"; write a positive whole number such as "2"'
        elif count > _MOST_DEVICES:
            most = f"more than KAI can count; write {_MOST_DEVICES} or less"
            yield f'has {DEVICES}: "{devices}", {most}'
    # On pods of other schedulers these short keys may have another meaning.
    if workload.scheduler == SCHEDULER and not shared:
        if str(annotations.get(MPS)).lower() == "true":
            yield f'has mps: "true" without a share of a GPU; add {FRACTION}: "0.5" or drop mps'
        if CONTAINER in annotations:
            yield f'has {CONTAINER} without a share of a GPU; add {FRACTION}: "0.5" or drop it'


def _fraction(text: str) -> Iterator[str]:
    value = float(text) if _FLOAT.fullmatch(text) else math.nan
    if 0 < value < _LEAST:
        yield f'has {FRACTION}: "{text}", which KAI counts as nothing; write {_LEAST} or more'
        return
    if 0 < value < 1:
        return
    if 1 <= value < 100:
        instead = f'for whole GPUs drop it and write limits: nvidia.com/gpu: "{math.ceil(value)}"'
    else:
        percent = _PERCENT.fullmatch(text.strip())
        half = float(percent[1]) / 100 if percent else 0.5
        instead = f'write, for example, {FRACTION}: "{half if 0 < half < 1 else 0.5:g}"'
    yield f'has {FRACTION}: "{text}", which is not a number between 0 and 1; {instead}'


def _whole_gpus(workload: PodTemplate, place: ProblemPlace) -> Problems:
    if workload.containers is UNKNOWN:
        yield place.undecided("its containers are known")
        return
    for container in workload.containers:
        for resource in (*GPU_RESOURCES, *container.slices):
            asks = container.asks_for(resource)
            if asks is UNKNOWN:
                until = f"the resources of container {called(container.name)} are known"
                yield place.undecided(until)
                return
            if asks:
                yield place.mandatory(
                    f"asks for a share of a GPU and, in container {called(container.name)}, for"
                    f" {'slices' if resource in container.slices else 'whole GPUs'}; drop"
                    f" {resource} there or the annotation"
                )


def _container(
    cluster: Cluster,
    workload: PodTemplate,
    annotations: Mapping[str, object],
    place: ProblemPlace,
) -> Problems:
    scheduling = cluster.scheduling
    if not scheduling.kai or any(release.version is UNKNOWN for release in scheduling.kai):
        until = f"the KAI version of {scheduling.name} is known: {CONTAINER} works from v0.10"
        yield place.undecided(until)
    for release in scheduling.kai:
        known = releases.KAI.get(str(release.version))
        if known is not None and not known.container_name_annotation:
            yield place.mandatory(
                f"has {CONTAINER}, which KAI reads from v0.10 on, and {scheduling.name} runs"
                f" {known.version}; make that container the first one and drop the annotation"
            )
    name, containers = annotations[CONTAINER], workload.containers
    if name is UNKNOWN or containers is UNKNOWN:
        return
    names = [container.name for container in containers]
    if UNKNOWN not in names and name not in names:
        choice = listed([called(n) for n in names])
        yield place.mandatory(
            f'has {CONTAINER}: "{name}", but no container of that name; write {choice}'
        )


def _count(value: object) -> int:
    """A positive whole number; 0 for anything else."""
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    return int(text[-18:]) if _COUNT.fullmatch(text) else 0


def _mebibytes(text: str) -> int | None:
    match = _MEMORY.fullmatch(text.strip())
    if match is None:
        return None
    unit = match[2].lower().removesuffix("b")
    return int(float(match[1]) * _BYTES[unit] / 2**20) or None
