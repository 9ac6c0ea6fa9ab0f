"""GPUs that a pod asks for, beside what its queues, its nodes and its team may give."""

from __future__ import annotations

from collections.abc import Iterator

from kai_fleet.kai.keys import POD_GROUP
from kai_fleet_cli.doctor.checks.nodes import gpus, ready
from kai_fleet_cli.doctor.cluster_state import ClusterState
from kai_fleet_cli.doctor.declared import DeclaredTeam
from kai_fleet_cli.doctor.objects import Object, annotations_of, name_of, namespace_of, spec
from kai_fleet_cli.usage.amounts import UNLIMITED

# Cause, fix, and what names the cause where amounts in it differ from pod to pod.
Why = tuple[str, str, str]

_A_LITTLE = 1e-6


def never(
    scheduling: ClusterState, cluster: ClusterState, pod: Object, team: DeclaredTeam | None
) -> Why | None:
    """Why a pod never runs, whoever else ends.

    `scheduling` is the cluster whose KAI places it.
    """
    asked, words = together(cluster, pod)
    for name, limit, _ in _limits(scheduling, cluster, pod):
        if asked > limit + _A_LITTLE:
            return (
                f"{words}, and queue {name} may hold at most {limit:g}: it never runs",
                f"ask for at most {limit:g}, or {_raised(scheduling, name, asked, team)}",
                f"never {name}",
            )
    if team is not None and team.declared and team.gpus is not None and asked > team.gpus:
        return (
            f"{words}, and team {team.name} may hold at most {team.gpus}: it never runs",
            f"ask for at most {team.gpus}, or raise {team.key}.gpus",
            f"never team {team.name}",
        )
    return too_large(cluster, pod)


def too_large(cluster: ClusterState, pod: Object) -> Why | None:
    """No node has as many GPUs as it asks for, even empty."""
    use = cluster.uses.get((namespace_of(pod), name_of(pod)))
    if use is None or "nodes" in cluster.unreadable:
        return None
    asked = use.gpu.whole or (use.gpu.devices if use.gpu.shared else 0)
    resource = cluster.wanted.gpu_resource
    most = max((gpus(node, resource) for node in cluster.all("nodes") if ready(node)), default=0.0)
    if asked <= most:
        return None
    return (
        f"it asks for {asked:g} GPUs, and no Ready node has more than {most:g}: it never runs",
        f"ask for at most {most:g} in one pod, or add larger nodes to the pool"
        if most
        else "add nodes with GPUs to the pool, or ask for none",
        "never node",
    )


def full(
    scheduling: ClusterState, cluster: ClusterState, pod: Object, team: DeclaredTeam | None
) -> Why | None:
    """Its queue, or one above it, has no GPU left that it may give."""
    asked, words = together(cluster, pod)
    for name, limit, held in _limits(scheduling, cluster, pod):
        if held + asked > limit + _A_LITTLE:
            return (
                f"{words}, and queue {name} holds {held:g} of at most {limit:g}",
                "wait for a pod of that queue to end, ask for less, or"
                f" {_raised(scheduling, name, held + asked, team)}",
                f"full {name}",
            )
    return None


def together(cluster: ClusterState, pod: Object) -> tuple[float, str]:
    """The GPUs that have to be free at once for a pod to run, with its gang; and the sentence."""
    own = _asked(cluster, pod)
    group = annotations_of(pod).get(POD_GROUP)
    found = cluster.named("podgroups", group, namespace_of(pod)) if group else None
    least = int(spec(found).get("minMember") or 1) if found else 1
    if least < 2:
        return own, f"it asks for {own:g} GPUs"
    amounts = sorted(
        _asked(cluster, each)
        for each in cluster.within("pods", namespace_of(pod))
        if annotations_of(each).get(POD_GROUP) == group
    )
    asked = sum(amounts[:least]) + own * max(0, least - len(amounts))
    return asked, f"its group of {least} pods asks for {asked:g} GPUs together"


def _asked(cluster: ClusterState, pod: Object) -> float:
    use = cluster.uses.get((namespace_of(pod), name_of(pod)))
    return use.amounts.gpu if use is not None else 0.0


def _limits(
    scheduling: ClusterState, cluster: ClusterState, pod: Object
) -> Iterator[tuple[str, float, float]]:
    """The queues of a pod, leaf first, that have a limit: name, limit, and what is held below."""
    use = cluster.uses.get((namespace_of(pod), name_of(pod)))
    if use is None or not use.amounts.gpu:
        return
    queues = scheduling.usage.queues
    name = use.queue
    while name is not None and name in queues:
        share = queues[name].share("gpu")
        if share.limit != UNLIMITED:
            yield name, share.limit, share.in_use
        name = queues[name].parent


def _raised(cluster: ClusterState, queue: str, to: float, team: DeclaredTeam | None) -> str:
    """What raises a queue's limit: where it is declared, or a command for one made by hand."""
    wanted = cluster.wanted.queue_specs.get(queue)
    if wanted is None and cluster.wanted.declared:
        patch = f'{{"spec": {{"resources": {{"gpu": {{"limit": {to:g}}}}}}}}}'
        return f"raise its limit: `{cluster.kubectl} patch queue {queue} --type merge -p '{patch}'`"
    if wanted is None:  # without a stack's file nobody knows who declares it
        return f"raise gpu.limit of {queue} at {cluster.wanted.queues_key}"
    limit = ((wanted.get("resources") or {}).get("gpu") or {}).get("limit")
    if team is not None and not wanted.get("parentQueue") and limit == team.gpus:
        return f"raise {team.key}.gpus"
    return f"raise gpu.limit of {queue} at {cluster.wanted.queues_key}"
