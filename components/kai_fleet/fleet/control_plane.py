"""The chart's values for the keys of a control plane: how it is reached, its replicas, its store,
its resources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kai_fleet.releases.chart_values import merged, nested
from kai_fleet.releases.vcluster_store import CLAIM, ETCD

if TYPE_CHECKING:  # a policy pack starts without the types of settings
    from kai_fleet.settings.sections.access import Access
    from kai_fleet.settings.sections.control_plane import ControlPlaneResources, Store
    from kai_fleet.settings.sections.teams import Vcluster

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
    resources = _resources(vcluster.resources)
    return merged(
        nested(REPLICAS, vcluster.replicas) if vcluster.replicas != 1 else {},
        _store(vcluster, vcluster.store),
        nested(RESOURCES, resources) if resources else {},
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


def _store(vcluster: Vcluster, store: Store) -> dict[str, Any]:
    claim = _said(storageClass=vcluster.storage_class, size=vcluster.size)
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
        return merged(own, nested("controlPlane.backingStore.etcd.embedded.enabled", True))
    return own


def _resources(resources: ControlPlaneResources) -> dict[str, Any]:
    """The requests and limits that are said, with a dash for each `_`: ephemeral-storage."""
    parts = {
        kind: _said(**{name.replace("_", "-"): amount for name, amount in amounts})
        for kind, amounts in resources
    }
    return {kind: amounts for kind, amounts in parts.items() if amounts}


def _said(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
