"""What keeps teams apart: objects and bounds that somebody deleted or changed."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from kai_fleet.kube.objects import KubeObject
from kai_fleet.quantities import parse_quantity
from kai_fleet_cli.doctor.causes import Fault, absent, fault
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, TeamState, control_plane_pods

NEARLY: Final = 0.8  # of a bound
TOKEN_ANNOTATION: Final = "vcluster.loft.sh/token-"
_SHARED_MAP: Final = "runai/shared-gpu-configmap"  # KAI's admission writes it, with its own name
# Names of the DaemonSets, or of their containers, that enforce NetworkPolicies.
_ENFORCE: Final = (
    *("anetd", "antrea", "azure-npm", "calico", "canal", "cilium", "kindnet"),
    *("kube-network-policies", "kube-ovn", "kube-router", "ovn", "terway", "weave"),
)
_AMAZON: Final = "--enable-network-policy=true"  # Amazon's agent enforces none without it
_FAKE_NODE: Final = "kwok.x-k8s.io/node"


def team(team: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    """One team on the host."""
    host, desired = snapshot.host, team.desired
    space = host.named("namespaces", desired.namespace)
    if space is None:
        return
    yield from absent(host, desired.required, "isolation")
    pods = [pod for pod in host.usage.pods if pod.namespace == desired.namespace]
    held = sum(pod.amounts.gpu for pod in pods if not pod.waits)
    if desired.mode == "host" and desired.gpus is not None and held > desired.gpus + 1e-6:
        values = {"held": f"{held:g}", "gpus": f"{desired.gpus:g}", "path": desired.gpus_path}
        yield fault("team-over-gpus", host, team.desired.name, queue=desired.queue, **values)
    quota = host.named("resourcequotas", "objects", desired.namespace)
    status = quota.status if quota is not None else {}
    hard, used = (
        float(parse_quantity((status.get(key) or {}).get("secrets", 0))) for key in ("hard", "used")
    )
    if used > NEARLY * hard:
        values = {"used": f"{used:g}", "hard": f"{hard:g}"}
        yield fault("secrets-nearly-full", host, space.name, **values)
    pool = desired.control_pool
    for pod in control_plane_pods(host, desired):
        node = host.named("nodes", str(pod.spec.get("nodeName") or ""))
        if node is not None and not pool.items() <= node.labels.items():
            labels = ", ".join(f"{key}={value}" for key, value in pool.items())
            yield fault("control-plane-elsewhere", host, pod.namespaced_name, labels=labels)
    yield from _pods(host, desired.namespace)


def _pods(host: Cluster, namespace: str) -> Iterator[Fault]:
    """Pods that carry tokens, or share a ConfigMap of KAI's."""
    by_map: dict[str, list[str]] = defaultdict(list)
    for pod in host.within("pods", namespace):
        if any(key.startswith(TOKEN_ANNOTATION) for key in pod.annotations):
            yield fault("pod-with-tokens", host, pod.namespaced_name)
        if not pod.ended and _SHARED_MAP in pod.annotations:
            by_map[pod.annotations[_SHARED_MAP]].append(pod.namespaced_name)
    for config_map, names in by_map.items():
        for name in names if len(names) > 1 else ():
            yield fault("shared-config-map", host, name, map=config_map)


def network(host: Cluster, snapshot: Snapshot) -> Iterator[Fault]:
    """Network policies that nobody declared, and whether anything on the host enforces them."""
    teams = [team.desired for team in snapshot.teams.values() if team.desired.network]
    for desired in teams:
        own = {row.name for row in desired.required if row.kind == "NetworkPolicy"}
        for item in host.within("networkpolicies", desired.namespace):
            if item.name not in own:
                yield fault("policy-undeclared", host, item.namespaced_name, check="isolation")
    nodes = [node for node in host.all("nodes") if _FAKE_NODE not in node.annotations]
    if not nodes or not teams:
        return
    service = host.named("services", "kubernetes", "default")
    ports = {port.get("targetPort") for port in service.spec.get("ports") or []} if service else ()
    for port in {port for port in ports if isinstance(port, int)}:
        if any(port not in desired.api_ports for desired in teams):
            yield fault("api-port", host, "of the host", port=port)
    if any("+k3s" in str(node.status.get("nodeInfo")) for node in nodes):
        return  # it enforces them in a process of its own
    enforcing = [item for item in host.all("daemonsets") if _enforces(item)]
    if not enforcing:
        yield fault("no-network-plugin", host, "of the host")
    for item in enforcing:
        ready = item.status.get("numberReady") or 0
        scheduled = item.status.get("desiredNumberScheduled") or 0
        if ready < scheduled:
            values = {"ready": ready, "scheduled": scheduled}
            yield fault("network-plugin-not-ready", host, item.namespaced_name, **values)


def _enforces(item: KubeObject) -> bool:
    names = [item.name, *(str(container.get("name")) for container in item.containers)]
    if any(part in name for name in names for part in _ENFORCE):
        return True
    return any(_AMAZON in (container.get("args") or []) for container in item.containers)
