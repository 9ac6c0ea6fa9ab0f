"""GPUs that a pod asks for, beside what its queues, its nodes and its team may give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kai_fleet.kai.keys import POD_GROUP
from kai_fleet_cli.doctor.checks.nodes import gpus, ready
from kai_fleet_cli.doctor.cluster_state import ClusterState
from kai_fleet_cli.doctor.declared import DeclaredTeam
from kai_fleet_cli.doctor.objects import KubeObject
from kai_fleet_cli.gpu_usage.amounts import UNLIMITED

_A_LITTLE = 1e-6


class Reason(NamedTuple):
    """Why a pod waits. `same` names the cause where amounts in it differ from pod to pod."""

    cause: str
    fix: str
    same: str = ""


def never(
    scheduling: ClusterState, cluster: ClusterState, pod: KubeObject, team: DeclaredTeam | None
) -> Reason | None:
    """Why a pod never runs, whoever else ends.

    `scheduling` is the cluster whose KAI places it.
    """
    wants, words = _together(cluster, pod)
    for name, limit, _ in _limits(scheduling, cluster, pod):
        if wants > limit + _A_LITTLE:
            return Reason(
                f"{words}, and queue {name} may hold at most {limit:g}: it never runs",
                f"ask for at most {limit:g}, or {_raise(scheduling, name, wants, team)}",
                f"never {name}",
            )
    if team is not None and team.declared and team.gpus is not None and wants > team.gpus:
        return Reason(
            f"{words}, and team {team.name} may hold at most {team.gpus}: it never runs",
            f"ask for at most {team.gpus}, or raise {team.key}.gpus",
            f"never team {team.name}",
        )
    return too_large(cluster, pod)


def too_large(cluster: ClusterState, pod: KubeObject) -> Reason | None:
    """No node has as many GPUs as it asks for, even empty."""
    use = cluster.use_of(pod)
    if use is None or "nodes" in cluster.unreadable:
        return None
    wants = use.gpu.whole or (use.gpu.devices if use.gpu.shared else 0)
    resource = cluster.wanted.gpu_resource
    most = max((gpus(node, resource) for node in cluster.all("nodes") if ready(node)), default=0.0)
    if wants <= most:
        return None
    return Reason(
        f"it asks for {wants:g} GPUs, and no Ready node has more than {most:g}: it never runs",
        f"ask for at most {most:g} in one pod, or add larger nodes to the pool"
        if most
        else "add nodes with GPUs to the pool, or ask for none",
        "never node",
    )


def full(
    scheduling: ClusterState, cluster: ClusterState, pod: KubeObject, team: DeclaredTeam | None
) -> Reason | None:
    """Its queue, or one above it, has no GPU left that it may give."""
    wants, words = _together(cluster, pod)
    for name, limit, held in _limits(scheduling, cluster, pod):
        if held + wants > limit + _A_LITTLE:
            return Reason(
                f"{words}, and queue {name} holds {held:g} of at most {limit:g}",
                "wait for a pod of that queue to end, ask for less, or"
                f" {_raise(scheduling, name, held + wants, team)}",
                f"full {name}",
            )
    return None


def _together(cluster: ClusterState, pod: KubeObject) -> tuple[float, str]:
    """The GPUs that have to be free at once for a pod to run, with its gang; and the sentence."""
    own, name = _gpus(cluster, pod), pod.annotations.get(POD_GROUP)
    group = cluster.named("podgroups", name, pod.namespace) if name else None
    least = int(group.spec.get("minMember") or 1) if group else 1
    if least < 2:
        return own, f"it asks for {own:g} GPUs"
    amounts = sorted(
        _gpus(cluster, each)
        for each in cluster.within("pods", pod.namespace)
        if each.annotations.get(POD_GROUP) == name
    )
    wants = sum(amounts[:least]) + own * max(0, least - len(amounts))
    return wants, f"its group of {least} pods asks for {wants:g} GPUs together"


def _gpus(cluster: ClusterState, pod: KubeObject) -> float:
    use = cluster.use_of(pod)
    return use.amounts.gpu if use is not None else 0.0


def _limits(
    scheduling: ClusterState, cluster: ClusterState, pod: KubeObject
) -> Iterator[tuple[str, float, float]]:
    """The queues of a pod, leaf first, that have a limit: name, limit, and what is held below."""
    use = cluster.use_of(pod)
    if use is None or not use.amounts.gpu:
        return
    queues, name = scheduling.usage.queues, use.queue
    while name is not None and name in queues:
        share = queues[name].share("gpu")
        if share.limit != UNLIMITED:
            yield name, share.limit, share.in_use
        name = queues[name].parent


def _raise(cluster: ClusterState, queue: str, to: float, team: DeclaredTeam | None) -> str:
    """What raises a queue's limit: where it is declared, or a command for one made by hand."""
    wanted = cluster.wanted.queues.get(queue)
    if wanted is None and cluster.wanted.declared:
        patch = f'{{"spec": {{"resources": {{"gpu": {{"limit": {to:g}}}}}}}}}'
        return f"raise its limit: `{cluster.kubectl} patch queue {queue} --type merge -p '{patch}'`"
    if wanted is not None and team is not None and not wanted.get("parentQueue"):
        gpu = (wanted.get("resources") or {}).get("gpu") or {}
        if gpu.get("limit") == team.gpus:
            return f"raise {team.key}.gpus"
    # Without a stack's file nobody knows who declares it.
    return f"raise gpu.limit of {queue} at {cluster.wanted.queues_key}"
