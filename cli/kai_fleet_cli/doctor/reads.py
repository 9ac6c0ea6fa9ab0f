"""What the doctor reads of an API server: the kinds, and what of them this user may not list."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final

from kai_fleet.fleet.model import HOST
from kai_fleet_cli.doctor.cluster_state import ClusterState
from kubectl_fleet.kube.api import Api
from kubectl_fleet.kube.errors import RefusedError, UnreachableError
from kubectl_fleet.releases.keys import KAI_NAMESPACE

AT_ONCE: Final = 6  # questions to one API server
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_KAI: Final = f"namespaces/{KAI_NAMESPACE}"
# What is read of every API server, by kind; a selector keeps the answer small. `{}` is where the
# namespace goes for a user who may list the kind in one only.
READS: Final[Mapping[str, str]] = {
    "nodes": "/api/v1/nodes",
    "namespaces": "/api/v1/namespaces",
    "pods": "/api/v1/{}pods",
    "services": "/api/v1/{}services",
    "events": "/api/v1/{}events?fieldSelector=type=Warning",
    "bound": "/api/v1/{}events?fieldSelector=reason=Bound",
    "resourcequotas": "/api/v1/{}resourcequotas",
    "networkpolicies": "/apis/networking.k8s.io/v1/{}networkpolicies",
    "validatingadmissionpolicies": f"{_ADMISSION}/validatingadmissionpolicies",
    "validatingadmissionpolicybindings": f"{_ADMISSION}/validatingadmissionpolicybindings",
    "deployments": "/apis/apps/v1/{}deployments",
    "daemonsets": "/apis/apps/v1/{}daemonsets",
    "statefulsets": "/apis/apps/v1/{}statefulsets",
    "replicasets": "/apis/apps/v1/{}replicasets",
    "jobs": "/apis/batch/v1/{}jobs",
    "endpointslices": f"/apis/discovery.k8s.io/v1/{_KAI}/endpointslices",
    "runtimeclasses": "/apis/node.k8s.io/v1/runtimeclasses",
    "clusterroles": f"{_RBAC}/clusterroles",
    "validatingwebhookconfigurations": f"{_ADMISSION}/validatingwebhookconfigurations",
    "mutatingwebhookconfigurations": f"{_ADMISSION}/mutatingwebhookconfigurations",
    "queues": "/apis/scheduling.run.ai/v2/queues",
    "podgroups": "/apis/scheduling.run.ai/v2alpha2/podgroups",
    "configs": "/apis/kai.scheduler/v1/configs",
    "schedulingshards": "/apis/kai.scheduler/v1/schedulingshards",
    "topologies": "/apis/kai.scheduler/v1alpha1/topologies",
    "releases": f"/api/v1/{_KAI}/secrets?labelSelector=owner=helm,name=kai-scheduler",
    "clusterpolicycrd": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    "?fieldSelector=metadata.name=clusterpolicies.nvidia.com",
}
_OF_MONITORING: Final = (
    "/apis/monitoring.coreos.com/v1/podmonitors?fieldSelector=metadata.name=kai-fleet"
)
# Where groups of an identity provider enter a vCluster.
_OF_GROUPS: Final[Mapping[str, str]] = {
    "clusterrolebindings": f"{_RBAC}/clusterrolebindings",
    "rolebindings": f"{_RBAC}/{{}}rolebindings",
}
# Of the host alone, and for a cause alone: what a control plane waits for, and what leads to a
# vCluster by each type of access. Who may not read it misses a cause only.
_OF_HOST: Final[Mapping[str, str]] = {
    "persistentvolumeclaims": "/api/v1/{}persistentvolumeclaims",
    "storageclasses": "/apis/storage.k8s.io/v1/storageclasses",
}
_OF_ACCESS: Final[Mapping[str, Mapping[str, str]]] = {
    "Ingress": {"ingressclasses": "/apis/networking.k8s.io/v1/ingressclasses"},
    "Gateway": {"gateways": "/apis/gateway.networking.k8s.io/v1/gateways"},
}


def read(
    api: Api,
    blank: ClusterState,
    kinds: frozenset[str] | None = None,
    namespace: str | None = None,
    *,
    groups: bool = False,
) -> ClusterState:
    """A cluster with its objects. Raises UnreachableError where it stops answering.

    `kinds` are those that are read, None is all. `namespace` is read where this user may not list
    a kind in all, `groups` asks for what groups may do besides.
    """
    # No list, and asked for as one: credentials that are not accepted are told of alike.
    _, refused = api.lists({"version": "/version"}, 1)
    for error in refused.values():
        if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise UnreachableError(f"it answers {error}")
    optional = _optional(blank)
    reads = {**READS, **(_OF_GROUPS if groups else {}), **optional}
    if blank.wanted.monitoring:
        reads["podmonitors"] = _OF_MONITORING
    paths = {kind: path for kind, path in reads.items() if kinds is None or kind in kinds}
    objects, refused = api.lists(paths, AT_ONCE)
    if namespace is not None:
        denied = [kind for kind, it in refused.items() if it.status == HTTPStatus.FORBIDDEN]
        inside = {kind: paths[kind] for kind in denied if "{}" in paths[kind]}
        own, still = api.lists(inside, AT_ONCE, namespace)
        if "namespaces" in denied:
            with suppress(RefusedError):
                own["namespaces"] = [api.get(f"{paths['namespaces']}/{namespace}")]
        objects |= own
        refused = {kind: still.get(kind, it) for kind, it in refused.items() if kind not in own}
    unreadable = {
        kind: str(error)
        for kind, error in refused.items()
        if error.status != HTTPStatus.NOT_FOUND and kind not in optional
    }
    if kinds is None and not objects and not unreadable:
        raise UnreachableError("what answers there is no Kubernetes API")
    return replace(blank, objects=objects, unreadable=unreadable, now=datetime.now(UTC))


def _optional(blank: ClusterState) -> dict[str, str]:
    """What is read for a cause alone."""
    if blank.name != HOST:
        return {}
    types = {team.access.type for team in blank.wanted.virtual_clusters if team.access is not None}
    of_access = {kind: path for it in types for kind, path in _OF_ACCESS.get(it, {}).items()}
    return {**_OF_HOST, **of_access}
