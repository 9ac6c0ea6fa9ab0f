"""The store and the resources of a vCluster's control plane, as its chart's values have them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kai_fleet.releases import version_key
from kai_fleet.values import pairs, value_at

CLAIM: Final = "controlPlane.statefulSet.persistence.volumeClaim"
ETCD: Final = "controlPlane.backingStore.etcd.deploy"
EMBEDDED: Final = "embedded"
# In the order in which vCluster itself looks (BackingStoreType in its config/config.go).
SWITCHES: Final = {
    "embeddedEtcd": "controlPlane.backingStore.etcd.embedded.enabled",
    "externalEtcd": "controlPlane.backingStore.etcd.external.enabled",
    "etcd": f"{ETCD}.enabled",
    EMBEDDED: "controlPlane.backingStore.database.embedded.enabled",
    "external": "controlPlane.backingStore.database.external.enabled",
}
# What keeps its state on a volume of the control plane, which is a StatefulSet then.
_ON_ITS_VOLUME: Final = (EMBEDDED, "embeddedEtcd")


@dataclass(frozen=True)
class ChartStore:
    """The store of one release: its type as a stack file has it, or `externalEtcd`; how many etcds;
    and what its values say of the claim of its volume, by the keys of the chart.
    """

    type: str = EMBEDDED
    members: int = 1
    claim: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def workload(self) -> str:
        """What kubectl calls the control plane: without a volume the chart makes a Deployment."""
        return "statefulset" if self.type in _ON_ITS_VOLUME else "deployment"


def store_of(values: Any) -> ChartStore:
    """The store that values of vCluster's chart choose."""
    switched = (kind for kind, key in SWITCHES.items() if value_at(values, key) in (True, "true"))
    kind = next(switched, EMBEDDED)
    members = (
        value_at(values, f"{ETCD}.statefulSet.highAvailability.replicas") if kind == "etcd" else 1
    )
    place = {"etcd": f"{ETCD}.statefulSet.persistence.volumeClaim"}.get(kind, CLAIM)
    claim = value_at(values, place) if kind in (*_ON_ITS_VOLUME, "etcd") else {}
    written = pairs(claim)
    return ChartStore(
        kind,
        int(members) if isinstance(members, int | float) else 1,  # outputs have no integers
        {key: written[key] for key in ("storageClass", "size") if key in written},
    )


REPLICAS: Final = "controlPlane.statefulSet.highAvailability.replicas"
RESOURCES: Final = "controlPlane.statefulSet.resources"

_REQUESTS: Final = {"cpu": "200m", "memory": "256Mi", "ephemeral-storage": "1Gi"}
_LIMITS: Final = {"memory": "4Gi", "ephemeral-storage": "10Gi"}
_LIMITS_BEFORE_V0_30: Final = {"memory": "2Gi", "ephemeral-storage": "8Gi"}
# Of each etcd that the chart deploys, in every version.
ETCD_REQUESTS: Final = {"cpu": "20m", "memory": "150Mi"}


def default_resources(version: str) -> dict[str, dict[str, str]]:
    """The requests and limits that the chart of this version gives a control plane."""
    old = (0,) < version_key(version) < (0, 30)  # text without numbers is none
    return {"requests": dict(_REQUESTS), "limits": dict(_LIMITS_BEFORE_V0_30 if old else _LIMITS)}
