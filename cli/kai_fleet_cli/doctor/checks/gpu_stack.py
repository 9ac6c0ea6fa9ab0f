"""What makes a host's nodes advertise GPUs: its DaemonSets have their pods, one plugin for a node,
and the plugin does not share GPUs that KAI shares too.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from kai_fleet.guards.policies import ENFORCED
from kai_fleet.kube.objects import KubeObject
from kai_fleet.releases.keys import GPU_PRODUCT
from kai_fleet_cli.doctor.checks.kai.gpu_sharing import GPU_STACK, enabled
from kai_fleet_cli.doctor.cluster_state import ClusterState, Findings, Snapshot
from kai_fleet_cli.waiting.finding import Reason

_REPLICAS: Final = "nvidia.com/gpu.replicas"
_STRATEGY: Final = "nvidia.com/gpu.sharing-strategy"
_SHARED: Final = "-SHARED"
_PATIENCE: Final = 60.0  # seconds; what takes no longer is on its way


def check(snapshot: Snapshot) -> Findings:
    """The host's DaemonSets and the pods of the device plugins."""
    host = snapshot.host
    if not {"daemonsets", "pods"} & host.unreadable.keys():
        for item in host.all("daemonsets"):
            if item.namespace in GPU_STACK or item.is_device_plugin:
                yield from _daemon_set(host, item)
        yield from _two_plugins(host)


def check_sharing(snapshot: Snapshot) -> Findings:
    """Nodes whose GPUs the device plugin shares already, where a KAI shares them too (W9)."""
    sharers = {
        node.name: cluster.wanted.key
        for cluster in snapshot.with_kai
        if enabled(cluster) is not False
        and (cluster.wanted.gpu_sharing or not cluster.wanted.declared)
        for node in cluster.all("nodes")
    }
    for node in snapshot.host.all("nodes"):
        how = _shared_by(node.labels)
        if how and node.name in sharers:
            yield snapshot.host.broken(
                f"node {node.name}",
                f"its device plugin shares GPUs by itself ({how}), and KAI shares them once more:"
                " pods run out of GPU memory",
                "take the sharing section out of the device plugin's config, or write gpuSharing:"
                f" false at {sharers[node.name]}",
            )


def _shared_by(labels: Mapping[str, str]) -> str:
    """The label of a node that says that its device plugin shares GPUs; "" where none does."""
    replicas, strategy = labels.get(_REPLICAS, ""), labels.get(_STRATEGY, "none")
    product = labels.get(GPU_PRODUCT, "")
    if strategy not in ("none", ""):
        return f"{_STRATEGY}={strategy}"
    if replicas.isdigit() and int(replicas) > 1:
        return f"{_REPLICAS}={replicas}"
    return f"{GPU_PRODUCT}={product}" if product.endswith(_SHARED) else ""


def _daemon_set(host: ClusterState, item: KubeObject) -> Findings:
    wanted, ready = (
        int(item.status.get(key) or 0) for key in ("desiredNumberScheduled", "numberReady")
    )
    subject = f"DaemonSet {item.name} in namespace {item.namespace}"
    if ready >= wanted:
        if wanted:
            yield host.well(subject)
    elif host.age(item) > _PATIENCE:
        reason = _why(host, item)
        start = f"{ready} of {wanted} pods are Ready"
        if reason is None:
            look = f"look with: `{host.kubectl} -n {item.namespace} get pods,events`"
            yield host.warning(subject, f"{start}, and nothing known says why", look)
        else:
            yield host.broken(subject, f"{start}: {reason.cause}", reason.fix)


def _why(host: ClusterState, item: KubeObject) -> Reason | None:
    """By the last events of its controller, then by its pods."""
    texts = host.said_of(item)
    for pod in host.within("pods", item.namespace):
        if _owner(pod) == item.name and not pod.is_true("Ready"):
            texts += [*host.said_of(pod), *pod.container_messages]
    reason = host.explain(*texts)
    if reason is not None and reason.name == "pod-security":
        fix = (
            f"label namespace {item.namespace} with {ENFORCED}: privileged, which these pods need;"
            f" where this stack makes it, {host.update} does"
        )
        return reason._replace(fix=fix)
    return reason


def _owner(pod: KubeObject) -> str:
    owners = pod["metadata"].get("ownerReferences") or []
    return next((str(it.get("name")) for it in owners if it.get("kind") == "DaemonSet"), "")


def _two_plugins(host: ClusterState) -> Findings:
    by_node: dict[str, set[str]] = defaultdict(set)
    for pod in host.all("pods"):
        node = pod.spec.get("nodeName")
        if node and not pod.ended and pod.is_device_plugin:
            by_node[node].add(f"{pod.namespace}/{_owner(pod) or pod.name}")
    for node, on_it in sorted(by_node.items()):
        if len(on_it) > 1:
            yield host.broken(
                f"node {node}",
                f"{len(on_it)} device plugins run on it ({', '.join(sorted(on_it))}): each hands"
                " out the same GPUs",
                "keep one. To keep one that this stack did not install, write none at"
                f" kai-fleet:gpu.provider, then {host.apply}; to keep this stack's, have who"
                " installed the other keep it off this node by a nodeSelector",
            )
