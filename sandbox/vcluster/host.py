"""The host cluster, as the sandbox's vClusters need it."""

import datetime
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sandbox.control_plane.command_lines import ControlPlane
from sandbox.control_plane.kube_api import Object
from sandbox.control_plane.processes import Processes
from sandbox.nodes.fake_nodes import NODES
from sandbox.vcluster.declared import Endpoint
from sandbox.vcluster.syncer import RUNTIME_CLASSES

Name = tuple[str, str]
"""Namespace and name; without a namespace, "" and name."""
_OF_VCLUSTERS: Final = "app=vcluster"
_OF_STORES: Final = "app in (vcluster,vcluster-etcd)"
_REVISION: Final = "deployment.kubernetes.io/revision"


class Host:
    """The host's API, the sandbox's processes, and its objects as last read."""

    def __init__(self, plane: ControlPlane, tools: Mapping[str, Path]) -> None:
        self.api, self.etcd, self.tools = plane.api(), plane.etcd, tools
        self.processes = Processes(plane.directory)
        self.control_planes: dict[Name, Object] = {}
        self.services: dict[Name, Object] = {}
        self.secrets: dict[Name, Object] = {}
        self.claims: dict[Name, Object] = {}
        self.pods: dict[Name, Object] = {}
        self.nodes: dict[Name, Object] = {}
        self.runtime_classes: dict[Name, Object] = {}
        self.endpoints: dict[Name, Endpoint] = {}
        """Where vClusters listen. Two that choose at once must not choose the same port."""
        self.choice = threading.Lock()

    def read(self) -> None:
        """Read all objects anew. Raises KubeError, and then some may be as they were."""
        self.control_planes = self._list("/apis/apps/v1/statefulsets", _OF_VCLUSTERS)
        # Without a volume of its own the chart makes a Deployment.
        self.control_planes |= self._list("/apis/apps/v1/deployments", _OF_VCLUSTERS)
        self.services = self._list("/api/v1/services", _OF_VCLUSTERS)
        self.secrets = self._list("/api/v1/secrets", _OF_VCLUSTERS)
        self.claims = self._list("/api/v1/persistentvolumeclaims", _OF_STORES)
        self.pods = self._list("/api/v1/pods", _OF_VCLUSTERS)
        self.nodes = self._list(NODES)
        self.runtime_classes = self._list(RUNTIME_CLASSES)

    def _list(self, path: str, selector: str = "") -> dict[Name, Object]:
        # The API server answers from its cache, which is new enough, and reads nothing from etcd.
        found = self.api.list(path, labelSelector=selector, resourceVersion="0")
        pairs = ((item["metadata"], item) for item in found)
        return {(about.get("namespace", ""), about["name"]): item for about, item in pairs}

    def started(self, namespace: str, name: str) -> tuple[str, str]:
        """The revision of a vCluster's pod, once it is rolled out, and its version."""
        found = self.control_planes.get((namespace, name), {})
        chart = found.get("metadata", {}).get("labels", {}).get("chart", "")
        of_deployment = found.get("metadata", {}).get("annotations", {}).get(_REVISION, "")
        revision = found.get("status", {}).get("currentRevision", of_deployment)
        return revision, f"v{chart.removeprefix('vcluster-')}"

    def claim_uid(self, namespace: str, name: str) -> str:
        """The UID of the first claim of a vCluster's store; "" without one."""
        of_store = {
            key: item["metadata"]["uid"]
            for key, item in self.claims.items()
            if key[0] == namespace and item["metadata"]["labels"].get("release") == name
        }
        return of_store[min(of_store)] if of_store else ""

    def has_pod(self, namespace: str, name: str) -> bool:
        """Whether a pod of a vCluster's control plane runs."""
        return any(
            place[0] == namespace
            and pod["metadata"]["labels"].get("release") == name
            and pod["status"].get("phase") == "Running"
            and "deletionTimestamp" not in pod["metadata"]
            for place, pod in self.pods.items()
        )

    def versions(self, namespace: str) -> list[str]:
        """The versions of the objects on which a vCluster of the namespace depends."""
        own = (self.control_planes, self.services, self.secrets, self.claims, self.pods)
        found = [each[name] for each in own for name in each if name[0] == namespace]
        everywhere = (*self.nodes.values(), *self.runtime_classes.values())
        return [item["metadata"]["resourceVersion"] for item in (*found, *everywhere)]


def log(text: str) -> None:
    """A line in the supervisor's log."""
    print(f"{datetime.datetime.now():%H:%M:%S} {text}", flush=True)
