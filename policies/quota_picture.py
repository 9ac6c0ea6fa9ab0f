"""What queues, teams and node pools promise, beside what there is.

`queue-quota` refuses what is certainly too much: children above their parent, a team's queues above
its GPUs. This says all of it in numbers, and holds it against the nodes where those were read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from components.settings.quantities import cpu_millicores, gpu_devices, memory_megabytes
from policies.amounts import written
from policies.model import (
    GPU_RESOURCES,
    RESOURCES,
    UNKNOWN,
    UNLIMITED,
    Cluster,
    Queue,
    Resource,
    VirtualCluster,
)
from policies.plain import get

Kind = Literal["queue", "team", "cluster", "pool"]
Pool = tuple[tuple[str, str], ...]  # labels, sorted; () is every node
Capacity = Mapping[Pool, Mapping[Resource, float]]

_NOTHING_READ: Final[Capacity] = {}


@dataclass(frozen=True)
class Line:
    """One sum in KAI's units (millicores, 10^6 bytes, GPUs); -1 is unlimited.

    `available` is None where nobody said or read it. `open` marks a sum of which a part is known
    only during the update: it is at least that much.
    """

    kind: Kind
    subject: str
    resource: Resource
    promised: float
    available: float | None = None
    open: bool = False

    @property
    def over(self) -> bool:
        """Whether more is promised than there is, for certain.

        Unlimited is more than the number that a parent or a team has. On nodes it only says that
        nobody counts that resource.
        """
        if self.available is None or self.available == UNLIMITED:
            return False
        if self.promised == UNLIMITED:
            return self.kind in ("queue", "team")
        return self.promised > self.available + 1e-6 * max(1.0, self.available)

    def __str__(self) -> str:
        """For example `team ml: 20 of 16 GPUs promised: too much`."""
        least = "at least " if self.open else ""
        has = "?" if self.available is None else written(self.resource, self.available, "")
        text = f"{self.subject}: {self.resource} {least}{written(self.resource, self.promised, '')}"
        return f"{text} of {has}{': too much' if self.over else ''}"


def picture(clusters: Iterable[Cluster], capacity: Capacity = _NOTHING_READ) -> list[Line]:
    """Every sum of a stack: per parent queue, per team, per host cluster and per node pool."""
    every = list(clusters)
    inside = {cluster.name: cluster for cluster in every}
    lines: list[Line] = []
    for cluster in every:
        lines += _parents(cluster)
        lines += _top_level(cluster, capacity)
        lines += _pools(cluster, inside, capacity)
    return lines


def _parents(cluster: Cluster) -> Iterator[Line]:
    tree = cluster.tree
    for name, children in tree.children.items():
        parent = tree.by_name.get(name)
        if parent is None or parent.shares is UNKNOWN:
            continue
        for resource in RESOURCES:
            share = parent.shares.get(resource)
            quota = 0.0 if share is None else share.quota
            total, open_ = _sum(children, resource)
            available = None if quota is UNKNOWN else quota
            subject = f"queue {name} in {cluster.name}"
            yield Line("queue", subject, resource, total, available, open_)


def _top_level(cluster: Cluster, capacity: Capacity) -> Iterator[Line]:
    top = [queue for queue in cluster.queues if queue.parent is None]
    if not top:
        return
    for resource in RESOURCES:
        total, open_ = _sum(top, resource)
        if cluster.gpus is None:
            read = capacity.get((), {}).get(resource)
            yield Line("cluster", f"queues of {cluster.name}", resource, total, read, open_)
        elif resource == "gpu":
            gpus = None if cluster.gpus is UNKNOWN else cluster.gpus
            yield Line("team", f"team {cluster.name}", resource, total, gpus, open_)


def _pools(cluster: Cluster, inside: Mapping[str, Cluster], capacity: Capacity) -> Iterator[Line]:
    pools: dict[Pool, list[VirtualCluster]] = {}
    for team in cluster.virtual_clusters:
        if team.node_pool is UNKNOWN or UNKNOWN in team.node_pool.values():
            continue
        labels = tuple(sorted((key, str(value)) for key, value in team.node_pool.items()))
        pools.setdefault(labels, []).append(team)
    for labels, teams in pools.items():
        name = ", ".join(f"{key}={value}" for key, value in labels) or "all nodes"
        names = ", ".join(str(team.name) for team in teams)
        subject = f"pool {name} ({names})"
        read = capacity.get(labels, {})
        known = [team.gpus for team in teams if isinstance(team.gpus, float)]
        yield Line("pool", subject, "gpu", sum(known), read.get("gpu"), len(known) < len(teams))
        tops = [
            queue
            for team in teams
            for queue in (inside[str(team.name)].queues if str(team.name) in inside else ())
            if queue.parent is None
        ]
        for resource in RESOURCES:
            if resource != "gpu" and tops:
                total, open_ = _sum(tops, resource)
                yield Line("pool", subject, resource, total, read.get(resource), open_)


def _sum(queues: Iterable[Queue], resource: Resource) -> tuple[float, bool]:
    """The quotas together, and whether one of them is not known yet; -1 where one is unlimited."""
    total, open_, unlimited = 0.0, False, False
    for queue in queues:
        share = None if queue.shares is UNKNOWN else queue.shares.get(resource)
        quota = UNKNOWN if queue.shares is UNKNOWN else 0.0 if share is None else share.quota
        if quota is UNKNOWN:
            open_ = True
        elif quota == UNLIMITED:
            unlimited = True
        else:
            total += max(quota, 0.0)
    return (UNLIMITED, False) if unlimited else (total, open_)


def read(nodes: Iterable[Mapping[str, Any]], clusters: Iterable[Cluster]) -> Capacity:
    """What Node objects (as JSON) can hold, for every node pool that a team names, and in all."""
    every = list(nodes)
    pools: dict[Pool, dict[Resource, float]] = {(): {}}
    for cluster in clusters:
        for team in cluster.virtual_clusters:
            if team.node_pool is not UNKNOWN:
                labels = sorted((key, str(value)) for key, value in team.node_pool.items())
                pools.setdefault(tuple(labels), {})
    for wanted, held in pools.items():
        for node in every:
            labels_of = get(node, "metadata", "labels") or {}
            if not all(get(labels_of, key) == value for key, value in wanted):
                continue
            for resource in RESOURCES:
                held[resource] = held.get(resource, 0.0) + _allocatable(node, resource)
    return pools


def _allocatable(node: Mapping[str, Any], resource: Resource) -> float:
    of = get(node, "status", "allocatable")
    if resource == "cpu":
        return cpu_millicores(get(of, "cpu") or 0)
    if resource == "memory":
        return memory_megabytes(get(of, "memory") or 0)
    return sum(gpu_devices(get(of, name) or 0) for name in GPU_RESOURCES)
