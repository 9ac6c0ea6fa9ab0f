"""Shares of a GPU only where KAI's GPU sharing is on."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_fleet.declared.unknown import UNKNOWN
from kubectl_fleet.releases.keys import SCHEDULER
from kubectl_fleet.rules.judged import JudgedCluster
from kubectl_fleet.rules.problem import (
    Level,
    Problem,
    Severity,
    mandatory,
    undecided,
    workload_subject,
)

NAME = "workload-gpu-sharing"
LEVEL = Level.MANDATORY
SEVERITY = Severity.MEDIUM
WHY = "While gpuSharing is off, KAI's admission refuses every pod that asks for a share (W4)."
REMEDY = "Switch gpuSharing on for that KAI (global.gpuSharing: true), or ask for whole GPUs."

_SHARES = ("gpu-fraction", "gpu-memory", "gpu-fraction-num-devices")


def check(cluster: JudgedCluster) -> Iterator[Problem]:
    """Workloads with a GPU share against the KAI that schedules them."""
    host = cluster.scheduling
    off = [release for release in host.kai if release.gpu_sharing is False]
    unclear = not host.kai or any(release.gpu_sharing is UNKNOWN for release in host.kai)
    waiting = 0
    for workload in cluster.workloads:
        if workload.scheduler != SCHEDULER or workload.annotations is UNKNOWN:
            continue  # other rules speak of these
        key = next((key for key in _SHARES if key in workload.annotations), None)
        if key is None:
            continue
        if off:
            yield mandatory(
                workload_subject(workload, cluster),
                workload.path,
                f"has {key}, but GPU sharing is off in the KAI of {host.name}; set gpuSharing: true"
                f" there (Helm value global.gpuSharing), or drop {key} and ask for whole GPUs",
            )
        else:
            waiting += 1
    if unclear and waiting and not off:
        yield undecided(
            f"KAI of {host.name}",
            cluster.path,
            f"it is known whether GPU sharing is on in {host.name}:"
            f" {waiting} workload(s) ask for a share of a GPU",
        )
