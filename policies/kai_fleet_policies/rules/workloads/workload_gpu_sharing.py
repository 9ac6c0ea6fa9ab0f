"""Shares of a GPU only where KAI's GPU sharing is on."""

import re
from typing import Final

from kai_fleet.fleet.cluster import Cluster
from kai_fleet.releases import DISABLED
from kai_fleet.releases.keys import DEVICES, FRACTION, MEMORY, SCHEDULER
from kai_fleet.releases.sharing import FRACTIONS_KEY, NV_FRACTIONS
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.problem import Level, ProblemPlace, Problems, Severity, of_workload

LEVEL = Level.MANDATORY
SEVERITY = Severity.MEDIUM
WHY = "While gpuSharing is off, KAI's admission refuses every pod that asks for a share (W4)."
REMEDY = "Switch gpuSharing on for that KAI, or into the mode that reads the key."

_SHARES = (FRACTION, MEMORY, DEVICES)
_OWN_KEY: Final = re.compile(FRACTIONS_KEY)


def check(cluster: Cluster) -> Problems:
    """Workloads with a GPU share against the KAI that schedules them."""
    host = cluster.scheduling
    modes = {release.sharing for release in host.kai}
    off, unclear = DISABLED in modes, not modes or UNKNOWN in modes
    fractions = unclear or NV_FRACTIONS in modes
    waiting = 0
    for workload in cluster.workloads:
        if workload.scheduler != SCHEDULER or workload.annotations is UNKNOWN:
            continue  # other rules speak of these
        key = next((key for key in _SHARES if key in workload.annotations), None)
        own = next(filter(_OWN_KEY.fullmatch, map(str, workload.annotations)), None)
        if own and not fractions and not off:
            yield of_workload(workload, cluster).mandatory(
                f"has {own}, which only a KAI in mode {NV_FRACTIONS} reads; write gpu-fraction or"
                f" gpu-memory, or gpuSharing: {{mode: {NV_FRACTIONS}}} for the KAI of {host.name}"
            )
        key = key or own
        if key is None:
            continue
        if off:
            yield of_workload(workload, cluster).mandatory(
                f"has {key}, but GPU sharing is off in the KAI of {host.name}; set gpuSharing: true"
                f" there (Helm value global.gpuSharing), or drop {key} and ask for whole GPUs"
            )
        else:
            waiting += 1
    if unclear and waiting and not off:
        yield ProblemPlace(f"KAI of {host.name}", cluster.path).undecided(
            f"it is known whether GPU sharing is on in {host.name}:"
            f" {waiting} workload(s) ask for a share of a GPU"
        )
