"""What a stack installs: charts with their values, and what vCluster's says of a control plane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from kai_fleet.releases.chart_values import merged, nested
from kai_fleet.values import value_at

if TYPE_CHECKING:
    from kai_fleet.settings.sections.access import Access
    from kai_fleet.settings.sections.vcluster import ControlPlaneResources, Vcluster


ChartName: TypeAlias = Literal["kai", "vcluster", "gpu"]


@dataclass(frozen=True)
class InstalledChart:
    """One chart with its values, or another part of the settings that names images.

    `chart` is another one than the table's, None where that is taken. `path` is where `chart` and
    `values` stand; `stands` are the paths of values that were merged, the strongest first.
    `by_name`: on the host KAI's pods pass as such by the names of their images. `hidden`: part of
    it is a secret, so that no message repeats any of it. `own_stack`: it is a team stack's.
    """

    of: ChartName
    subject: str
    path: str
    chart: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    stands: tuple[tuple[str, Mapping[str, object]], ...] = field(default=(), hash=False)
    by_name: bool = False
    hidden: bool = False
    own_stack: bool = False

    def place_of(self, key: str) -> str:
        """The path of a value, where it is written."""
        if self.path.startswith("urn:"):
            return self.path
        steps = key.replace("[", ".[").split(".")
        stands = self.stands or ((f"{self.path}.values", {}),)
        for path, values in stands:
            if _has(values, steps):
                return f"{path}.{key}"
        return f"{stands[0][0]}.{key}"


def _has(values: object, steps: list[str]) -> bool:
    for step in steps:
        if not isinstance(values, Mapping):
            return True  # below here is one value, such as a list
        if step not in values:
            return False
        values = values[step]
    return True


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
    def words(self) -> str:
        """For example `etcd of 3`."""
        return f"{self.type} of {self.members}" if self.members > 1 else self.type

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
    said = claim if isinstance(claim, Mapping) else {}
    return ChartStore(
        kind,
        int(members) if isinstance(members, int | float) else 1,  # outputs have no integers
        {key: said[key] for key in ("storageClass", "size") if key in said},
    )


REPLICAS: Final = "controlPlane.statefulSet.highAvailability.replicas"
RESOURCES: Final = "controlPlane.statefulSet.resources"
DATA_SOURCE: Final = "controlPlane.backingStore.database.external.dataSource"

_REQUESTS: Final = {"cpu": "200m", "memory": "256Mi", "ephemeral-storage": "1Gi"}
_LIMITS: Final = {"memory": "4Gi", "ephemeral-storage": "10Gi"}
_LIMITS_BEFORE_V0_30: Final = {"memory": "2Gi", "ephemeral-storage": "8Gi"}
# Of each etcd that the chart deploys, in every version.
ETCD_REQUESTS: Final = {"cpu": "20m", "memory": "150Mi"}


def default_resources(version: str) -> dict[str, dict[str, str]]:
    """The requests and limits that the chart of this version gives a control plane."""
    numbers = version.removeprefix("v").split(".")
    old = numbers[0] == "0" and len(numbers) > 1 and numbers[1].isdigit() and int(numbers[1]) < 30
    return {"requests": dict(_REQUESTS), "limits": dict(_LIMITS_BEFORE_V0_30 if old else _LIMITS)}


def control_plane_values(vcluster: Vcluster) -> dict[str, Any]:
    """What a vCluster's own keys say, as its chart reads it; a data source is in clear there."""
    return merged(
        nested(REPLICAS, vcluster.replicas) if vcluster.replicas != 1 else {},
        _store_values(vcluster),
        _resource_values(vcluster.resources),
    )


def access_values(access: Access) -> dict[str, Any]:
    """The Service of the API, and the Ingress or TLSRoute that leads a host name to it."""
    noted = {"annotations": dict(access.annotations)} if access.annotations else {}
    if access.led_by_name:
        led: dict[str, Any] = {"enabled": True, "host": access.host, **noted}
        if access.type == "Ingress":
            spec = {"spec": {"ingressClassName": access.class_}} if access.class_ else {}
            front = {"ingress": {**led, **spec}}
        else:
            space, _, gateway = (access.gateway or "").partition("/")
            front = {"tlsRoute": {**led, "parentRefs": [{"namespace": space, "name": gateway}]}}
        return {"controlPlane": {"service": {"spec": {"type": "ClusterIP"}}, **front}}
    own = _said(loadBalancerClass=access.load_balancer_class)
    if access.load_balancer_source_ranges:
        own["loadBalancerSourceRanges"] = list(access.load_balancer_source_ranges)
    service: dict[str, Any] = {"spec": {"type": access.type, **own}, **noted}
    if access.type == "NodePort" and access.port is not None:
        service["httpsNodePort"] = access.port
    return {"controlPlane": {"service": service}}


def _store_values(vcluster: Vcluster) -> dict[str, Any]:
    store, claim = vcluster.store, _said(storageClass=vcluster.storage_class, size=vcluster.size)
    match store.type:
        case "external":
            secret = store.data_source
            url = secret.get_secret_value() if secret is not None else None
            return nested(DATA_SOURCE.rpartition(".")[0], {"enabled": True, "dataSource": url})
        case "etcd":
            claim |= _said(storageClass=store.storage_class, size=store.size)
            members = _said(replicas=store.replicas)
            stateful = {
                # Where a quota counts it, every pod has to say it, and the chart's etcd does not.
                "resources": {"requests": {"ephemeral-storage": "1Gi"}},
                **({"highAvailability": members} if members else {}),
                **({"persistence": {"volumeClaim": claim}} if claim else {}),
            }
            return nested(ETCD, {"enabled": True, "statefulSet": stateful})
    own = nested(CLAIM, claim) if claim else {}
    if store.type == "embeddedEtcd":
        return merged(own, nested(SWITCHES[store.type], True))
    return own


def _resource_values(resources: ControlPlaneResources) -> dict[str, Any]:
    """The requests and limits that are said, with a dash for each `_`: ephemeral-storage."""
    parts = {
        kind: said
        for kind, amounts in resources
        if (said := _said(**{name.replace("_", "-"): amount for name, amount in amounts}))
    }
    return nested(RESOURCES, parts) if parts else {}


def _said(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
