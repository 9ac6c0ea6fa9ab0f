"""Rules about GPUs: one right request for a share, and one who shares them."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kai_fleet import releases
from kai_fleet.releases import DISABLED, sharing
from kai_fleet.releases.keys import CONTAINER, DEVICES, FRACTION, MEMORY, MPS
from kai_fleet.releases.keys import SCHEDULER as KAI
from kai_fleet.releases.sharing import NV_FRACTIONS
from kai_fleet.values import UNKNOWN, pairs, text
from kai_fleet.wording import listed
from kai_fleet_policies.model.cluster import HOST, Cluster, Kai, ManagedObject
from kai_fleet_policies.model.device_sharing import OF_OTHERS
from kai_fleet_policies.model.pods import PodTemplate
from kai_fleet_policies.rules.rule import (
    Findings,
    Place,
    called,
    each_kai,
    each_workload,
    known,
    mandatory,
    of_cluster,
    row,
)

_MOST_DEVICES: Final = 9999  # as the guard of the pods has it; KAI multiplies in 64 bits
_LEAST: Final = 0.01  # KAI rounds to hundredths what it adds to a queue
# Whoever makes a pod may write anything: more digits than these cost hours, or are no number.
_FLOAT: Final = re.compile(r"[+-]?([0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?")
_COUNT: Final = re.compile(r"0*[1-9][0-9]{0,17}")


@mandatory("workload-gpu-request", "high", each_workload)
def workload_gpu_request(cluster: Cluster, workload: PodTemplate, place: Place) -> Findings:
    """A GPU share is requested in one way, with a value that KAI takes.

    KAI's admission refuses such pods, or schedules them wrong where it does not notice.
    """
    annotations = known(workload.annotations, "its annotations are known")
    yield from (place.refuse(cause, fix) for cause, fix in _wrong(annotations, workload.scheduler))
    if CONTAINER in annotations:
        for kai in cluster.scheduling.kai:
            version = known(kai.version, f"the KAI version is known: {CONTAINER} works from v0.10")
            release = releases.KAI.get(str(version))
            if release is not None and not release.container_name_annotation:
                where = {"cluster": cluster.scheduling.name, "version": version}
                yield place.refuse(*row("gpu-container", **where))
    if FRACTION in annotations or MEMORY in annotations:
        for container in known(workload.containers, "its containers are known"):
            name = called(container.name)
            for resource in known(container.gpus, f"the resources of container {name} are known"):
                yield place.refuse(*row("gpu-twice", container=name, resource=resource))
    for key in (FRACTION, MEMORY, DEVICES):
        known(annotations.get(key), f"the value of {key} is known")


def _wrong(annotations: Mapping[str, Any], scheduler: Any) -> Iterator[tuple[str, str]]:
    """What is wrong with the annotations that are known, and what to write."""
    fraction, memory, devices = (annotations.get(key) for key in (FRACTION, MEMORY, DEVICES))
    digits = str(fraction)
    value = float(digits) if _FLOAT.fullmatch(digits) else math.nan
    if fraction not in (None, UNKNOWN) and not _LEAST <= value < 1:
        yield row("gpu-fraction", value=fraction, least=_LEAST)
    if memory not in (None, UNKNOWN) and not _count(memory):
        yield row("gpu-memory", value=memory)
    if devices not in (None, UNKNOWN) and not 0 < _count(devices) <= _MOST_DEVICES:
        yield row("gpu-devices", value=devices, most=_MOST_DEVICES)
    if FRACTION in annotations and MEMORY in annotations:
        yield row("gpu-both")
    elif not annotations.keys() & {FRACTION, MEMORY} and scheduler == KAI:
        # On pods of other schedulers the short keys may have another meaning.
        mps = str(annotations.get(MPS)).lower() == "true"
        for key in (*(each for each in (DEVICES, CONTAINER) if each in annotations), *[MPS] * mps):
            yield row("gpu-no-share", key=key)


def _count(value: object) -> int:
    """A positive whole number; 0 for anything else."""
    digits = str(text(value))
    return int(digits[-18:]) if _COUNT.fullmatch(digits) else 0


@mandatory("workload-gpu-sharing", "medium", each_workload)
def workload_gpu_sharing(cluster: Cluster, workload: PodTemplate, place: Place) -> Findings:
    """Shares of a GPU only where KAI's GPU sharing is on.

    While gpuSharing is off, KAI's admission refuses every pod that asks for a share.
    """
    host, annotations = cluster.scheduling, pairs(workload.annotations)
    keys = [key for key in (FRACTION, MEMORY, DEVICES) if key in annotations]
    if not keys or workload.scheduler != KAI:
        return  # other rules speak of these
    modes = {kai.sharing for kai in host.kai}
    if DISABLED in modes:
        yield place.refuse(*row("gpu-sharing-off", key=keys[0], cluster=host.name))
    elif not modes or UNKNOWN in modes:
        yield of_cluster("KAI", cluster).undecided(
            f"it is known whether GPU sharing is on in {host.name}"
        )


@mandatory("gpu-sharing-mode", "high", each_kai)
def gpu_sharing_mode(cluster: Cluster, kai: Kai, place: Place) -> Findings:
    """A mode of GPU sharing only where KAI's version and the cluster have it.

    NonMemoryEnforced leaves GPU memory to agreement. HamiCore and NvFractions enforce it, by
    parts on the nodes: without those, pods that share a GPU stay Pending or share
    without a bound.
    """
    mode, version, place = kai.sharing, kai.version, place.at("gpuSharing")
    if mode not in sharing.SINCE or version is UNKNOWN or not version:
        return
    if not sharing.has_mode(version, mode):
        newest = next(each for each in reversed([*releases.KAI]) if sharing.has_mode(each, mode))
        values = {"mode": mode, "since": sharing.SINCE[mode], "version": version}
        yield place.refuse(*row("gpu-mode-unknown", **values, newest=newest))
    elif mode == NV_FRACTIONS and cluster.declared and cluster.name != HOST:
        yield place.refuse(*row("gpu-mode-of-host", mode=mode))
    else:
        yield place.warn(*row("gpu-mode-untried", mode=mode))


def _plugins(cluster: Cluster) -> Iterable[tuple[ManagedObject, Place]]:
    name, every = f"plugin of {cluster.name}", cluster.objects
    return ((o, Place("device", name, o.path)) for o in every if o.sharing is not None)


@mandatory("gpu-one-sharer", "high", _plugins)
def gpu_one_sharer(cluster: Cluster, plugin: ManagedObject, place: Place) -> Findings:
    """GPUs are shared by KAI or by the device plugin, not by both.

    Time-slicing and MPS make the device plugin advertise more GPUs than there are; KAI then
    splits those once more, and pods run out of GPU memory.
    """
    modes = [("the host", kai.sharing) for kai in cluster.kai]
    modes += [
        (f"team {called(team.name)}", kai.sharing) for team in cluster.teams for kai in team.kai
    ]
    if plugin.sharing == "":
        return
    until = "it is known whether KAI shares GPUs"
    sharers = [owner for owner, mode in modes if known(mode, until) != DISABLED]
    if sharers and plugin.sharing == OF_OTHERS:
        yield place.warn(*row("gpu-sharing-of-others", owners=listed(sharers, "and")))
    elif sharers:
        way = known(plugin.sharing, "the device plugin's config is known")
        yield place.refuse(*row("gpu-two-sharers", way=way, owners=listed(sharers, "and")))
