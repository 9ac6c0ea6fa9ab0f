"""Whether a team's workloads can all run at once within the GPUs that it may hold."""

import math
from collections.abc import Iterable, Mapping

from kai_fleet.settings.sections.gpu_kinds import whole
from kai_fleet.settings.sections.gpu_share import GpuShare
from kai_fleet.settings.sections.teams import TeamSettings
from kai_fleet.settings.sections.workloads import Workload


def too_many_gpus(
    team: TeamSettings, workloads: Mapping[str, Workload], slices: Mapping[str, int]
) -> str | None:
    """What to write where the team's bound keeps some of its workloads waiting for good.

    Those that an update does not wait for (readySeconds: 0) may wait. `slices` are the team's.
    """
    asking = {
        name: workload
        for name, workload in workloads.items()
        if workload.gpu is not None and workload.ready_seconds != 0
    }
    sliced: dict[str, list[str]] = {}
    for name, workload in asking.items():
        sliced.setdefault((workload.gpu and workload.gpu.slice) or "", []).append(name)
    for kind, own in sliced.items():
        needed = sum((it.gpu.devices or 0) * it.replicas for n in own if (it := asking[n]).gpu)
        if kind and needed > slices.get(kind, 0):
            return (
                f"has {slices.get(kind, 0)} {kind}, and its workloads need {needed} at once"
                f" ({', '.join(own)}): write {{{kind}: {needed}}}, or readySeconds: 0 for those"
                " that may wait"
            )
    unsliced = sliced.get("", [])
    needed, there = gpus_at_once(team, [asking[n] for n in unsliced]), whole(team.gpus)
    if needed <= there:
        return None
    names = ", ".join(unsliced)
    has, more = f"is {there}", f"gpus: {needed}"
    if isinstance(team.gpus, dict):
        has, more = f"has {there} whole GPUs", f"{needed} for those"
    return (
        f"{has}, and its workloads need {needed} at once ({names}): write {more},"
        " or readySeconds: 0 for those that may wait for a GPU"
    )


def gpus_at_once(team: TeamSettings, workloads: Iterable[Workload]) -> int:
    """The GPUs that count against the team's bound, at the least.

    A GPU that pods share counts as one where the team's own KAI reserves it; the host's KAI does
    that in a namespace of its own, beyond the team's bound.
    """
    whole, shared = 0, 0.0
    for workload in workloads:
        if workload.gpu is not None:
            whole += (workload.gpu.devices or 0) * workload.replicas
            shared += _part(workload.gpu) * workload.replicas
    counted = math.ceil(round(shared, 6)) if team.scheduler.mode == "virtual" else 0
    return whole + counted


def _part(share: GpuShare) -> float:
    """Of GPUs that others may share; next to nothing for an amount of memory, whose GPU is open."""
    if not share.shared:
        return 0.0
    return (share.fraction or 1e-3) * (share.on_devices or 1)
