"""Kinds: what a type token names, and where the API server serves it."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

from provider.plugin import PluginError

from .rest import ApiError, Cluster

# Built-in kinds without a namespace, for previews while no cluster answers.
CLUSTER_SCOPED = frozenset(
    {
        "APIService",
        "ClusterRole",
        "ClusterRoleBinding",
        "CSIDriver",
        "CSINode",
        "CustomResourceDefinition",
        "DeviceClass",
        "FlowSchema",
        "IngressClass",
        "MutatingWebhookConfiguration",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "PriorityLevelConfiguration",
        "RuntimeClass",
        "StorageClass",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
        "VolumeAttachment",
    }
)


class NoMatchError(PluginError):
    """The API server does not serve the kind (yet)."""


@dataclass(frozen=True)
class Kind:
    """A kind of object: its API version ("v1", "apps/v1") and name ("Deployment")."""

    api_version: str
    name: str

    @property
    def group(self) -> str:
        """The API group, "" for the core kinds."""
        return self.api_version.rpartition("/")[0]

    @property
    def token(self) -> str:
        """The kind's type token, as `pulumi import` wants it."""
        version = self.api_version if self.group else f"core/{self.api_version}"
        return f"kubernetes:{version}:{self.name}"


@dataclass(frozen=True)
class Served:
    """Where a kind is served: its plural name, and whether it has a namespace."""

    kind: Kind
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        """The URL path of the kind's collection, or of the object `name` in it."""
        version = self.kind.api_version
        path = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if self.namespaced:
            path += f"/namespaces/{namespace}"
        path += f"/{self.plural}"
        return f"{path}/{name}" if name else path


def of_token(token: str) -> Kind:
    """The kind of a type token such as `kubernetes:apps/v1:Deployment`."""
    parts = token.split(":")
    if len(parts) != 3:
        raise PluginError(f"{token} is not the type of a Kubernetes object")
    group, _, version = parts[1].rpartition("/")
    if group in ("", "core"):
        return Kind(version, parts[2])
    return Kind(f"{group}/{version}", parts[2])


def of_object(obj: dict[str, Any], token: str) -> Kind:
    """The kind that an object says it has, else the one of its type token."""
    from_token = of_token(token)
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    return Kind(
        api_version if isinstance(api_version, str) and api_version else from_token.api_version,
        kind if isinstance(kind, str) and kind else from_token.name,
    )


def of_urn(urn: str) -> str:
    """The type token of a resource's URN, without its parents' types."""
    return urn.split("::")[2].rpartition("$")[2]


def declared_kind(crd: dict[str, Any]) -> tuple[str, str]:
    """The (group, kind) that a CRD defines."""
    spec = crd.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(names, dict):
        return "", ""
    return str(spec.get("group")), str(names.get("kind"))


def is_namespaced(crd: dict[str, Any]) -> bool:
    """Whether objects of the kind that a CRD defines have a namespace."""
    spec = crd.get("spec")
    return isinstance(spec, dict) and spec.get("scope") == "Namespaced"


class Discovery:
    """What the cluster serves, asked by API version and remembered."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self._served: dict[str, dict[str, Served]] = {}
        self._asked: dict[str, float] = {}

    def find(self, kind: Kind, patient: bool = True) -> Served:
        """Where `kind` is served; one not seen before is asked for again. Raises NoMatchError."""
        with self._lock:
            found = self._served.get(kind.api_version, {}).get(kind.name)
            age = time.monotonic() - self._asked.get(kind.api_version, -60.0)
        if found is not None:
            return found
        if age > 0.2:
            found = self._ask(kind.api_version, patient).get(kind.name)
        if found is None:
            raise NoMatchError(
                f'no matches for kind "{kind.name}" in version "{kind.api_version}": '
                "the API server does not serve it, so its CustomResourceDefinition is not there yet"
            )
        return found

    def _ask(self, api_version: str, patient: bool) -> dict[str, Served]:
        prefix = "/apis" if "/" in api_version else "/api"
        served: dict[str, Served] = {}
        try:
            answer = self._cluster.request("GET", f"{prefix}/{api_version}", patient=patient)
        except ApiError as error:
            if not error.missing:
                raise
        else:
            for entry in answer.get("resources") or []:
                if "/" not in entry["name"]:  # a subresource, such as pods/status
                    kind = Kind(api_version, entry["kind"])
                    served[kind.name] = Served(kind, entry["name"], bool(entry["namespaced"]))
        with self._lock:
            self._served[api_version] = served
            self._asked[api_version] = time.monotonic()
        return served

    def forget(self, group: str) -> None:
        """Asks anew for the group's kinds, after a CRD of it was made, changed or deleted."""
        with self._lock:
            for api_version in [v for v in self._served if v.rpartition("/")[0] == group]:
                del self._served[api_version]
                self._asked.pop(api_version, None)
