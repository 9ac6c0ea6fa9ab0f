"""How full the store of a vCluster is, and whether its volumes grow, as far as the host tells.

Kubelets report the use of volumes (`stats/summary`), and the chart's etcd its own on port 2381. We
read both through the host's API server, with the rights `nodes/proxy` and `pods/proxy`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import KubeError
from kai_fleet.cluster.kube.objects import MALFORMED, Fields, KubeObject
from kai_fleet.releases.chart_stores import ChartStore
from kai_fleet.values import value_at
from kai_usage.quantities import parse_quantity

_METRICS_PORT = 2381  # --listen-metrics-urls of the chart's etcd, v0.27.3 to v0.36.1


@dataclass(frozen=True)
class EtcdUse:
    """Bytes of an etcd's file, the bytes in use in it, and the bytes of its quota."""

    total: float
    used: float
    quota: float


@dataclass(frozen=True)
class StoreUse:
    """How full the store is, as far as it is known.

    `volumes` has the used fraction, 0 to 1, by claim. `etcds` has the use by pod.
    """

    volumes: Mapping[str, float] = field(default_factory=dict)
    etcds: Mapping[str, EtcdUse] = field(default_factory=dict)


def store_use(api: Api, team: str, store: ChartStore, nodes: Iterable[str]) -> StoreUse:
    """How full a store is. What cannot be read, or is malformed, is left out.

    Args:
        api: The host.
        team: The vCluster's name; its namespace is `team-TEAM`.
        store: Its kind.
        nodes: The names of the nodes on which the store's pods run.
    """
    used_fractions: dict[str, float] = {}
    for node in nodes:
        with suppress(KubeError, *MALFORMED):
            summary = api.get(f"/api/v1/nodes/{node}/proxy/stats/summary")
            used_fractions |= _used_fractions(summary, f"team-{team}")
    volumes = {name: used_fractions[name] for name in store.claims(team) if name in used_fractions}
    etcds = {}
    for member in store.etcds(team):
        use = etcd_use(api, team, member)
        if use is not None:
            etcds[member] = use
    return StoreUse(volumes, etcds)


def etcd_use(api: Api, team: str, member: str) -> EtcdUse | None:
    """The use of one etcd in namespace `team-TEAM`; None if it cannot be read.

    None as well if a metric is absent, or no positive number.
    """
    path = f"/api/v1/namespaces/team-{team}/pods/{member}:{_METRICS_PORT}/proxy/metrics"
    with suppress(KubeError, *MALFORMED):
        metrics = api.text(path)
        return EtcdUse(
            total=_metric(metrics, "etcd_mvcc_db_total_size_in_bytes"),
            used=_metric(metrics, "etcd_mvcc_db_total_size_in_use_in_bytes"),
            quota=_metric(metrics, "etcd_server_quota_backend_bytes"),
        )
    return None


def _metric(text: str, name: str) -> float:
    """A positive metric. Raises ValueError if it is absent, or no positive number.

    Anybody who can write in the team's namespace may run a pod of etcd's name there.
    """
    match = re.search(rf"^{name} ([0-9.]+(?:e[+-]?[0-9]{{1,2}})?)$", text, re.M)
    if match is None or float(match[1]) <= 0:
        raise ValueError(name)
    return float(match[1])


def _used_fractions(summary: Fields, namespace: str) -> Iterator[tuple[str, float]]:
    """The claims of a namespace, each with its volume's used fraction of bytes, or of inodes.

    The larger one counts. Raises one of MALFORMED.
    """
    for pod in summary.get("pods") or []:
        for volume in pod.get("volume") or []:
            claim = volume.get("pvcRef") or {}
            if claim.get("namespace") != namespace:
                continue
            of_bytes = volume["usedBytes"] / volume["capacityBytes"]
            of_inodes = (volume.get("inodesUsed") or 0) / (volume.get("inodes") or 1)
            yield str(claim["name"]), max(of_bytes, of_inodes)


def size_of(claim: KubeObject) -> float:
    """The bytes that a claim requests; 0 if it requests none. Raises one of MALFORMED."""
    return float(parse_quantity(value_at(claim.spec, "resources.requests.storage") or 0))


def grows(claim: KubeObject) -> bool:
    """Whether a claim requests more bytes than its volume has yet; False without a volume.

    Raises one of MALFORMED.
    """
    capacity = value_at(claim.status, "capacity.storage")
    return capacity is not None and size_of(claim) > float(parse_quantity(capacity))
