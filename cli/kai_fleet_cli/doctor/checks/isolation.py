"""What keeps teams apart: objects and bounds that somebody added or exceeded."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from kai_fleet.kube.objects import KubeObject, in_pool
from kai_fleet.quantities import parse_quantity
from kai_fleet_cli.doctor.causes import Fault, fault
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, TeamState

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


def team(state: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    """One team on the host."""
    host, team, namespace = snapshot.host, state.team, state.team.namespace
    pods = [pod for pod in host.usage.pods if pod.namespace == namespace]
    held = sum(pod.amounts.gpu for pod in pods if not pod.waits)
    if team.mode == "host" and team.gpus is not None and held > team.gpus + 1e-6:
        values = {"held": f"{held:g}", "gpus": f"{team.gpus:g}", "path": team.gpus_path}
        yield fault("team-over-gpus", host, team.name, queue=team.queue, **values)
    quota = host.named("resourcequotas", "objects", namespace)
    status = quota.status if quota is not None else {}
    hard, used = (
        float(parse_quantity((status.get(key) or {}).get("secrets", 0))) for key in ("hard", "used")
    )
    if used > NEARLY * hard:
        yield fault("secrets-nearly-full", host, namespace, used=f"{used:g}", hard=f"{hard:g}")
    for pod in state.control_plane_pods(host):
        node = host.named("nodes", str(pod.spec.get("nodeName") or ""))
        if node is not None and not in_pool(node.labels, team.control_pool):
            labels = ", ".join(f"{key}={value}" for key, value in team.control_pool.items())
            yield fault("control-plane-elsewhere", host, pod.namespaced_name, labels=labels)
    by_map: dict[str, list[str]] = defaultdict(list)
    for pod in host.within("pods", namespace):
        if any(key.startswith(TOKEN_ANNOTATION) for key in pod.annotations):
            yield fault("pod-with-tokens", host, pod.namespaced_name)
        if not pod.ended and _SHARED_MAP in pod.annotations:
            by_map[pod.annotations[_SHARED_MAP]].append(pod.namespaced_name)
    for config_map, names in by_map.items():
        for name in names if len(names) > 1 else ():
            yield fault("shared-config-map", host, name, map=config_map)
    declared = _policies(snapshot, team.name)
    for item in host.within("networkpolicies", namespace) if declared else ():
        if item.name not in declared:
            yield fault("policy-undeclared", host, item.namespaced_name)


def _policies(snapshot: Snapshot, team: str) -> set[str]:
    """The network policies of a team; none where it is not isolated by them."""
    rows = (row for row in snapshot.required if row.team == team)
    return {row.name for row in rows if row.kind == "NetworkPolicy"}


def network(host: Cluster, snapshot: Snapshot) -> Iterator[Fault]:
    """Whether anything on the host enforces network policies, and lets vClusters reach its API."""
    nodes = [node for node in host.all("nodes") if _FAKE_NODE not in node.annotations]
    teams = [name for name in snapshot.teams if _policies(snapshot, name)]
    if not nodes or not teams:
        return
    service = host.named("services", "kubernetes", "default")
    ports = {port.get("targetPort") for port in service.spec.get("ports") or []} if service else ()
    for port in {port for port in ports if isinstance(port, int)}:
        allowed = (snapshot.settings.own_of(name).isolation.network.api_ports for name in teams)
        if any(port not in of_team for of_team in allowed):
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
