"""What a vCluster of the sandbox writes on its host: the way in, and why there is none."""

import base64
import datetime
from pathlib import Path
from typing import Any, Final

import yaml

from sandbox.control_plane.command_lines import ControlPlane
from sandbox.control_plane.kube_api import Object
from sandbox.vcluster.config import VclusterConfig

_WARNING: Final = Path(__file__).with_name("warning.yaml")


def access_name(vcluster: str) -> str:
    """What the Secret is called that holds the way in."""
    return f"vc-{vcluster}"


def access_secret(plane: ControlPlane, config: VclusterConfig, service: Object) -> Object:
    """The Secret `vc-NAME`: a kubeconfig for the server that the configuration names."""
    name, admin = service["metadata"]["name"], plane.authority.path("admin")
    data = {
        "config": plane.authority.kubeconfig("admin", config.server, config.context).encode(),
        "certificate-authority": plane.authority.pair.certificate.read_bytes(),
        "client-certificate": admin.certificate.read_bytes(),
        "client-key": admin.key.read_bytes(),
        "token": b"",
    }
    metadata: dict[str, Any] = {"name": access_name(name), "labels": {"app": "vcluster"}}
    if config.set_owner:
        # It goes with the chart's Service then; otherwise only with the namespace.
        uid = service["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Service", "name": name, "uid": uid}
        metadata["ownerReferences"] = [owner]
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }


def warning(namespace: str, name: str, reason: str, message: str) -> Object:
    """An event of the vCluster's StatefulSet, for whoever describes it."""
    now = datetime.datetime.now(datetime.UTC)
    event: Object = yaml.safe_load(_WARNING.read_text(encoding="utf-8"))
    event["metadata"] = {"name": f"{name}.{now.timestamp():.6f}"}
    event["involvedObject"] |= {"name": name, "namespace": namespace}
    event["firstTimestamp"] = event["lastTimestamp"] = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return event | {"reason": reason, "message": message[:1000]}
