"""What each value of vCluster's chart means to other teams: a decision for every area of it.

The longest key that a value lies below decides. A key below none is refused until its area is
decided about: what a newer chart brings is not let through in silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

RIGHTS: Final = "gives the vCluster rights on the host"
OTHERS: Final = "lets the vCluster change or read what is everybody's"
HOST: Final = "reaches the host itself"
ELSEWHERE: Final = "puts the team's credentials, or what it syncs, where others are"
OPEN: Final = "lets somebody else into the team's API, or leads its calls elsewhere"
STATE: Final = "keeps the team's whole state where the platform does not know"
NODES: Final = "brings nodes of its own, which nothing here bounds"
PROGRAMS: Final = "runs other programs as the control plane, with its account and on its nodes"
UNJUDGED: Final = "nobody has judged for teams that are kept apart"

REFUSED: Final[Mapping[str, str]] = {
    "rbac.clusterRole": RIGHTS,
    "rbac.role": RIGHTS,
    "rbac.enableVolumeSnapshotRules": RIGHTS,
    "controlPlane.advanced.serviceAccount": RIGHTS,
    "controlPlane.advanced.workloadServiceAccount": RIGHTS,
    "plugin": RIGHTS,
    "plugins": RIGHTS,
    # The chart gives its account any Secret of any namespace that is named here.
    "platform": RIGHTS,
    "external": RIGHTS,
    "snapshots": RIGHTS,
    **{
        f"integrations.{name}": RIGHTS
        for name in ("certManager", "externalSecrets", "istio", "kubeVirt", "argoCD", "netris")
    },
    "integrations.metricsServer.nodes": RIGHTS,
    "integrations.metricsServer.apiService": OTHERS,
    "experimental.nodeMonitors": RIGHTS,
    "experimental.genericSync": RIGHTS,
    "experimental.isolatedControlPlane": RIGHTS,
    "experimental.proxy": OTHERS,
    "experimental.docker": HOST,
    "experimental.deploy.host": HOST,
    "experimental.syncSettings.targetNamespace": ELSEWHERE,
    "experimental.syncSettings.hostMetricsBindAddress": OPEN,
    "experimental.syncSettings.virtualMetricsBindAddress": OPEN,
    "experimental.virtualClusterKubeConfig": OPEN,
    "exportKubeConfig.insecure": OPEN,
    "exportKubeConfig.server": OPEN,
    "exportKubeConfig.serviceAccount": OPEN,
    "exportKubeConfig.secret.namespace": ELSEWHERE,
    "controlPlane.hostPathMapper": HOST,
    "controlPlane.standalone": HOST,
    "controlPlane.endpoint": NODES,
    "controlPlane.advanced.kubeVip": HOST,
    "controlPlane.advanced.cloudControllerManager": NODES,
    "controlPlane.advanced.konnectivity": NODES,
    "controlPlane.advanced.registry": "serves images that the platform does not know",
    "controlPlane.backingStore.database.external.connector": RIGHTS,
    "controlPlane.backingStore.database.embedded.dataSource": STATE,
    "controlPlane.coredns.overwriteManifests": PROGRAMS,
    "controlPlane.service.spec.externalIPs": "takes other teams' traffic",
    "controlPlane.service.spec.externalName": "leads elsewhere",
    "controlPlane.service.spec.selector": "leads elsewhere",
    "controlPlane.statefulSet.initContainers": PROGRAMS,
    "controlPlane.statefulSet.sidecarContainers": PROGRAMS,
    "controlPlane.statefulSet.hostAliases": OPEN,
    "policies.networkPolicy": "adds network policies, and these only allow more",
    "policies.centralAdmission": OPEN,
    "sync.toHost.customResources": RIGHTS,
    "sync.fromHost.customResources": OTHERS,
    "sync.fromHost.nodes.syncBackChanges": OTHERS,
    "sync.fromHost.secrets": OTHERS,
    "sync.fromHost.configMaps": OTHERS,
    "sync.fromHost.gateways": OTHERS,
    "sync.toHost.persistentVolumes": OTHERS,
    "sync.toHost.storageClasses": OTHERS,
    "sync.toHost.priorityClasses": OTHERS,
    "sync.toHost.volumeSnapshotContents": OTHERS,
    "sync.toHost.networkPolicies": "lets the team open the network policies of its namespace",
    "sync.toHost.namespaces": "makes namespaces on the host that nothing bounds",
    "networking.replicateServices": OTHERS,
    "networking.resolveDNS": "leads the team's names to services of others",
    "networking.advanced.proxyKubelets": RIGHTS,
    "privateNodes": NODES,
    "deploy": NODES,
}

# What stays within the team, or is held on the host whoever asks for it: Pod Security, the guard,
# quotas. Images are the rule sources-known's, flags, commands and variables vcluster-flags'.
ALLOWED: Final = (
    "global",
    "pro",
    "serviceCIDR",
    "telemetry",
    "logging",
    "sleep",
    "sleepMode",
    "deletion",
    "exportKubeConfig.context",
    "exportKubeConfig.secret.name",
    "exportKubeConfig.additionalSecrets",
    "policies.resourceQuota",
    "policies.limitRange",
    "policies.podSecurityStandard",
    "controlPlane.distro",
    "controlPlane.backingStore",
    "controlPlane.coredns",
    "controlPlane.proxy",
    "controlPlane.service",
    "controlPlane.ingress",
    "controlPlane.tlsRoute",
    "controlPlane.serviceMonitor",
    "controlPlane.statefulSet",
    "controlPlane.advanced.defaultImageRegistry",
    "controlPlane.advanced.virtualScheduler",
    "controlPlane.advanced.headlessService",
    "controlPlane.advanced.podDisruptionBudget",
    "controlPlane.advanced.globalMetadata",
    "networking.advanced.clusterDomain",
    "networking.advanced.fallbackHostCluster",
    "networking.podCIDR",
    "networking.serviceCIDR",
    "integrations.metricsServer.enabled",
    "integrations.metricsServer.pods",
    "deploy.metricsServer",
    "deploy.ingressNginx",
    "deploy.volumeSnapshotController",
    "experimental.deploy.vcluster",
    "experimental.denyProxyRequests",
    "experimental.syncSettings.setOwner",
    *(
        f"sync.toHost.{kind}"
        for kind in (
            *("pods", "secrets", "configMaps", "ingresses", "gatewayApi", "services"),
            *("endpoints", "endpointSlices", "persistentVolumeClaims", "podDisruptionBudgets"),
            *("serviceAccounts", "volumeSnapshots", "resourceClaims", "resourceClaimTemplates"),
        )
    ),
    *(
        f"sync.fromHost.{kind}"
        for kind in (
            *("nodes", "events", "ingressClasses", "gatewayClasses", "runtimeClasses"),
            *("priorityClasses", "storageClasses", "csiNodes", "csiDrivers"),
            *("csiStorageCapacities", "volumeSnapshotClasses", "deviceClasses"),
        )
    ),
)

# Values that the program writes itself, and the key to write instead.
OWN: Final[Mapping[str, str]] = {
    "sync.fromHost.nodes.selector": "nodePool of the team",
    "controlPlane.statefulSet.scheduling.nodeSelector": "nodePool of vcluster",
    "controlPlane.backingStore.etcd.deploy.statefulSet.scheduling.nodeSelector": (
        "nodePool of vcluster"
    ),
}
# What the program writes, so that a null there, or above, brings the chart's own back.
WRITTEN: Final = (
    *("rbac.clusterRole.enabled", "rbac.role.enabled", "policies.podSecurityStandard"),
    *(f"networking.advanced.proxyKubelets.{key}" for key in ("byHostname", "byIP")),
    *OWN,
)
# Mappings whose keys are names: `enabled` among them is one more of these and switches nothing off.
BY_NAME: Final = frozenset(
    {
        *("plugin", "plugins", "experimental.proxy.customResources", "integrations.netris"),
        *("sync.toHost.customResources", "sync.fromHost.customResources", "external", "platform"),
    }
)
# Volumes that hold something of the team's own namespace.
VOLUMES: Final = frozenset(
    {"name", "configMap", "downwardAPI", "emptyDir", "persistentVolumeClaim", "projected", "secret"}
)
VOLUME_LISTS: Final = (
    *(
        f"controlPlane.statefulSet.persistence.{key}"
        for key in ("addVolumes", "dataVolume", "binariesVolume")
    ),
    "controlPlane.backingStore.etcd.deploy.statefulSet.persistence.addVolumes",
)
# What an additional Secret with the team's kubeconfig may say: it stays in the team's namespace.
SECRET_KEYS: Final = frozenset({"name", "context"})

_DECIDED: Final[Mapping[str, str | None]] = {**dict.fromkeys(ALLOWED), **REFUSED}
_ABOVE: Final = frozenset(
    ".".join(key.split(".")[:n]) for key in (*_DECIDED, *OWN) for n in range(1, key.count(".") + 1)
)


def decided(key: str) -> tuple[str, str | None] | None:
    """The longest key that decides about this one, and why it is refused; None: none does."""
    parts = key.split(".")
    for n in range(len(parts), 0, -1):
        above = ".".join(parts[:n])
        if above in _DECIDED:
            return above, _DECIDED[above]
    return None


def has_more_below(key: str) -> bool:
    """Whether single keys below this one are decided about by themselves."""
    return key in _ABOVE
