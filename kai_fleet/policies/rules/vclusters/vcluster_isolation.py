"""No chart value that grants rights on the host, or undoes what keeps teams from each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kai_fleet.policies.adapters import plain
from kai_fleet.policies.model import UNKNOWN, Cluster, called
from kai_fleet.policies.problem import Level, Problem, Severity, at, mandatory, undecided

NAME = "vcluster-isolation"
LEVEL = Level.MANDATORY
SEVERITY = Severity.CRITICAL
WHY = (
    "Whoever writes the values of a vCluster would decide what it may do on the host, to all teams"
    " (T12)."
)
REMEDY = "Drop the value, or write isolation: {level: off} for that team if it is meant."

_RIGHTS: Final = "gives the vCluster rights on the host"
_OTHERS: Final = "lets the vCluster change or read what is everybody's"
_HOST: Final = "reaches the host itself"
_KEYS: Final[Mapping[str, str]] = {
    "rbac.clusterRole": _RIGHTS,
    "rbac.role": _RIGHTS,
    "rbac.enableVolumeSnapshotRules": _RIGHTS,
    "controlPlane.advanced.serviceAccount": _RIGHTS,
    "controlPlane.advanced.workloadServiceAccount": _RIGHTS,
    "plugin": _RIGHTS,
    "plugins": _RIGHTS,
    # The chart gives its account any Secret of any namespace that is named here.
    "platform": _RIGHTS,
    "external.platform": _RIGHTS,
    "experimental.multiNamespaceMode": _RIGHTS,
    "experimental.nodeMonitors": _RIGHTS,
    "sync.toHost.customResources": _RIGHTS,
    "sync.fromHost.customResources": _OTHERS,
    "policies.networkPolicy": "adds network policies, and these only allow more",
    "integrations.metricsServer.nodes": _RIGHTS,
    "integrations.kubeVirt": _RIGHTS,
    "integrations.externalSecrets": _RIGHTS,
    "integrations.certManager": _RIGHTS,
    "integrations.istio": _RIGHTS,
    "experimental.genericSync": _RIGHTS,
    "experimental.deploy.host": _HOST,
    "controlPlane.hostPathMapper": _HOST,
    "controlPlane.advanced.kubeVip": _HOST,
    "sync.fromHost.nodes.syncBackChanges": _OTHERS,
    "sync.fromHost.secrets": _OTHERS,
    "sync.fromHost.configMaps": _OTHERS,
    "sync.toHost.persistentVolumes": _OTHERS,
    "sync.toHost.storageClasses": _OTHERS,
    "sync.toHost.priorityClasses": _OTHERS,
    "sync.toHost.volumeSnapshotContents": _OTHERS,
    "sync.toHost.networkPolicies": "lets the team open the network policies of its namespace",
    "sync.toHost.namespaces": "makes namespaces on the host that nothing bounds",
    "networking.replicateServices": _OTHERS,
}
# Values that the program writes itself, and the key to write instead.
_OWN: Final[Mapping[str, str]] = {
    "sync.fromHost.nodes.selector": "nodePool of the team",
    "controlPlane.statefulSet.scheduling.nodeSelector": "nodePool of vcluster",
    "controlPlane.backingStore.etcd.deploy.statefulSet.scheduling.nodeSelector": (
        "nodePool of vcluster"
    ),
}
_STANDARD: Final = "policies.podSecurityStandard"


def check(cluster: Cluster) -> Iterator[Problem]:
    """The values of each vCluster that is to be isolated."""
    for team in cluster.virtual_clusters:
        if team.isolation in (None, "off"):
            continue
        subject, path = f"vCluster {called(team.name)}", at(team.path, "vcluster", "values")
        if team.values is UNKNOWN:
            yield undecided(NAME, subject, path, "its values are known")
            continue
        for key, message in _found(team.values):
            yield mandatory(NAME, subject, at(path, key), message)


def _found(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    meant = "drop it, or write isolation: {level: off} for the team if that is meant"
    for key, what in _KEYS.items():
        if _says(plain.get(values, *key.split("."))):
            yield key, f"has {key}, which {what}; {meant}"
    for key, instead in _OWN.items():
        if plain.get(values, *key.split(".")) is not None:
            yield key, f"has {key}, which is where the team's pods may go; write {instead} instead"
    if plain.get(values, *_STANDARD.split(".")) in ("", "privileged"):
        yield _STANDARD, f"lifts the Pod Security of the vCluster; {meant}"


def _says(value: object) -> bool:
    """Whether a value switches something on, or adds something."""
    if isinstance(value, Mapping):
        if value.get("enabled") is False:
            return False
        return any(_says(item) for item in value.values())
    return value not in (None, False, "", [], "auto")
