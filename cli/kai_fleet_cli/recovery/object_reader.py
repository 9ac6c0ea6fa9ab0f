"""Reading from a cluster what a stack has there; nothing is written through it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import KubeError, RefusedError, UnusableKubeconfigError
from kai_fleet.kube.kubeconfig import connection
from kai_fleet.releases import helm_record
from kai_fleet.releases.helm_record import Forged
from kai_fleet_cli.recovery.state import REFUSED

# The provider writes under managers of this name.
_MANAGER: Final = "pulumi"
_ABSENT: Final = 404
_SECONDS: Final = 10.0


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


@contextmanager
def _in_words() -> Iterator[None]:
    """Raise Unanswered for what is no object: who answers may be a tenant's API server, and who
    wrote what it answers, a tenant.
    """
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as why:
        raise Unanswered(f"it answers what no Kubernetes does ({type(why).__name__})") from None


class Cluster:
    """One cluster, reached as the provider with these inputs reaches it."""

    def __init__(self, provider: Mapping[str, Any], stack: ExitStack) -> None:
        if REFUSED in provider:
            raise Unanswered(str(provider[REFUSED]))
        try:
            # As for the provider, it is a file's content or its path.
            given, context = provider.get("kubeconfig"), provider.get("context")
            if given and "\n" in given:
                way = connection(given, context=context)
            else:
                way = connection(file=given, context=context)
        except UnusableKubeconfigError as why:
            raise Unanswered(str(why)) from None
        self._api = Api(way, _SECONDS)
        stack.callback(self._api.close)

    @_in_words()
    def object(self, inputs: Mapping[str, Any], namespace: str, name: str) -> Live | None:
        """The object; None where it is not there, or about to go."""
        live = self._object(inputs, namespace, name)
        if live is None or live["metadata"].get("deletionTimestamp"):
            return None
        managers = live["metadata"].get("managedFields") or []
        return Live(
            any(str(entry.get("manager", "")).startswith(_MANAGER) for entry in managers),
            datetime.datetime.fromisoformat(live["metadata"]["creationTimestamp"]),
            live,
        )

    @_in_words()
    def release(self, namespace: str, name: str) -> str:
        """A Helm release's status, as Helm keeps it; "absent" without one."""
        wanted = f"owner=helm,name={name}"
        found = self._get(f"/api/v1/namespaces/{namespace}/secrets", labelSelector=wanted)
        records = [
            (int(item["metadata"]["labels"]["version"]), item["metadata"]["labels"]["status"])
            for item in (found or {}).get("items", [])
        ]
        return str(max(records, default=(0, "absent"))[1])

    def forged(self, namespace: str, name: str) -> list[Forged]:
        """Records of a vCluster's release that its chart did not make."""
        wanted = helm_record.SELECTOR.format(name)
        found = self._get(f"/api/v1/namespaces/{namespace}/secrets", labelSelector=wanted)
        return helm_record.forged((found or {}).get("items", []), name, namespace)

    @_in_words()
    def uid(self) -> str:
        """Which cluster it is: the UID of its namespace `kube-system`."""
        found = self._get("/api/v1/namespaces/kube-system")
        return str(found["metadata"]["uid"]) if found else ""

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
            return self._api.get(path, **query)
        except RefusedError as why:
            if why.status == _ABSENT:
                return None
            raise Unanswered(f"it answers {why}") from None
        except KubeError as why:
            raise Unanswered(f"it does not answer: {why}") from None


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
