"""Shared GPUs: the mode is the declared one, and the nodes have what it needs; each pod has its GPU
group, the group its reservation pod.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from kai_fleet.fleet.model import HOST
from kai_fleet.kube.objects import KubeObject
from kai_fleet.kube.pods import (
    GROUP,
    MEMORY_LABEL,
    RESERVATIONS,
    gpu_memory,
    groups_of,
    numbers,
)
from kai_fleet.releases import DISABLED
from kai_fleet.releases.keys import KAI_NAMESPACE
from kai_fleet.releases.sharing import (
    FRACTIONS_DRIVER,
    FRACTIONS_OPERATOR,
    HAMI_CORE,
    NOT_ENFORCED,
    NV_FRACTIONS,
    of_switch,
)
from kai_fleet.settings.sections.platform import NVIDIA
from kai_fleet.values import value_at
from kai_fleet_cli.doctor.checks.kai.kai_parts import make_again
from kai_fleet_cli.doctor.cluster_state import ClusterState, Findings, Snapshot
from kai_fleet_cli.usage import GPU_INDEX

RESERVATION = "reservation"  # findings about the pods that hold shared GPUs
_FLAG = "--gpu-sharing-enabled="
_MAP = "runai/shared-gpu-configmap"  # KAI's admission writes it, with a name of its own
_CLASS = "nvidia"
# Where the charts of NVIDIA's GPU operator and device plugin are installed by this program.
GPU_STACK: Final = frozenset({"gpu-operator", "nvidia-device-plugin"})
_ISOLATOR: Final = "kai-resource-isolator"
# What the fractioning operator says of a node; it had another name in its first versions.
_FRACTIONS_READY: Final = ("gpu-fractioning.nvidia.com/Ready", "gpu-sharing.nvidia.com/Ready")
_PATIENCE = 60.0  # seconds; KAI waits 40 for a reservation pod


def check(snapshot: Snapshot) -> Findings:
    """Every cluster that runs KAI."""
    for cluster in snapshot.with_kai:
        yield from _mode(cluster)
        yield from _enforced(snapshot, cluster)
        yield from _groups(cluster)
        yield from _reservations(cluster)


def check_maps(snapshot: Snapshot) -> Findings:
    """Pods that name one ConfigMap of KAI's: each of them may see the GPU of the other (T17).

    Those of each team on the host, where they arrive from every KAI.
    """
    for namespace in (team.wanted.namespace for team in snapshot.teams.values()):
        named: dict[str, list[str]] = defaultdict(list)
        for pod in snapshot.host.within("pods", namespace):
            if not pod.ended and _MAP in pod.annotations:
                named[pod.annotations[_MAP]].append(pod.name)
        for config_map, pods in sorted(named.items()):
            if len(pods) > 1:
                yield snapshot.host.warning(
                    f"pods {', '.join(sorted(pods))} in namespace {namespace}",
                    f"they name one ConfigMap of KAI's, {config_map}, in {_MAP}: each may see the"
                    " GPU of the other",
                    "have the team make them anew inside its vCluster, without that annotation: KAI"
                    " writes it",
                )


def check_runtime_class(snapshot: Snapshot) -> Findings:
    """RuntimeClass `nvidia`, which fraction pods and reservation pods name (V8): on the host where
    KAI shares GPUs anywhere, and in each cluster in which it does.
    """
    host, subject = snapshot.host, f"RuntimeClass {_CLASS}"
    sharing = [
        cluster
        for cluster in snapshot.with_kai
        if cluster.wanted.gpu_sharing
        and cluster.wanted.gpu_resource == NVIDIA
        and _names_class(cluster)
    ]
    on_host = "runtimeclasses" in host.unreadable or host.named("runtimeclasses", _CLASS)
    for cluster in [host, *(it for it in sharing if it is not host)] if sharing else []:
        if "runtimeclasses" in cluster.unreadable:
            continue
        if cluster.named("runtimeclasses", _CLASS) is not None:
            yield cluster.well(subject)
        elif cluster is host and host.name == HOST:
            yield cluster.broken(
                subject,
                "it is not there: reservation pods of shared GPUs name it, and are rejected",
                _make_class(cluster),
            )
        elif cluster is host or on_host:  # vClusters have theirs from the host
            yield cluster.broken(
                subject,
                "it is not there: reservation pods are rejected, and fraction pods wait for them",
                "the vCluster takes it over from the host: leave sync.fromHost.runtimeClasses of"
                f" the vCluster's values on, then {cluster.apply}",
            )


def _make_class(host: ClusterState) -> str:
    """What makes RuntimeClass `nvidia`, and never a second device plugin."""
    if not host.device_plugins:
        return (
            "set kai-fleet:gpu.provider to operator or device-plugin, which makes it,"
            f" then {host.apply}"
        )
    plugin = host.device_plugins[0]
    other = (
        f"add no plugin beside DaemonSet {plugin}: make the class with handler nvidia; or, where"
        ' the nodes\' runtime shows GPUs without it (GKE, Bottlerocket), write "" at'
        " binder.runtimeClassName of KAI's values"
    )
    if plugin.partition("/")[0] not in GPU_STACK:
        return other
    return f"if this stack installed {plugin} (kai-fleet:gpu.provider), {host.update}; else {other}"


def _names_class(cluster: ClusterState) -> bool:
    """Whether KAI's reservation pods name a class: "" in its values has them name none."""
    key = cluster.kai.runtime_class_key if cluster.kai else None
    return key is None or all(value_at(kai.values, key) != "" for kai in cluster.wanted.kai)


def mode_of(cluster: ClusterState) -> str | None:
    """How this KAI lets pods share GPUs, as it was told; None where nothing says so."""
    config = cluster.named("configs", "kai-config")
    spec = config.spec if config else {}
    if mode := value_at(spec, "global.gpuSharingMode"):
        return str(mode)  # from v0.18; it wins over the older switch
    on = _switched_on(cluster, spec)
    if on and value_at(spec, "binder.plugins.hamicore.enabled"):
        return HAMI_CORE
    return None if on is None else of_switch(on)


def enabled(cluster: ClusterState) -> bool | None:
    """Whether this KAI lets pods share GPUs, as it was told; None where nothing says so."""
    mode = mode_of(cluster)
    return None if mode is None else mode != DISABLED


def _switched_on(cluster: ClusterState, config: Mapping[str, Any]) -> bool | None:
    if (setting := value_at(config, "admission.gpuSharing")) is not None:
        return bool(setting)
    for name in ("admission", "binder"):
        item = cluster.named("deployments", name, KAI_NAMESPACE)
        for container in item.containers if item else []:
            for argument in map(str, container.get("args") or []):
                if argument.startswith(_FLAG):
                    return argument.removeprefix(_FLAG) == "true"
    return None


def _mode(cluster: ClusterState) -> Findings:
    mode, wanted = mode_of(cluster), cluster.wanted.sharing
    is_on = enabled(cluster)
    sharing = sum(use.gpu.shared for use in cluster.usage.pods if use.scheduled_by_kai)
    declared = cluster.wanted.declared and cluster.wanted.gpu_sharing
    if is_on is False and (sharing or declared):
        asked = f", and {sharing} pods ask for a share: new ones are refused" if sharing else ""
        fix = f"write gpuSharing: true at {cluster.wanted.key}, then {cluster.apply}"
        # Where it is declared, somebody changed it by hand.
        mend = make_again(cluster) if declared else fix
        yield cluster.broken("GPU sharing", f"it is off{asked}", mend)
    elif declared and mode not in (None, wanted):
        cause = f"its mode is {mode}, and {wanted} is declared"
        yield cluster.broken("GPU sharing", cause, make_again(cluster))
    elif is_on is not None:
        yield cluster.well("GPU sharing")


def _enforced(snapshot: Snapshot, cluster: ClusterState) -> Findings:
    """Whether the nodes have what bounds the memory of pods that share a GPU."""
    mode, host = mode_of(cluster), snapshot.host
    nodes = [it for it in cluster.all("nodes") if numbers(it.status.get("allocatable")).get(NVIDIA)]
    isolated = any(it.name.startswith(_ISOLATOR) for it in host.all("daemonsets"))
    if mode == HAMI_CORE and not isolated and "daemonsets" not in host.unreadable:
        yield cluster.broken(
            "GPU memory",
            f"its mode is {mode}, and no DaemonSet of {_ISOLATOR} is on the host: pods that share"
            " a GPU take as much of its memory as they like",
            f"install the chart {_ISOLATOR} on the host, or write mode: {NOT_ENFORCED} at"
            f" {cluster.wanted.key}.gpuSharing",
        )
    for node in nodes:
        subject = f"GPU memory of node {node.name}"
        if mode == HAMI_CORE and gpu_memory(node.labels) is None:
            yield cluster.broken(
                subject,
                f"it has no label {MEMORY_LABEL}, from which mode {mode} takes the bound of a pod:"
                " none that shares a GPU is bound there",
                "have GPU feature discovery label it (the GPU operator brings it); then restart"
                " KAI's scheduler, which reads it when it first sees the node:"
                f" `{cluster.kubectl} -n {KAI_NAMESPACE} rollout restart deployment -l app`",
            )
        elif mode == NV_FRACTIONS and not any(node.is_true(kind) for kind in _FRACTIONS_READY):
            told = next(filter(None, (node.condition(kind) for kind in _FRACTIONS_READY)), {})
            why = f"{told.get('reason')}: {told.get('message')}" if told else "nothing says why"
            yield cluster.broken(
                subject,
                f"it is not ready for mode {mode} ({why}): no pod that shares a GPU goes there",
                f"it needs NVIDIA's GPU operator {FRACTIONS_OPERATOR} with its NRI plugin on, a"
                f" container runtime with NRI (containerd 2.0), and driver {FRACTIONS_DRIVER} or"
                f" newer; or write mode: {NOT_ENFORCED} at {cluster.wanted.key}.gpuSharing",
            )


def _groups(cluster: ClusterState) -> Findings:
    members: dict[str, list[tuple[KubeObject, float]]] = defaultdict(list)
    for pod in cluster.kai_pods:
        use = cluster.use_of(pod)
        if use is None or not use.gpu.shared or use.phase != "Running":
            continue
        if not use.groups:
            yield cluster.broken(
                pod.pod_subject,
                f"it runs with a share of a GPU and has no label {GROUP}: KAI does not count it",
                f"{cluster.delete_pods([pod])}, so that it is made again and KAI places it",
            )
        for group in use.groups:
            members[group].append((pod, use.gpu.fraction or 0.0))
    reserved = {pod.labels.get(GROUP) for pod in cluster.within("pods", RESERVATIONS)}
    for group, shares in members.items():
        pods, total = [pod for pod, _ in shares], sum(fraction for _, fraction in shares)
        names = ", ".join(sorted(pod.name for pod in pods))
        nodes = {pod.spec.get("nodeName") for pod in pods}
        if group not in reserved:
            yield cluster.broken(
                f"GPU group {group}",
                f"no reservation pod holds its GPU, which is given to others too ({names})",
                f"{cluster.delete_pods(pods)}, so that they are made again",
                check=RESERVATION,
            )
        elif total > 1.0001 or len(nodes) > 1:
            what = f"add up to {total:g} GPUs" if total > 1.0001 else f"are on {len(nodes)} nodes"
            fix = f"delete one of them, so that it is placed anew: {cluster.delete_pods(pods[-1:])}"
            yield cluster.broken(f"GPU group {group}", f"its pods {what}: {names}", fix)
        else:
            yield cluster.well(f"GPU group {group} ({names})")


def _reservations(cluster: ClusterState) -> Findings:
    users = {group for pod in cluster.kai_pods for group in groups_of(pod.labels)}
    for pod in cluster.within("pods", RESERVATIONS):
        subject, remove = f"reservation pod {pod.name}", cluster.delete_pods([pod])
        if cluster.age(pod) < _PATIENCE:
            continue
        if pod.phase != "Running":
            cause, fix = _why(cluster, pod)
            fix = f"{fix}; then {remove}" if fix else remove
            yield cluster.broken(subject, f"it is {pod.phase}: {cause}", fix, check=RESERVATION)
        elif not pod.annotations.get(GPU_INDEX):
            yield cluster.broken(
                subject,
                "it runs and has not found its GPU: the pods that are to share it wait, and are"
                " given up after 40 s",
                "it must see exactly one GPU: set the RuntimeClass nvidia, or the container"
                f" runtime's default; then {remove}",
                check=RESERVATION,
            )
        elif pod.labels.get(GROUP) not in users:
            cause = "it holds a whole GPU that no pod shares"
            yield cluster.warning(subject, cause, remove, check=RESERVATION)
        else:
            yield cluster.well(subject, check=RESERVATION)


def _why(cluster: ClusterState, pod: KubeObject) -> tuple[str, str]:
    """Why it does not run, and what mends that; "" where only making it anew may."""
    texts = [*cluster.said_of(pod), str(pod.status.get("message") or "")]
    known = cluster.explain(*texts)
    if known is not None:
        return known.cause, known.fix
    return next(filter(None, texts), "nothing says why"), ""
