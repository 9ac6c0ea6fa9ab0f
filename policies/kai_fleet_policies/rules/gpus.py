"""Rules about GPUs: one right request for a share, and one program that shares them."""

import math
import re
from collections.abc import Mapping

from kai_fleet import releases
from kai_fleet.releases import DISABLED, sharing
from kai_fleet.releases.keys import CONTAINER, MPS
from kai_fleet.releases.sharing import NV_FRACTIONS
from kai_fleet.values import UNKNOWN, Maybe, pairs, text
from kai_fleet.wording import listed
from kai_fleet_policies.model.cluster import HOST, ClusterModel
from kai_fleet_policies.model.device_sharing import OF_OTHERS
from kai_fleet_policies.model.installed import Kai, ManagedObject
from kai_fleet_policies.model.pods import PodTemplate
from kai_fleet_policies.rules.rule import (
    Findings,
    Judged,
    Subject,
    cluster_subject,
    each_kai,
    each_workload,
    mandatory,
    name_in_words,
    require_known,
)
from kai_usage.keys import DEVICES, FRACTION, MEMORY
from kai_usage.keys import SCHEDULER as KAI

_MOST_DEVICES = 9999  # as the guard of the pods has it; KAI multiplies in 64 bits
_LEAST_FRACTION = 0.01  # KAI rounds to hundredths what it adds to a queue
# An annotation may have any text: more digits than these cost hours, or are no number.
_FLOAT = re.compile(r"[+-]?([0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?")
_COUNT = re.compile(r"0*[1-9][0-9]{0,17}")


@mandatory("workload-gpu-request", "high", each_workload)
def workload_gpu_request(
    cluster: ClusterModel, workload: PodTemplate, subject: Subject
) -> Findings:
    """A GPU share is requested in one way, with a value that KAI takes.

    KAI's admission refuses such pods, or schedules them wrong where it does not notice.
    """
    annotations = require_known(workload.annotations, "its annotations are known")
    # All that is wrong is found, up to the first UNKNOWN thing; values of keys are the last ones.
    yield from _wrong_values(annotations, subject)
    yield from _wrong_keys(annotations, workload.scheduler, subject)
    if CONTAINER in annotations:
        yield from _container_not_read(cluster.scheduling, subject)
    if FRACTION in annotations or MEMORY in annotations:
        yield from _whole_gpus_besides(workload, subject)
    for key in (FRACTION, MEMORY, DEVICES):
        require_known(annotations.get(key), f"the value of {key} is known")


def _wrong_values(annotations: Mapping[str, object], subject: Subject) -> Findings:
    """Refuse each value that KAI does not take; None and what is not known yet are left out.

    It takes a fraction from 0.01 to less than 1, a positive whole number of MiB, and 1 to 9999
    devices; each may be a text.
    """
    fraction = annotations.get(FRACTION)
    if fraction not in (None, UNKNOWN) and not _LEAST_FRACTION <= _float(fraction) < 1:
        yield subject.refuse(
            f'has gpu-fraction: "{fraction}", which is not a number between 0 and 1',
            f'write for example gpu-fraction: "0.5", or {_LEAST_FRACTION} or more, less of which'
            " KAI counts as nothing; for whole GPUs drop it and write limits: nvidia.com/gpu:"
            ' "1"',
        )
    memory = annotations.get(MEMORY)
    if memory not in (None, UNKNOWN) and not _count(memory):
        yield subject.refuse(
            f'has gpu-memory: "{memory}"',
            'write a positive whole number of MiB, for example gpu-memory: "2000"',
        )
    devices = annotations.get(DEVICES)
    if devices not in (None, UNKNOWN) and not 0 < _count(devices) <= _MOST_DEVICES:
        yield subject.refuse(
            f'has gpu-fraction-num-devices: "{devices}"',
            f'write a positive whole number such as "2", {_MOST_DEVICES} or less',
        )


def _wrong_keys(
    annotations: Mapping[str, object], scheduler: Maybe[str] | None, subject: Subject
) -> Findings:
    """Refuse two requests for a share, and each key about a share without a request.

    The latter only for pods for KAI: raises UnknownValueError if there is such a key, and the
    schedulerName is not known. A key counts with any value, that for MPS only with a `true`.
    """
    if FRACTION in annotations and MEMORY in annotations:
        yield subject.refuse(
            "has both gpu-fraction and gpu-memory",
            "write only one of them",
        )
    if FRACTION in annotations or MEMORY in annotations:
        return
    keys = [key for key in (DEVICES, CONTAINER) if key in annotations]
    if str(annotations.get(MPS)).lower() == "true":
        keys.append(MPS)
    if not keys or require_known(scheduler, "its schedulerName is known") != KAI:
        return  # on pods of other schedulers the short keys may have another meaning
    for key in keys:
        yield subject.refuse(
            f"has {key} without a share of a GPU",
            f'add gpu-fraction: "0.5" or drop {key}',
        )


def _container_not_read(cluster: ClusterModel, subject: Subject) -> Findings:
    """Refuse the name of a container for each KAI that always takes the first container.

    Nothing without a KAI, or for a version that the release table does not have. Raises
    UnknownValueError if a KAI's version is not known. `cluster` is the one that schedules.
    """
    for kai in cluster.kai:
        version = require_known(
            kai.version, f"the KAI version is known: {CONTAINER} works from v0.10"
        )
        release = releases.KAI.get(str(version))
        if release is not None and not release.container_name_annotation:
            yield subject.refuse(
                "has gpu-fraction-container-name, which KAI reads from v0.10 on, and"
                f" {cluster.name} runs {version}",
                "make that container the first one and drop the annotation",
            )


def _whole_gpus_besides(workload: PodTemplate, subject: Subject) -> Findings:
    """Refuse whole GPUs and slices in a container of a pod that asks for a share of a GPU.

    One finding for each resource of each container, also with an amount of 0.

    Raises UnknownValueError if the containers, or the resources of one, are not known.
    """
    for container in require_known(workload.containers, "its containers are known"):
        name = name_in_words(container.name)
        resources = require_known(container.gpus, f"the resources of container {name} are known")
        for resource in resources:
            yield subject.refuse(
                f"asks for a share of a GPU and, in container {name}, for whole GPUs or slices",
                f"drop {resource} there or the annotation",
            )


def _float(value: object) -> float:
    """The number that a value is as a text; NaN for anything else, and for very many digits.

    Infinity for a number that is too large for a float.
    """
    digits = str(value)
    return float(digits) if _FLOAT.fullmatch(digits) else math.nan


def _count(value: object) -> int:
    """The positive whole number that a value is as a text; 0 if it is none, or is 10^18 or more.

    A whole float counts as one.
    """
    digits = str(text(value))
    return int(digits[-18:]) if _COUNT.fullmatch(digits) else 0


@mandatory("workload-gpu-sharing", "medium", each_workload)
def workload_gpu_sharing(
    cluster: ClusterModel, workload: PodTemplate, subject: Subject
) -> Findings:
    """Shares of a GPU only where KAI's GPU sharing is on.

    While gpuSharing is off, KAI's admission refuses every pod that asks for a share.
    """
    annotations = pairs(workload.annotations)  # UNKNOWN ones are a matter of workload-gpu-request
    keys = [key for key in (FRACTION, MEMORY, DEVICES) if key in annotations]
    if not keys or workload.scheduler != KAI:
        return  # workload-scheduler and workload-known-keys speak of these
    scheduling = cluster.scheduling
    # One KAI that is off refuses; without any KAI it is as open as with one of an UNKNOWN mode.
    modes = {kai.sharing for kai in scheduling.kai}
    if DISABLED in modes:
        yield subject.refuse(
            f"has {keys[0]}, but GPU sharing is off in the KAI of {scheduling.name}",
            "set gpuSharing: true there (Helm value global.gpuSharing), or drop"
            f" {keys[0]} and ask for whole GPUs",
        )
    elif not modes or UNKNOWN in modes:
        yield cluster_subject("KAI", cluster).undecided(
            f"it is known whether GPU sharing is on in {scheduling.name}"
        )


@mandatory("gpu-sharing-mode", "high", each_kai)
def gpu_sharing_mode(cluster: ClusterModel, kai: Kai, subject: Subject) -> Findings:
    """A mode of GPU sharing only where KAI's version and the cluster have it.

    NonMemoryEnforced leaves GPU memory to agreement. HamiCore and NvFractions enforce it, by
    parts on the nodes: without those, pods that share a GPU stay Pending or share
    without a bound.
    """
    version = kai.version
    if version is UNKNOWN or not version:
        return  # kai-version-known says so
    mode = require_known(kai.sharing, "its mode of GPU sharing is known")
    if mode not in sharing.SINCE:
        return  # every version has it, or it is no mode
    # One finding: refused if the version lacks it, else if the cluster does, else a warning.
    at_mode = subject.at("gpuSharing")
    if not sharing.has_mode(version, mode):
        newest_first = reversed([*releases.KAI])
        newest = next(release for release in newest_first if sharing.has_mode(release, mode))
        yield at_mode.refuse(
            f"is {mode}, which KAI has from {sharing.SINCE[mode]} on, and the version is {version}",
            f"write version: {newest}, or mode: NonMemoryEnforced",
        )
    elif mode == NV_FRACTIONS and cluster.declared and cluster.name != HOST:
        yield at_mode.refuse(
            f"is {mode}, whose operator works on the nodes themselves, with rights that no team's"
            " pod has",
            "write mode: HamiCore or NonMemoryEnforced, or have the team in mode host with a KAI"
            " of the host in this mode",
        )
    else:
        yield at_mode.warn(
            f"is {mode}, which nobody ran with this program. Without its parts on the nodes pods"
            " stay Pending or share without a bound",
            "make what docs/workloads.md says of it",
        )


def _device_plugins(cluster: ClusterModel) -> Judged[ManagedObject]:
    """The releases that have a device plugin."""
    for release in cluster.objects:
        if release.sharing is not None:
            yield release, Subject("device", f"plugin of {cluster.name}", release.path)


@mandatory("gpu-one-sharer", "high", _device_plugins)
def gpu_one_sharer(cluster: ClusterModel, plugin: ManagedObject, subject: Subject) -> Findings:
    """GPUs are shared by KAI or by the device plugin, not by both.

    Time-slicing and MPS make the device plugin advertise more GPUs than there are; KAI then
    splits those once more, and pods run out of GPU memory.
    """
    if plugin.sharing == "":
        return
    # An UNKNOWN mode of a KAI leaves it undecided before that of the plugin is looked at.
    sharers = _known_owners_of_sharing_kais(cluster)
    if not sharers:
        return
    owners = listed(sharers, "and")
    if plugin.sharing == OF_OTHERS:
        yield subject.warn(
            "cannot decide whether it shares GPUs: its config is a ConfigMap of others, and the KAI"
            f" of {owners} shares them",
            "see that the ConfigMap has no timeSlicing and no mps with more than one replica, or"
            " set gpuSharing: false for that KAI",
        )
        return
    way = require_known(plugin.sharing, "the device plugin's config is known")
    yield subject.refuse(
        f"shares GPUs by {way} while the KAI of {owners} shares them too",
        "remove the sharing section from the device plugin's config, or set gpuSharing: false for"
        " that KAI",
    )


def _known_owners_of_sharing_kais(cluster: ClusterModel) -> list[str]:
    """Whose KAI shares GPUs, in words: `the host` for the cluster's own, then `team X` for each.

    Those of teams are inside their vClusters. Empty if none shares GPUs, or there is no KAI.

    Raises:
        UnknownValueError: Of one KAI it is not known, also if others are known to share.
    """
    kais = [("the host", kai) for kai in cluster.kai]
    for team in cluster.teams:
        kais += [(f"team {name_in_words(team.name)}", kai) for kai in team.kai]
    until = "it is known whether KAI shares GPUs"
    return [owner for owner, kai in kais if require_known(kai.sharing, until) != DISABLED]
