"""Rules about GPUs: one right request for a share, and one who shares them."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kai_fleet import releases
from kai_fleet.releases import DISABLED, sharing
from kai_fleet.releases.keys import CONTAINER, DEVICES, FRACTION, GPU_RESOURCES, MEMORY, MPS
from kai_fleet.releases.keys import SCHEDULER as KAI
from kai_fleet.releases.sharing import HAMI_CORE, MODES, NOT_ENFORCED, NV_FRACTIONS
from kai_fleet.values import UNKNOWN, pairs, text
from kai_fleet.wording import listed
from kai_fleet_policies.model.cluster import HOST, Cluster, DevicePlugin, Kai, Team
from kai_fleet_policies.model.pods import PodTemplate
from kai_fleet_policies.rules.places import (
    WORKLOADS,
    Place,
    called,
    kais,
    of_cluster,
    of_team,
    of_workload,
)
from kai_fleet_policies.rules.rule import Findings, known, mandatory

_MOST_DEVICES: Final = 9999  # as the guard of the pods has it; KAI multiplies in 64 bits
_LEAST: Final = 0.01  # KAI rounds to hundredths what it adds to a queue
# Whoever makes a pod may write anything: more digits than these cost hours, or are no number.
_FLOAT: Final = re.compile(r"[+-]?([0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?")
_COUNT: Final = re.compile(r"0*[1-9][0-9]{0,17}")


@mandatory("workload-gpu-request", "high", WORKLOADS)
def workload_gpu_request(cluster: Cluster, workload: PodTemplate, place: Place) -> Findings:
    """A GPU share is requested in one way, with a value that KAI takes.

    KAI's admission refuses such pods, or schedules them wrong where it does not notice.
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
    """What is wrong with the annotations that are known, and what to write."""
    fraction, memory, devices = (annotations.get(key) for key in (FRACTION, MEMORY, DEVICES))
    shared = FRACTION in annotations or MEMORY in annotations
    value = float(fraction) if _FLOAT.fullmatch(fraction := str(fraction)) else math.nan
    count = _count(devices)
    has = f'has {FRACTION}: "{fraction}", which'
    example, on_gpus = f'{FRACTION}: "0.5"', f'has {DEVICES}: "{devices}"'
    # On pods of other schedulers the short keys may have another meaning.
    alone = workload.scheduler == KAI and not shared
    checks = (
        (0 < value < _LEAST, f"{has} KAI counts as nothing", f"write {_LEAST} or more"),
        (
            annotations.get(FRACTION) not in (None, UNKNOWN) and not 0 < value < 1,
            f"{has} is not a number between 0 and 1",
            f"write for example {example}; for whole GPUs drop it and write limits:"
            ' nvidia.com/gpu: "1"',
        ),
        (
            memory not in (None, UNKNOWN) and not _count(memory),
            f'has {MEMORY}: "{memory}"',
            f'write a positive whole number of MiB, for example {MEMORY}: "2000"',
        ),
        (
            FRACTION in annotations and MEMORY in annotations,
            f"has both {FRACTION} and {MEMORY}",
            "write only one of them",
        ),
        (
            DEVICES in annotations and not shared,
            f"has {DEVICES} alone: it says on how many GPUs a share is taken",
            f"add {FRACTION}, for example {example}, or ask for whole GPUs instead",
        ),
        (
            devices not in (None, UNKNOWN) and not count,
            on_gpus,
            'write a positive whole number such as "2"',
        ),
        (
            count > _MOST_DEVICES,
            f"{on_gpus}, more than KAI can count",
            f"write {_MOST_DEVICES} or less",
        ),
        (
            alone and str(annotations.get(MPS)).lower() == "true",
            'has mps: "true" without a share of a GPU',
            f"add {example} or drop mps",
        ),
        (
            alone and CONTAINER in annotations,
            f"has {CONTAINER} without a share of a GPU",
            f"add {example} or drop it",
        ),
    )
    yield from ((cause, fix) for wrong, cause, fix in checks if wrong)


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


_OWN_KEY: Final = re.compile(sharing.FRACTIONS_KEY)


@mandatory("workload-gpu-sharing", "medium")
def workload_gpu_sharing(cluster: Cluster) -> Findings:
    """Shares of a GPU only where KAI's GPU sharing is on.

    While gpuSharing is off, KAI's admission refuses every pod that asks for a share.
    """
    host = cluster.scheduling
    modes = {kai.sharing for kai in host.kai}
    unclear = not modes or UNKNOWN in modes
    waiting = 0
    for workload in cluster.workloads:
        annotations = pairs(workload.annotations)
        own = next(filter(_OWN_KEY.fullmatch, map(str, annotations)), None)
        key = next((key for key in (FRACTION, MEMORY, DEVICES) if key in annotations), own)
        if key is None or workload.scheduler != KAI:
            continue  # other rules speak of these
        waiting += 1
        if DISABLED in modes:
            yield of_workload(workload, cluster).refuse(
                f"has {key}, but GPU sharing is off in the KAI of {host.name}",
                "set gpuSharing: true there (Helm value global.gpuSharing), or drop"
                f" {key} and ask for whole GPUs",
            )
        elif own and not unclear and NV_FRACTIONS not in modes:
            yield of_workload(workload, cluster).refuse(
                f"has {own}, which only a KAI in mode {NV_FRACTIONS} reads",
                f"write gpu-fraction or gpu-memory, or gpuSharing: {NV_FRACTIONS} for"
                f" the KAI of {host.name}",
            )
    if unclear and waiting and DISABLED not in modes:
        yield of_cluster("KAI", cluster).undecided(
            f"it is known whether GPU sharing is on in {host.name}: {waiting} workload(s) ask for"
            " a share of a GPU"
        )


def _sharing(cluster: Cluster) -> Iterable[tuple[Kai | Team, Place]]:
    yield from ((kai, place.at("gpuSharing")) for kai, place in kais(cluster))
    yield from ((team, of_team(team, "isolation", "level")) for team in cluster.teams)


@mandatory("gpu-sharing-mode", "high", _sharing)
def gpu_sharing_mode(cluster: Cluster, item: Kai | Team, place: Place) -> Findings:
    """A mode of GPU sharing only where KAI's version, the cluster and the isolation have it.

    NonMemoryEnforced leaves GPU memory to agreement. HamiCore and NvFractions enforce it, by
    parts on the nodes: without those, pods that share a GPU stay Pending or share
    without a bound.
    """
    if isinstance(item, Team):
        schedulers = cluster.kai if item.mode == "host" else item.kai
        if item.isolated and any(kai.sharing == HAMI_CORE for kai in schedulers):
            # The isolator mounts its library from the node into each pod.
            yield place.refuse(
                f"is {item.level}, and mode {HAMI_CORE} mounts a library of the node into each pod"
                " that shares a GPU (hostPath), which that level refuses",
                f"write level: off for the team, or mode: {NOT_ENFORCED} for its KAI",
            )
        return
    mode, version = item.sharing, item.version
    if UNKNOWN in (mode, version) or not version:
        return
    if mode not in MODES:
        yield place.refuse(f"is {mode}, which is no mode", f"write {listed(MODES, 'or')}")
    elif not sharing.has_mode(version, mode):
        newest = next(each for each in reversed([*releases.KAI]) if sharing.has_mode(each, mode))
        yield place.refuse(
            f"is {mode}, which KAI has from {sharing.SINCE[mode]} on, and the version is {version}",
            f"write version: {newest}, or mode: {NOT_ENFORCED}",
        )
    elif mode == NV_FRACTIONS and cluster.declared and cluster.name != HOST:
        yield place.refuse(
            f"is {mode}, whose operator works on the nodes themselves, with rights that no team's"
            " pod has",
            f"write mode: {HAMI_CORE} or {NOT_ENFORCED}, or have the team in mode host with a KAI"
            " of the host in this mode",
        )
    elif mode in _NEEDS:
        yield place.warn(f"is {mode}: {_NEEDS[mode]}; nobody ran it with this program")


_NEEDS: Final = {
    NV_FRACTIONS: "pods that share a GPU stay Pending on nodes without NVIDIA's GPU operator"
    f" {sharing.FRACTIONS_OPERATOR}, its NRI plugin in the container runtime and driver"
    f" {sharing.FRACTIONS_DRIVER} or newer, which is not the operator's own (gpu.values:"
    " driver.version)",
    HAMI_CORE: "GPU memory is enforced only with the chart kai-resource-isolator on the host, and"
    " only on nodes that have the label nvidia.com/gpu.memory before KAI starts",
}


def _plugins(cluster: Cluster) -> Iterable[tuple[DevicePlugin, Place]]:
    name = f"plugin of {cluster.name}"
    return ((each, Place("device", name, each.path)) for each in cluster.device_plugins)


@mandatory("gpu-one-sharer", "high", _plugins)
def gpu_one_sharer(cluster: Cluster, plugin: DevicePlugin, place: Place) -> Findings:
    """GPUs are shared by KAI or by the device plugin, not by both.

    Time-slicing and MPS make the device plugin advertise more GPUs than there are; KAI then
    splits those once more, and pods run out of GPU memory.
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
