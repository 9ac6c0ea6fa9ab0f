"""What a cluster has of something that an interrupted run had begun to make."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from kubernetes import client
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from fleet.api_reader import (
    SECONDS,
    Reader,
    Refused,
    Unreachable,
    client_of_context,
    client_of_kubeconfig,
)

# The official provider and its stand-in write under managers of this name.
_MANAGER: Final = "pulumi"
_ABSENT: Final = 404


@dataclass(frozen=True)
class Live:
    """An object that is there: whether a Pulumi provider writes it, and when it was made."""

    by_pulumi: bool
    made: datetime.datetime
    content: Mapping[str, Any]

    def has(self, inputs: Mapping[str, Any]) -> bool:
        """Whether it is as these inputs want it; the server may have added to it."""
        return _within(inputs, self.content)


class Unanswered(Exception):  # noqa: N818 - its message is all a user sees
    """The cluster cannot be asked."""


class Cluster:
    """One cluster, reached as the provider with these inputs reaches it."""

    def __init__(self, provider: Mapping[str, Any], stack: ExitStack) -> None:
        try:
            # As for the provider, it is a file's content or its path; without either it is that of
            # the environment, which is named because the client reads that when it is imported.
            given = provider.get("kubeconfig") or os.environ.get("KUBECONFIG")
            context = provider.get("context")
            if given and "\n" in given:
                api = client_of_kubeconfig(given, context)
            else:
                api = client_of_context(given, context)
        except Unreachable as why:
            raise Unanswered(f"its kubeconfig cannot be used: {why.reason}") from None
        self._api = stack.enter_context(api)

    def object(self, inputs: Mapping[str, Any], namespace: str, name: str) -> Live | None:
        """The object; None where it is not there, or about to go."""
        live = self._object(inputs, namespace, name)
        if live is None or _goes(live):
            return None
        managers = live["metadata"].get("managedFields") or []
        return Live(
            any(str(entry.get("manager", "")).startswith(_MANAGER) for entry in managers),
            datetime.datetime.fromisoformat(live["metadata"]["creationTimestamp"]),
            live,
        )

    def goes(self, inputs: Mapping[str, Any], namespace: str, name: str) -> bool:
        """Whether the object is about to go, and there still."""
        live = self._object(inputs, namespace, name)
        return live is not None and _goes(live)

    def release(self, namespace: str, name: str) -> tuple[str, int]:
        """A Helm release's status and revision, as Helm keeps them; ("absent", 0) without one."""
        wanted = f"owner=helm,name={name}"
        found = self._get(f"/api/v1/namespaces/{namespace}/secrets", labelSelector=wanted)
        records = [
            (int(item["metadata"]["labels"]["version"]), item["metadata"]["labels"]["status"])
            for item in (found or {}).get("items", [])
        ]
        revision, status = max(records, default=(0, "absent"))
        return status, revision

    def unlock(self, namespace: str, name: str, revision: int) -> None:
        """Forget a release's revision that was never finished: Helm's lock on the release."""
        try:
            client.CoreV1Api(self._api).delete_namespaced_secret(
                f"sh.helm.release.v1.{name}.v{revision}", namespace, _request_timeout=SECONDS
            )
        except ApiException as why:
            if why.status != _ABSENT:
                raise Unanswered(f"it answers {why.status} {why.reason}") from None
        except (HTTPError, OSError) as why:
            raise Unanswered(f"it does not answer ({type(why).__name__})") from None

    def _object(self, inputs: Mapping[str, Any], namespace: str, name: str) -> Any:
        plural = self._plural(str(inputs["apiVersion"]), str(inputs["kind"]))
        if plural is None:
            return None
        where = f"/namespaces/{namespace}" if namespace else ""
        return self._get(f"{_group(str(inputs['apiVersion']))}{where}/{plural}/{name}")

    def _plural(self, version: str, kind: str) -> str | None:
        found = self._get(_group(version))
        for resource in (found or {}).get("resources", []):
            if resource["kind"] == kind and "/" not in resource["name"]:
                return str(resource["name"])
        return None

    def _get(self, path: str, **query: str) -> dict[str, Any] | None:
        try:
            return Reader(self._api).get(path, **query)  # each question has its own time
        except Refused as why:
            if why.status == _ABSENT:
                return None
            raise Unanswered(f"it answers {why.status} {why}") from None
        except Unreachable as why:
            raise Unanswered(f"it does not answer ({why.kind})") from None


def _goes(live: Mapping[str, Any]) -> bool:
    return bool(live["metadata"].get("deletionTimestamp"))


def _spelled(key: str) -> str:
    """A field as the API has it: the SDK cannot have dashes in the `x-kubernetes-…` of a CRD."""
    return key.replace("_", "-") if key.startswith("x_kubernetes_") else key


def _within(wanted: Any, live: Any) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(
            _within(value, live.get(_spelled(key))) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(live, list) and len(live) == len(wanted) and all(map(_within, wanted, live))
        )
    return wanted == live or str(wanted) == str(live)


def _group(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"
