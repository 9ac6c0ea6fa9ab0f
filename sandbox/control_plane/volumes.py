"""Volumes: the sandbox's own provisioner, which gives every claim a volume that stores nothing."""

from __future__ import annotations

from typing import Final

from sandbox.control_plane.kube_api import Api, Object

PROVISIONER: Final = "kai-fleet/sandbox"
# Where kube-scheduler writes the node of the pod that waits for the claim.
NODE: Final = "volume.kubernetes.io/selected-node"
_PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
CLAIMS: Final = "/api/v1/persistentvolumeclaims"
VOLUMES: Final = "/api/v1/persistentvolumes"
STORAGE_CLASS: Final = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {
        "name": "sandbox",
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
    },
    "provisioner": PROVISIONER,
    # With Immediate, a claim that is bound while its pod is being scheduled can leave the pod
    # Pending for five minutes: kube-scheduler looks at a copy that is older than the event.
    "volumeBindingMode": "WaitForFirstConsumer",
    "reclaimPolicy": "Delete",
}


def ensure_storage_class(api: Api) -> None:
    """Make the default StorageClass. Raises KubeError."""
    api.ensure("/apis/storage.k8s.io/v1/storageclasses", STORAGE_CLASS)


def provide(api: Api) -> None:
    """Give claims that a pod waits for their volumes, and take back volumes whose claim is gone.

    Raises KubeError.
    """
    for claim in api.get(CLAIMS)["items"]:
        if claim.get("status", {}).get("phase") == "Pending" and _ours(claim):
            volume = volume_for(claim)
            if api.find(f"{VOLUMES}/{volume['metadata']['name']}") is None:
                api.post(VOLUMES, volume)
    for volume in api.get(VOLUMES)["items"]:
        by = volume["metadata"].get("annotations", {}).get(_PROVISIONED_BY)
        if by == PROVISIONER and volume.get("status", {}).get("phase") == "Released":
            api.delete(f"{VOLUMES}/{volume['metadata']['name']}")


def _ours(claim: Object) -> bool:
    spec = claim["spec"]
    wanted = NODE in (claim["metadata"].get("annotations") or {})
    return wanted and spec.get("storageClassName") == "sandbox" and not spec.get("volumeName")


def volume_for(claim: Object) -> Object:
    """The volume bound to one claim: its path is a name only, no pod ever opens it."""
    metadata, spec = claim["metadata"], claim["spec"]
    named = {key: metadata[key] for key in ("name", "namespace", "uid")}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": f"pvc-{metadata['uid']}",
            "annotations": {_PROVISIONED_BY: PROVISIONER},
        },
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **named},
            "hostPath": {"path": f"/simulated/{metadata['uid']}"},
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": "sandbox",
            "volumeMode": spec.get("volumeMode", "Filesystem"),
        },
    }
