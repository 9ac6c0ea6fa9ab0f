"""Node pools: their nodes and GPUs, and the GPUs that pods hold there."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot
from kai_fleet_cli.report.records import Pool
from kai_usage.nodes import gpus_of
from kai_usage.objects import has_labels
from kai_usage.requests import requests_of, whole_gpus


def node_pools(snapshot: Snapshot) -> Iterator[Pool]:
    """Yield the teams' pools, and of a whole host all other nodes with GPUs as one pool.

    A node that two pools select is in the first, in the order of teams. Teams with the same labels
    share a pool. Teams without labels have the pool "", of all other nodes with GPUs; without
    a whole host it is empty. Raises UnreadError if the host's nodes or pods were not read in all
    namespaces, and one of MALFORMED.
    """
    host = snapshot.host
    teams: dict[str, list[str]] = defaultdict(list)
    selectors = dict[str, Mapping[str, str]]()
    for name, state in snapshot.teams.items():
        selector = state.team.node_pool
        labels = ", ".join(f"{key}={selector[key]}" for key in sorted(selector))
        teams[labels].append(name)
        if labels:
            selectors[labels] = selector
    nodes: dict[str, list[KubeObject]] = defaultdict(list)
    for node in host.all("nodes"):
        labels = _pool_of(node, selectors)
        if labels or (snapshot.sees_whole_host and gpus_of(node)):
            nodes[labels].append(node)
    gpus_by_node = _gpus_by_node(host)
    for labels in {**teams, **nodes}:
        yield _pool(labels, teams[labels], nodes[labels], gpus_by_node)


def _pool_of(node: KubeObject, selectors: Mapping[str, Mapping[str, str]]) -> str:
    """Return the labels of the first pool whose selector fits a node; "" for none.

    `selectors` are by the labels of each pool as text.
    """
    for labels, selector in selectors.items():
        if has_labels(node, selector):
            return labels
    return ""


def _gpus_by_node(host: Cluster) -> Mapping[str, float]:
    """Return the GPUs that pods hold, by node, as its kubelet counts them: whole devices.

    GPUs of all vendors count, and pods of the system, too. MIG devices and pods that have ended do
    not. A node without pods has no key.
    """
    gpus_by_node: dict[str, float] = defaultdict(float)
    for pod in host.all("pods"):
        node = pod.spec.get("nodeName")
        if node and not pod.has_ended:
            gpus_by_node[node] += whole_gpus(requests_of(pod.spec))
    return gpus_by_node


def _pool(
    labels: str,
    teams: Sequence[str],
    nodes: Sequence[KubeObject],
    gpus_by_node: Mapping[str, float],
) -> Pool:
    """Return the pool of these nodes, with the GPUs of all vendors, without MIG devices.

    `gpus_by_node` are the GPUs that pods hold, by node; 0 where a node lacks.
    """
    ready = [node for node in nodes if node.is_true("Ready")]
    ready_gpus = sum(map(gpus_of, ready))
    return Pool(
        labels=labels,
        teams=teams,
        nodes=len(nodes),
        ready_nodes=len(ready),
        gpus=ready_gpus,
        in_use=sum(gpus_by_node.get(node.name, 0.0) for node in ready),
        not_ready=sum(map(gpus_of, nodes)) - ready_gpus,
    )
