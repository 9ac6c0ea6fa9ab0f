"""What a team holds on a host with KAI, where its ResourceQuota does not count shares (T13)."""

from __future__ import annotations

from collections.abc import Iterator

from kai_fleet_cli.doctor.cluster_state import Snapshot
from kai_fleet_cli.doctor.finding import Finding

NAME = "gpu-quota"


def check(look: Snapshot) -> Iterator[Finding]:
    """Every team whose pods the host's KAI places: a shared GPU is reserved by a pod of KAI's."""
    host = look.host
    if "pods" in host.unreadable:
        return
    for team in look.teams.values():
        wanted = team.wanted
        if not wanted.declared or wanted.mode != "host" or wanted.gpus is None:
            continue
        pods = [pod for pod in host.usage.pods if pod.namespace == wanted.namespace]
        held = sum(pod.amounts.gpu for pod in pods if not pod.waits)
        if held > wanted.gpus + 1e-6:
            queue = wanted.queue or "its queue"
            yield host.broken(
                NAME,
                f"GPUs of team {wanted.name}",
                f"its pods hold {held:g}, and {wanted.gpus} are declared: the ResourceQuota does"
                " not count shares of GPUs, and only the queue's limit bounds them",
                f"write gpu.limit: {wanted.gpus} for {queue} at {host.wanted.queues_key}, then"
                f" {host.update}; or raise {wanted.key}.gpus",
            )
