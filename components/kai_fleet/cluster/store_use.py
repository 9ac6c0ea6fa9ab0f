"""How full the store of a vCluster is, and whether its volumes grow: from the host alone.

kubelets tell the use of volumes (`stats/summary`), and the chart's etcd its own on port 2381. Both
are read through the host's API server, which wants `nodes/proxy` and `pods/proxy`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import KubeError
from kai_fleet.cluster.kube.objects import MALFORMED, KubeObject
from kai_fleet.values import parse_quantity, value_at
from kai_fleet.vcluster_values import ChartStore

_METRICS: Final = {
    "total": "etcd_mvcc_db_total_size_in_bytes",
    "used": "etcd_mvcc_db_total_size_in_use_in_bytes",
    "quota": "etcd_server_quota_backend_bytes",
}
_ON_PORT: Final = 2381  # --listen-metrics-urls of the chart's etcd, v0.27.3 to v0.36.1


@dataclass(frozen=True)
class EtcdUse:
    """Bytes of an etcd's file, of what is in use in it, and of its quota."""

    total: float
    used: float
    quota: float


@dataclass(frozen=True)
class StoreUse:
    """The part of each claim's volume that is full, and the use of each etcd, where known."""

    volumes: Mapping[str, float] = field(default_factory=dict)
    etcds: Mapping[str, EtcdUse] = field(default_factory=dict)


def claims(team: str, store: ChartStore) -> list[str]:
    """The names of the claims of a vCluster's store."""
    if store.type == "etcd":
        return [f"data-{member}" for member in members(team, store)]
    return [f"data-{team}-0"] if store.workload == "statefulset" else []


def members(team: str, store: ChartStore) -> list[str]:
    """The pods of the chart's etcd."""
    return [f"{team}-etcd-{n}" for n in range(store.members)] if store.type == "etcd" else []


def store_use(api: Api, team: str, store: ChartStore, nodes: Iterable[str]) -> StoreUse:
    """How full a store is, whose pods are on these nodes; nothing of what cannot be read."""
    namespace, volumes = f"team-{team}", dict[str, float]()
    for node in nodes:
        with suppress(KubeError, *MALFORMED):
            volumes |= _volumes(api.get(f"/api/v1/nodes/{node}/proxy/stats/summary"), namespace)
    wanted = claims(team, store)
    etcds = {member: use for member in members(team, store) if (use := etcd_use(api, team, member))}
    return StoreUse({name: volumes[name] for name in wanted if name in volumes}, etcds)


def etcd_use(api: Api, team: str, member: str) -> EtcdUse | None:
    """The use of one etcd; None where it cannot be read."""
    path = f"/api/v1/namespaces/team-{team}/pods/{member}:{_ON_PORT}/proxy/metrics"
    with suppress(KubeError, *MALFORMED):
        metrics = api.text(path)
        return EtcdUse(**{part: _metric(metrics, name) for part, name in _METRICS.items()})
    return None


def _metric(text: str, name: str) -> float:
    """Raises ValueError where it is not there, or is none: who writes in the team's namespace may
    put a pod of that name there.
    """
    found = re.search(rf"^{name} ([0-9.]+(?:e[+-]?[0-9]{{1,2}})?)$", text, re.M)
    size = float(found[1]) if found else 0.0
    if size <= 0:
        raise ValueError(name)
    return size


def _volumes(summary: Mapping[str, Any], namespace: str) -> Iterator[tuple[str, float]]:
    """The claims of a namespace with the full part of their volumes: bytes, or files."""
    for pod in summary.get("pods") or []:
        for volume in pod.get("volume") or []:
            claim = volume.get("pvcRef") or {}
            if claim.get("namespace") != namespace:
                continue
            bytes_full = volume["usedBytes"] / volume["capacityBytes"]
            files_full = (volume.get("inodesUsed") or 0) / (volume.get("inodes") or 1)
            yield str(claim["name"]), max(bytes_full, files_full)


def size_of(claim: KubeObject) -> float:
    """The bytes that a claim asks for."""
    return float(parse_quantity(value_at(claim.spec, "resources.requests.storage") or 0))


def grows(claim: KubeObject) -> bool:
    """Whether a claim asks for more than its volume has yet."""
    has = value_at(claim.status, "capacity.storage")
    return has is not None and size_of(claim) > float(parse_quantity(has))
