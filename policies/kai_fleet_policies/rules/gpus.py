"""Rules about GPUs: one right request for a share, and one who shares them."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kai_fleet import releases
from kai_fleet.finding import Level
from kai_fleet.fleet.cluster import Cluster, DevicePlugin
from kai_fleet.fleet.pods import PodTemplate
from kai_fleet.releases import DISABLED
from kai_fleet.releases.keys import (
    CONTAINER,
    DEVICES,
    FRACTION,
    GPU_RESOURCES,
    MEMORY,
    MPS,
    SCHEDULER,
)
from kai_fleet.releases.sharing import FRACTIONS_KEY, NV_FRACTIONS
from kai_fleet.values import UNKNOWN, pairs, text
from kai_fleet.wording import listed
from kai_fleet_policies.rules.rule import (
    Findings,
    Place,
    Severity,
    called,
    known,
    of_cluster,
    of_workload,
    rule,
    workloads,
)

_MOST_DEVICES: Final = 9999  # as the guard of the pods has it; KAI multiplies in 64 bits
_LEAST: Final = 0.01  # KAI rounds to hundredths what it adds to a queue
# Whoever makes a pod may write anything: more digits than these cost hours, or are no number.
_FLOAT: Final = re.compile(r"[+-]?([0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?")
_COUNT: Final = re.compile(r"0*[1-9][0-9]{0,17}")


@rule("workload-gpu-request", Level.MANDATORY, Severity.HIGH, each=workloads)
def workload_gpu_request(cluster: Cluster, workload: PodTemplate, place: Place) -> Findings:
    """A GPU share is requested in one way, with a value that KAI takes.

    KAI's admission refuses such pods, or schedules them wrong where it does not notice.

    Remedy: Write one of: the annotation gpu-fraction ("0.5"), the annotation gpu-memory
    ("2000", MiB), or whole GPUs in the container's resources.
    """
    annotations = known(workload.annotations, "its annotations are known")
    if not annotations.keys() & {FRACTION, MEMORY, DEVICES, CONTAINER, MPS}:
        return
    for cause, fix in _wrong(annotations, workload):
        yield place.refuse(cause, fix)
    unknown = [key for key in (FRACTION, MEMORY, DEVICES) if annotations.get(key) is UNKNOWN]
    if unknown:
        yield place.undecided(f"the value of {listed(unknown, 'and')} is known")
    if CONTAINER in annotations:
        yield from _container(cluster, workload, annotations[CONTAINER], place)
    if FRACTION in annotations or MEMORY in annotations:
        yield from _whole_gpus(workload, place)


def _wrong(annotations: Mapping[str, Any], workload: PodTemplate) -> Iterator[tuple[str, str]]:
    fraction, memory, devices = (annotations.get(key) for key in (FRACTION, MEMORY, DEVICES))
    shared = FRACTION in annotations or MEMORY in annotations
    if fraction not in (None, UNKNOWN):
        yield from _fraction(str(fraction))
    if memory not in (None, UNKNOWN) and not _count(memory):
        yield (
            f'has {MEMORY}: "{memory}"',
            f'write a positive whole number of MiB, for example {MEMORY}: "2000"',
        )
    if FRACTION in annotations and MEMORY in annotations:
        yield f"has both {FRACTION} and {MEMORY}", "write only one of them"
    if DEVICES in annotations and not shared:
        yield (
            f"has {DEVICES} alone: it says on how many GPUs a share is taken",
            f'add {FRACTION}, for example {FRACTION}: "0.5", or ask for whole GPUs instead',
        )
    if devices not in (None, UNKNOWN):
        count = _count(devices)
        if not count:
            yield f'has {DEVICES}: "{devices}"', 'write a positive whole number such as "2"'
        elif count > _MOST_DEVICES:
            yield (
                f'has {DEVICES}: "{devices}", more than KAI can count',
                f"write {_MOST_DEVICES} or less",
            )
    # On pods of other schedulers these short keys may have another meaning.
    if workload.scheduler == SCHEDULER and not shared:
        if str(annotations.get(MPS)).lower() == "true":
            yield 'has mps: "true" without a share of a GPU', f'add {FRACTION}: "0.5" or drop mps'
        if CONTAINER in annotations:
            yield f"has {CONTAINER} without a share of a GPU", f'add {FRACTION}: "0.5" or drop it'


def _fraction(text: str) -> Iterator[tuple[str, str]]:
    value = float(text) if _FLOAT.fullmatch(text) else math.nan
    has = f'has {FRACTION}: "{text}", which'
    if 0 < value < _LEAST:
        yield f"{has} KAI counts as nothing", f"write {_LEAST} or more"
    elif not 0 < value < 1:
        yield (
            f"{has} is not a number between 0 and 1",
            f'write for example {FRACTION}: "0.5"; for whole GPUs drop it and write limits:'
            ' nvidia.com/gpu: "1"',
        )


def _whole_gpus(workload: PodTemplate, place: Place) -> Findings:
    for container in known(workload.containers, "its containers are known"):
        for resource in (*GPU_RESOURCES, *container.slices):
            name = called(container.name)
            if known(container.asks_for(resource), f"the resources of container {name} are known"):
                kind = "slices" if resource in container.slices else "whole GPUs"
                yield place.refuse(
                    f"asks for a share of a GPU and, in container {name}, for {kind}",
                    f"drop {resource} there or the annotation",
                )


def _container(cluster: Cluster, workload: PodTemplate, name: Any, place: Place) -> Findings:
    host = cluster.scheduling
    if not host.kai or any(kai.version is UNKNOWN for kai in host.kai):
        until = f"the KAI version of {host.name} is known: {CONTAINER} works from v0.10"
        yield place.undecided(until)
    for kai in host.kai:
        release = releases.KAI.get(str(kai.version))
        if release is not None and not release.container_name_annotation:
            yield place.refuse(
                f"has {CONTAINER}, which KAI reads from v0.10 on, and {host.name} runs"
                f" {release.version}",
                "make that container the first one and drop the annotation",
            )
    if UNKNOWN in (name, workload.containers):
        return
    names = [container.name for container in workload.containers]
    if UNKNOWN not in names and name not in names:
        yield place.refuse(
            f'has {CONTAINER}: "{name}", but no container of that name',
            f"write {listed([called(each) for each in names])}",
        )


def _count(value: object) -> int:
    """A positive whole number; 0 for anything else."""
    digits = str(text(value))
    return int(digits[-18:]) if _COUNT.fullmatch(digits) else 0


_OWN_KEY: Final = re.compile(FRACTIONS_KEY)


@rule("workload-gpu-sharing", Level.MANDATORY, Severity.MEDIUM)
def workload_gpu_sharing(cluster: Cluster) -> Findings:
    """Shares of a GPU only where KAI's GPU sharing is on.

    While gpuSharing is off, KAI's admission refuses every pod that asks for a share.

    Remedy: Switch gpuSharing on for that KAI, or into the mode that reads the key.
    """
    host = cluster.scheduling
    modes = {kai.sharing for kai in host.kai}
    unclear = not modes or UNKNOWN in modes
    waiting = 0
    for workload in cluster.workloads:
        annotations = pairs(workload.annotations)
        if workload.scheduler != SCHEDULER:
            continue  # other rules speak of these
        own = next(filter(_OWN_KEY.fullmatch, map(str, annotations)), None)
        key = next((key for key in (FRACTION, MEMORY, DEVICES) if key in annotations), own)
        if key is not None and DISABLED in modes:
            yield of_workload(workload, cluster).refuse(
                f"has {key}, but GPU sharing is off in the KAI of {host.name}",
                "set gpuSharing: true there (Helm value global.gpuSharing), or drop"
                f" {key} and ask for whole GPUs",
            )
        elif own and not unclear and NV_FRACTIONS not in modes:
            yield of_workload(workload, cluster).refuse(
                f"has {own}, which only a KAI in mode {NV_FRACTIONS} reads",
                f"write gpu-fraction or gpu-memory, or gpuSharing: {{mode: {NV_FRACTIONS}}} for"
                f" the KAI of {host.name}",
            )
        waiting += key is not None
    if unclear and waiting and DISABLED not in modes:
        yield of_cluster("KAI", cluster).undecided(
            f"it is known whether GPU sharing is on in {host.name}: {waiting} workload(s) ask for"
            " a share of a GPU"
        )


def _plugins(cluster: Cluster) -> Iterable[tuple[DevicePlugin, Place]]:
    name = f"plugin of {cluster.name}"
    return ((each, Place("device", name, each.path)) for each in cluster.device_plugins)


@rule("gpu-one-sharer", Level.MANDATORY, Severity.HIGH, each=_plugins)
def gpu_one_sharer(cluster: Cluster, plugin: DevicePlugin, place: Place) -> Findings:
    """GPUs are shared by KAI or by the device plugin, not by both.

    Time-slicing and MPS make the device plugin advertise more GPUs than there are; KAI then
    splits those once more, and pods run out of GPU memory.

    Remedy: Take the sharing section out of the device plugin's config, or switch KAI's sharing
    off.
    """
    modes = {"the host": {kai.sharing for kai in cluster.kai}}
    modes |= {f"team {called(t.name)}": {kai.sharing for kai in t.kai} for t in cluster.teams}
    sharers = [owner for owner, own in modes.items() if own - {DISABLED, UNKNOWN}]
    unclear = [owner for owner, own in modes.items() if UNKNOWN in own and owner not in sharers]
    if not sharers and not unclear:
        return
    sharing = known(plugin.sharing, "the device plugin's config is known")
    if sharing and sharers:
        yield place.refuse(
            f"shares GPUs by {sharing} while the KAI of {listed(sharers, 'and')} shares them too",
            "remove the sharing section from the device plugin's config, or set gpuSharing: false"
            " for that KAI",
        )
    elif sharing:
        yield place.undecided(
            f"it is known whether the KAI of {listed(unclear, 'and')} shares GPUs"
        )
