"""Pods that share a GPU: sharing is on, each has its GPU group, the group its reservation pod."""

from __future__ import annotations

from collections.abc import Iterator

from kai_fleet.kai.keys import FRACTION, KAI_NAMESPACE, MEMORY
from kai_fleet_cli.doctor.checks.kai.kai_parts import made_again
from kai_fleet_cli.doctor.cluster_state import RESERVATIONS, ClusterState, Snapshot
from kai_fleet_cli.doctor.finding import Finding
from kai_fleet_cli.doctor.known_messages import meaning
from kai_fleet_cli.doctor.objects import (
    Object,
    annotations_of,
    condition,
    containers,
    labels_of,
    name_of,
    pod_subject,
    spec,
    status,
)
from kai_fleet_cli.usage.requests import GROUP, groups_of

NAME = "gpu-sharing"
RESERVATION = "reservation"
_GPU_INDEX = "run.ai/reserve_for_gpu_index"
_FLAG = "--gpu-sharing-enabled="
_PATIENCE = 60.0  # KAI waits 40 s for a reservation pod


def check(look: Snapshot) -> Iterator[Finding]:
    """Every cluster that runs KAI."""
    for cluster in look.with_kai:
        yield from _switched_on(cluster)
        yield from _groups(cluster)
        yield from _reservations(cluster)


def shares_gpu(pod: Object) -> bool:
    """Whether a pod asks for a share of a GPU in a way that KAI reads."""
    return FRACTION in annotations_of(pod) or MEMORY in annotations_of(pod)


def enabled(cluster: ClusterState) -> bool | None:
    """Whether this KAI lets pods share GPUs, as it was told; None where nothing says so."""
    config = cluster.named("configs", "kai-config")
    told = (spec(config).get("admission") or {}).get("gpuSharing") if config else None
    if told is not None:
        return bool(told)
    for name in ("admission", "binder"):
        item = cluster.named("deployments", name, KAI_NAMESPACE)
        for container in containers(item) if item else []:
            for argument in container.get("args") or []:
                if str(argument).startswith(_FLAG):
                    return str(argument).removeprefix(_FLAG) == "true"
    return None


def _switched_on(cluster: ClusterState) -> Iterator[Finding]:
    sharing = [pod for pod in cluster.kai_pods if shares_gpu(pod)]
    now = enabled(cluster)
    if now is None:
        return
    if cluster.wanted.declared and cluster.wanted.gpu_sharing:
        fix = made_again(cluster)  # somebody changed it by hand
    else:
        fix = f"write gpuSharing: true at {cluster.wanted.key}, then {cluster.update}"
    if not now and (sharing or (cluster.wanted.declared and cluster.wanted.gpu_sharing)):
        cause = "it is off"
        if sharing:
            cause += f", and {len(sharing)} pods ask for a share: new ones are refused"
        yield cluster.broken(NAME, "GPU sharing", cause, fix)
    else:
        yield cluster.well(NAME, "GPU sharing")


def _groups(cluster: ClusterState) -> Iterator[Finding]:
    members: dict[str, list[Object]] = {}
    for pod in cluster.kai_pods:
        if not shares_gpu(pod) or status(pod).get("phase") != "Running":
            continue
        groups = groups_of(labels_of(pod))
        if not groups:
            yield cluster.broken(
                NAME,
                pod_subject(pod),
                f"it runs with a share of a GPU and has no label {GROUP}: KAI does not count it",
                f"{cluster.deleted([pod])}, so that it is made again and KAI places it",
            )
        for group in groups:
            members.setdefault(group, []).append(pod)
    reserved = {labels_of(pod).get(GROUP) for pod in cluster.within("pods", RESERVATIONS)}
    for group, pods in members.items():
        names = ", ".join(sorted(name_of(pod) for pod in pods))
        nodes = {spec(pod).get("nodeName") for pod in pods}
        total = sum(_fraction(pod) for pod in pods)
        if group not in reserved:
            yield cluster.broken(
                RESERVATION,
                f"GPU group {group}",
                f"no reservation pod holds its GPU, which is given to others too ({names})",
                f"{cluster.deleted(pods)}, so that they are made again",
            )
        elif total > 1.0001 or len(nodes) > 1:
            what = f"add up to {total:g} GPUs" if total > 1.0001 else f"are on {len(nodes)} nodes"
            yield cluster.broken(
                NAME,
                f"GPU group {group}",
                f"its pods {what}: {names}",
                f"delete one of them, so that it is placed anew: {cluster.deleted(pods[-1:])}",
            )
        else:
            yield cluster.well(NAME, f"GPU group {group} ({names})")


def _fraction(pod: Object) -> float:
    try:
        return float(annotations_of(pod).get(FRACTION, 0))
    except ValueError:
        return 0.0


def _reservations(cluster: ClusterState) -> Iterator[Finding]:
    users = {group for pod in cluster.kai_pods for group in groups_of(labels_of(pod))}
    for pod in cluster.within("pods", RESERVATIONS):
        subject = f"reservation pod {name_of(pod)}"
        phase = status(pod).get("phase")
        remove = cluster.deleted([pod])
        if cluster.age(pod) < _PATIENCE:
            continue
        if phase != "Running":
            yield cluster.broken(
                RESERVATION, subject, f"it is {phase}: {_why(cluster, pod)}", remove
            )
        elif not annotations_of(pod).get(_GPU_INDEX):
            yield cluster.broken(
                RESERVATION,
                subject,
                "it runs and has not found its GPU: the pods that are to share it wait, and are"
                " given up after 40 s",
                "it must see exactly one GPU: set the RuntimeClass nvidia, or the container"
                f" runtime's default; then {remove}",
            )
        elif labels_of(pod).get(GROUP) not in users:
            yield cluster.warning(
                RESERVATION,
                subject,
                "it holds a whole GPU that no pod shares",
                remove,
            )
        else:
            yield cluster.well(RESERVATION, subject)


def _why(cluster: ClusterState, pod: Object) -> str:
    said = [str(event.get("message")) for event in cluster.events_of(pod)]
    said.append(str(condition(pod, "PodScheduled").get("message") or ""))
    said.append(str(status(pod).get("message") or ""))
    for text in filter(None, said):
        known = meaning(text)
        if known is not None:
            return cluster.filled_in(known.cause)
    return next(filter(None, said), "nothing says why")
