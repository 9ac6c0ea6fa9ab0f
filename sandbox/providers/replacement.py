"""Which properties of a kind cannot change in place, so that the object is replaced."""

from __future__ import annotations

from typing import Any, Final

from provider.paths import Path

from .kinds import Kind

_IDENTITY: Final[tuple[Path, ...]] = (("metadata", "name"), ("metadata", "namespace"), ("kind",))

_POD_FIELDS: Final = (
    "affinity",
    "automountServiceAccountToken",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "hostAliases",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostname",
    "imagePullSecrets",
    "nodeName",
    "nodeSelector",
    "overhead",
    "preemptionPolicy",
    "priority",
    "priorityClassName",
    "readinessGates",
    "restartPolicy",
    "runtimeClassName",
    "schedulerName",
    "securityContext",
    "serviceAccount",
    "serviceAccountName",
    "shareProcessNamespace",
    "subdomain",
    "terminationGracePeriodSeconds",
    "volumes",
    "containers",
    "initContainers",
)
_CLAIM_FIELDS: Final = ("accessModes", "selector", "storageClassName", "volumeName")
_VOLUME_SOURCES: Final = (
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "csi",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "glusterfs",
    "hostPath",
    "iscsi",
    "local",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
)
_SET_FIELDS: Final = (
    "podManagementPolicy",
    "revisionHistoryLimit",
    "selector",
    "serviceName",
    "volumeClaimTemplates",
)


def _spec(*fields: str) -> tuple[Path, ...]:
    return tuple(("spec", field) for field in fields)


# By (group, kind), alike in all versions of a group.
_FIXED: Final[dict[tuple[str, str], tuple[Path, ...]]] = {
    ("", "PersistentVolume"): _spec(*_VOLUME_SOURCES),
    ("", "PersistentVolumeClaim"): _spec(*_CLAIM_FIELDS),
    ("", "Pod"): _spec(*_POD_FIELDS),
    ("", "ResourceQuota"): _spec("scopes"),
    ("", "Secret"): (("type",),),
    ("", "Service"): _spec("clusterIP"),
    ("apps", "DaemonSet"): _spec("selector"),
    ("apps", "Deployment"): _spec("selector"),
    ("apps", "StatefulSet"): _spec(*_SET_FIELDS),
    ("batch", "Job"): _spec("completions", "parallelism", "selector", "template"),
    ("node.k8s.io", "RuntimeClass"): (("handler",),),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): (("roleRef",),),
    ("rbac.authorization.k8s.io", "RoleBinding"): (("roleRef",),),
    ("scheduling.k8s.io", "PriorityClass"): (("value",), ("preemptionPolicy",)),
    ("storage.k8s.io", "StorageClass"): (
        ("parameters",),
        ("provisioner",),
        ("reclaimPolicy",),
        ("volumeBindingMode",),
    ),
}


def fixed_paths(
    kind: Kind, inputs: dict[str, Any], mutable_config_maps: bool, mutable_secrets: bool
) -> list[Path]:
    """The paths whose change replaces an object of this kind.

    ConfigMaps and Secrets are replaced when their content changes, unless the
    provider is configured otherwise, as the official one does it.
    """
    found = [*_IDENTITY, *_FIXED.get((kind.group, kind.name), ())]
    sealed = inputs.get("immutable") is True
    if kind == Kind("v1", "ConfigMap") and (sealed or not mutable_config_maps):
        found += [("data",), ("binaryData",)]
    if kind == Kind("v1", "Secret") and (sealed or not mutable_secrets):
        found += [("data",), ("stringData",)]
    return found
