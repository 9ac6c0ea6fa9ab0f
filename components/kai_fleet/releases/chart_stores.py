"""What chart values of a vCluster's release configure: its version of Kubernetes and its store."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kai_fleet.values import pairs, value_at

# Keys of chart values.
CLAIM = "controlPlane.statefulSet.persistence.volumeClaim"
ETCD = "controlPlane.backingStore.etcd.deploy"
REPLICAS = "controlPlane.statefulSet.highAvailability.replicas"
# Versions of Kubernetes. The first, which vCluster calls deprecated, wins in its chart.
KUBERNETES = ("controlPlane.distro.k8s.version", "controlPlane.distro.k8s.image.tag")
EMBEDDED = "embedded"
# The key that switches each type of store on, in the order in which vCluster checks them
# (BackingStoreType in its config/config.go).
SWITCHES = {
    "embeddedEtcd": "controlPlane.backingStore.etcd.embedded.enabled",
    "externalEtcd": "controlPlane.backingStore.etcd.external.enabled",
    "etcd": f"{ETCD}.enabled",
    EMBEDDED: "controlPlane.backingStore.database.embedded.enabled",
    "external": "controlPlane.backingStore.database.external.enabled",
}
# Types of store that keep their state on the control plane's volume: the chart makes a StatefulSet.
_ON_ITS_VOLUME = (EMBEDDED, "embeddedEtcd")


def kubernetes_of(values: object) -> Any:
    """The version of Kubernetes that chart values name, as it is written there.

    None if they leave it to the chart, UNKNOWN if only the update knows it.
    """
    for key in KUBERNETES:
        if version := value_at(values, key):
            return version
    return None


@dataclass(frozen=True)
class ChartStore:
    """The backing store of a vCluster's release.

    Args:
        type: as in a stack file, or `externalEtcd`.
        members: number of etcd members; 1 for other types.
        replicas: number of control planes with a volume each; 1 for types without one.
        claim: `storageClass` and `size` of its volume claim, those that are set.
    """

    type: str = EMBEDDED
    members: int = 1
    replicas: int = 1
    claim: Mapping[str, Any] = field(default_factory=dict)

    @property
    def workload(self) -> str:
        """The control plane's resource for kubectl: without a volume it is a Deployment."""
        return "statefulset" if self.type in _ON_ITS_VOLUME else "deployment"

    def etcds(self, name: str) -> list[str]:
        """The names of the pods of the chart's etcd of a vCluster; none for another store."""
        if self.type != "etcd":
            return []
        return [f"{name}-etcd-{number}" for number in range(self.members)]

    def claims(self, name: str) -> list[str]:
        """The names of the claims of a vCluster's store; none for a store without a volume."""
        pods = self.etcds(name)
        if self.type in _ON_ITS_VOLUME:
            pods = [f"{name}-{number}" for number in range(self.replicas)]
        return [f"data-{pod}" for pod in pods]


def store_of(values: object) -> ChartStore:
    """The backing store that chart values configure; embedded if they switch none on.

    Of several types that are on, the first counts that vCluster checks. A switch is on if it is
    true, also as a text. One that only the update knows counts as off, and a number of pods as 1.
    """
    store = _store_type(values)
    if store == "etcd":
        members = _count(values, f"{ETCD}.statefulSet.highAvailability.replicas")
        claim = _claim(values, f"{ETCD}.statefulSet.persistence.volumeClaim")
        return ChartStore(store, members, claim=claim)
    if store in _ON_ITS_VOLUME:
        return ChartStore(store, replicas=_count(values, REPLICAS), claim=_claim(values, CLAIM))
    return ChartStore(store)


def _store_type(values: object) -> str:
    """The first type of SWITCHES that is on; embedded if none is."""
    for store, key in SWITCHES.items():
        if value_at(values, key) in (True, "true"):
            return store
    return EMBEDDED


def _count(values: object, key: str) -> int:
    """The number at a key, its whole part; 1 if there is none, or if it is a text.

    A plugin's outputs have no integers.
    """
    count = value_at(values, key)
    return int(count) if isinstance(count, int | float) else 1


def _claim(values: object, key: str) -> dict[str, Any]:
    """`storageClass` and `size` of the volume claim at a key, those that are set."""
    claim = pairs(value_at(values, key))
    return {name: claim[name] for name in ("storageClass", "size") if name in claim}
