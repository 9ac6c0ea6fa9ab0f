"""Volumes: the sandbox's own provisioner, which gives every claim a volume that stores nothing."""

from pathlib import Path
from typing import Final

import yaml

from sandbox.control_plane.kube_api import AdminApi, Object

# Where kube-scheduler writes the node of the pod that waits for the claim.
NODE: Final = "volume.kubernetes.io/selected-node"
CLAIMS: Final = "/api/v1/persistentvolumeclaims"
VOLUMES: Final = "/api/v1/persistentvolumes"
_PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
_TEMPLATES: Final = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")


def ensure_storage_class(api: AdminApi) -> None:
    """Make the default StorageClass. Raises KubeError."""
    api.ensure("/apis/storage.k8s.io/v1/storageclasses", yaml.safe_load(_TEMPLATES)["storageClass"])


def provide(api: AdminApi) -> None:
    """Provision volumes for claims that a pod waits for, and delete those whose claim is gone.

    Raises KubeError.
    """
    for claim in api.get(CLAIMS)["items"]:
        if claim.get("status", {}).get("phase") == "Pending" and _ours(claim):
            volume = volume_for(claim)
            if api.find(f"{VOLUMES}/{volume['metadata']['name']}") is None:
                api.post(VOLUMES, volume)
    for volume in api.get(VOLUMES)["items"]:
        by = volume["metadata"].get("annotations", {}).get(_PROVISIONED_BY)
        if by == "kai-fleet/sandbox" and volume.get("status", {}).get("phase") == "Released":
            api.delete(f"{VOLUMES}/{volume['metadata']['name']}")


def _ours(claim: Object) -> bool:
    spec = claim["spec"]
    has_node = NODE in (claim["metadata"].get("annotations") or {})
    return has_node and spec.get("storageClassName") == "sandbox" and not spec.get("volumeName")


def volume_for(claim: Object) -> Object:
    """The volume bound to one claim."""
    volume: Object = yaml.safe_load(_TEMPLATES)["volume"]
    spec, name = claim["spec"], {key: claim["metadata"][key] for key in ("name", "namespace")}
    uid = claim["metadata"]["uid"]
    volume["metadata"]["name"] = f"pvc-{uid}"
    volume["spec"] |= {key: spec[key] for key in ("accessModes", "volumeMode") if key in spec}
    volume["spec"] |= {
        "capacity": {"storage": spec["resources"]["requests"]["storage"]},
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "uid": uid, **name},
        "hostPath": {"path": f"/simulated/{uid}"},
    }
    return volume
