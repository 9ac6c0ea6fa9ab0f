"""Backing store of a vCluster's control plane, read from chart values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kai_fleet.values import pairs, value_at

CLAIM: Final = "controlPlane.statefulSet.persistence.volumeClaim"
ETCD: Final = "controlPlane.backingStore.etcd.deploy"
REPLICAS: Final = "controlPlane.statefulSet.highAvailability.replicas"
EMBEDDED: Final = "embedded"
# In the order in which vCluster checks them (BackingStoreType in its config/config.go).
SWITCHES: Final = {
    "embeddedEtcd": "controlPlane.backingStore.etcd.embedded.enabled",
    "externalEtcd": "controlPlane.backingStore.etcd.external.enabled",
    "etcd": f"{ETCD}.enabled",
    EMBEDDED: "controlPlane.backingStore.database.embedded.enabled",
    "external": "controlPlane.backingStore.database.external.enabled",
}
# Types with their state on the control plane's volume: the chart makes a StatefulSet.
_ON_ITS_VOLUME: Final = (EMBEDDED, "embeddedEtcd")


@dataclass(frozen=True)
class ChartStore:
    """The backing store of one release: its type as in a stack file, or `externalEtcd`; the number
    of etcd members; and `storageClass` and `size` of its volume claim, where set.
    """

    type: str = EMBEDDED
    members: int = 1
    claim: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def workload(self) -> str:
        """Kind of the control plane for kubectl: without a volume it is a Deployment."""
        return "statefulset" if self.type in _ON_ITS_VOLUME else "deployment"


def store_of(values: Any) -> ChartStore:
    """The backing store that chart values configure."""
    switched = (kind for kind, key in SWITCHES.items() if value_at(values, key) in (True, "true"))
    kind = next(switched, EMBEDDED)
    of_etcd, members, key = f"{ETCD}.statefulSet", None, CLAIM
    if kind == "etcd":
        members = value_at(values, f"{of_etcd}.highAvailability.replicas")
        key = f"{of_etcd}.persistence.volumeClaim"
    claim = pairs(value_at(values, key)) if kind in (*_ON_ITS_VOLUME, "etcd") else {}
    return ChartStore(
        kind,
        int(members) if isinstance(members, int | float) else 1,  # outputs have no integers
        {key: claim[key] for key in ("storageClass", "size") if key in claim},
    )
