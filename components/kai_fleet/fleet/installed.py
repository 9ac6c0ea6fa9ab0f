"""What a stack installs: charts with their values, and what vCluster's says of a control plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from kai_fleet.fleet.chart_stores import (
    CLAIM,
    DATA_SOURCE,
    ETCD,
    REPLICAS,
    RESOURCES,
    SWITCHES,
)
from kai_fleet.releases.chart_values import merged, nested

if TYPE_CHECKING:
    from kai_fleet.settings.sections.access import Access
    from kai_fleet.settings.sections.vcluster import ControlPlaneResources, Vcluster


ChartName: TypeAlias = Literal["kai", "vcluster", "gpu"]


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
