"""Read a cluster: one list of each kind, all at once, with the rights of the kubeconfig's user."""

import asyncio
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from http import HTTPStatus
from typing import Any, Final

import httpx2
from lightkube import ConfigError
from lightkube.generic_resource import create_global_resource as cluster_wide
from lightkube.generic_resource import create_namespaced_resource as namespaced

from kubectl_fleet.kubeconfig import UserError, open_cluster
from kubectl_fleet.table import plain

Object = Mapping[str, Any]
SCHEDULER: Final = "kai-scheduler"
KAI_NAMESPACE: Final = "kai-scheduler"
QUEUE_LABEL: Final = "kai.scheduler/queue"
# Namespaces of KAI, the GPU operator and Kubernetes: their pods are not a team's.
RESERVED: Final = frozenset(
    {KAI_NAMESPACE, "kai-resource-reservation", "kai-scale-adjust", "gpu-operator", "kube-system"}
)
_GLOBAL: Final = {
    "nodes": cluster_wide("", "v1", "Node", "nodes"),
    "queues": cluster_wide("scheduling.run.ai", "v2", "Queue", "queues"),
    "runtimeclasses": cluster_wide("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses"),
}
_NAMESPACED: Final = {
    "pods": namespaced("", "v1", "Pod", "pods"),
    "podgroups": namespaced("scheduling.run.ai", "v2alpha2", "PodGroup", "podgroups"),
    "deployments": namespaced("apps", "v1", "Deployment", "deployments"),
    "persistentvolumeclaims": namespaced(
        "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"
    ),
    "events": namespaced("", "v1", "Event", "events"),
    "replicasets": namespaced("apps", "v1", "ReplicaSet", "replicasets"),
    "statefulsets": namespaced("apps", "v1", "StatefulSet", "statefulsets"),
    "jobs": namespaced("batch", "v1", "Job", "jobs"),
}
# Deployments are those of KAI's namespace: they show which version runs, and whether it serves.
USAGE: Final = ("nodes", "pods", "queues", "podgroups", "deployments")
REASONS: Final = (
    *(*USAGE, "events", "runtimeclasses", "persistentvolumeclaims"),
    *("replicasets", "statefulsets", "jobs"),
)


def metadata(item: Object, key: str) -> dict[str, str]:
    """Return the labels or annotations of an object."""
    return item["metadata"].get(key) or {}


def condition(item: Object, kind: str) -> dict[str, Any]:
    """Return a condition of an object by its type; empty where there is none."""
    conditions = (item.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each.get("type") == kind), {})


def last_seen(event: Object) -> str:
    """Return when an event happened last, as text that sorts."""
    stamp = event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp")
    return str(stamp or event["metadata"].get("creationTimestamp") or "")


@dataclass(frozen=True)
class Snapshot:
    """The objects of one reading of a cluster."""

    objects: dict[str, list[Object]]  # by plural, where it is served and may be listed
    forbidden: set[str]  # the kinds that may not be listed
    namespace: str  # of -n, else the kubeconfig's
    shown: str | None  # the only namespace whose pods are shown; None for all
    partly: bool  # pods could be listed in `namespace` only
    kubectl: str  # the kubectl command for this cluster, for sentences
    now: datetime

    def all(self, kind: str) -> list[Object]:
        """Return the objects of a kind; none where it is not served."""
        return self.objects.get(kind, [])

    def named(self, kind: str, name: str, namespace: str | None = None) -> Object | None:
        """Return the object of a name, the first of it where `namespace` is None."""
        return self._by_name.get((kind, name, namespace))

    @cached_property
    def _by_name(self) -> dict[tuple[str, str, str | None], Object]:
        found: dict[tuple[str, str, str | None], Object] = {}
        for kind, items in self.objects.items():
            for item in items:
                about = item["metadata"]
                found.setdefault((kind, about["name"], about.get("namespace")), item)
                found.setdefault((kind, about["name"], None), item)
        return found

    @property
    def schedules_here(self) -> bool:
        """Whether KAI is in this cluster, and not on its host."""
        return "queues" in self.objects or "queues" in self.forbidden

    def shows(self, namespace: str) -> bool:
        """Whether what is in a namespace is shown."""
        return self.shown in (None, namespace)

    def name(self, name: str, namespace: str) -> str:
        """Return a name, with its namespace where that is not the usual one."""
        return name if namespace == (self.shown or "default") else f"{namespace}/{name}"

    def seconds_since(self, stamp: object) -> float:
        """Return the seconds since a time stamp of Kubernetes; 0 without one."""
        try:
            then = datetime.fromisoformat(str(stamp))
        except ValueError:
            return 0.0
        return (self.now - then).total_seconds() if then.tzinfo else 0.0

    def age(self, stamp: str) -> str:
        """Return how long ago that was as kubectl writes it: `45s`, `12m`, `3h`, `9d`."""
        seconds = self.seconds_since(stamp)
        for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
            if seconds >= 2 * length:
                return f"{seconds // length:.0f}{unit}"
        return f"{max(0.0, seconds):.0f}s" if stamp else ""


class Cluster:
    """The cluster of a kubeconfig. `namespace` is -n: None for the kubeconfig's.

    Raises UserError for a kubeconfig that can't be used.
    """

    def __init__(self, file: str | None, context: str | None, namespace: str | None) -> None:
        self._loop = asyncio.Runner()
        self._client, self._bounds = open_cluster(file, context)
        self._plugin = self._client.config.user and self._client.config.user.exec
        self._namespace = namespace
        flags = {"--kubeconfig": file, "--context": context}
        words = [word for flag, value in flags.items() if value for word in (flag, value)]
        self._kubectl = shlex.join(["kubectl", *words])

    def read(self, kinds: Iterable[str]) -> Snapshot:
        """List these kinds. Who may list the pods of one namespace only gets those.

        Raises UserError where the cluster does not answer, or not to these credentials.
        """
        self._bounds.begin()
        return self._loop.run(self._read(list(kinds)))

    async def _read(self, kinds: list[str]) -> Snapshot:
        namespace = self._namespace or self._client.namespace
        found = await self._lists(kinds, "*")
        partly = found.get("pods") == HTTPStatus.FORBIDDEN
        if partly:
            found |= await self._lists([kind for kind in kinds if kind in _NAMESPACED], namespace)
        objects = {kind: _once(each) for kind, each in found.items() if isinstance(each, list)}
        objects.get("events", []).sort(key=last_seen, reverse=True)  # newest first
        return Snapshot(
            objects=objects,
            forbidden={kind for kind in found if found[kind] == HTTPStatus.FORBIDDEN},
            namespace=namespace,
            shown=namespace if partly and "pods" in objects else self._namespace or None,
            partly=partly,
            kubectl=self._kubectl,
            now=datetime.now(UTC),
        )

    async def _lists(self, kinds: list[str], namespace: str) -> dict[str, list[Object] | int]:
        """Return the objects of each kind, or the status of a refusal.

        All in one thread: msgspec, by which lightkube decodes, crashes where two meet a type first.
        """
        # A credential plugin runs for the first request; its token serves the others.
        first = [await self._list(kinds[0], namespace)] if self._plugin else []
        rest = (self._list(kind, namespace) for kind in kinds[len(first) :])
        return dict(zip(kinds, [*first, *await asyncio.gather(*rest)], strict=True))

    async def _list(self, kind: str, namespace: str) -> list[Object] | int:
        try:
            if kind in _GLOBAL:
                return [item async for item in self._client.list(_GLOBAL[kind])]
            own = KAI_NAMESPACE if kind == "deployments" else namespace
            return [item async for item in self._client.list(_NAMESPACED[kind], namespace=own)]
        except httpx2.HTTPStatusError as error:
            status = error.response.status_code
            if status in (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND):
                return status
            reason = f"it answers {status} {error.response.reason_phrase}"
            if status == HTTPStatus.UNAUTHORIZED:
                reason = "it does not accept the credentials (401)"
        except httpx2.HTTPError as error:
            reason = plain(error) or type(error).__name__
        except (ConfigError, OSError, LookupError, TypeError, ValueError, RecursionError) as error:
            reason = "what answers there is no Kubernetes API"
            if self._plugin:
                hint = f"; {self._plugin.installHint}" if self._plugin.installHint else ""
                why = plain(error, 300)
                reason = f"{self._plugin.command} hands out no token: {why}{hint}"
        raise UserError(
            f"the cluster at {self._client.config.cluster.server} can't be read: {reason}"
        )


def _once(items: list[Object]) -> list[Object]:
    """Each name of a namespace once: a server may list one again and again."""
    found: dict[tuple[str, str], Object] = {}
    for item in items:
        about = item["metadata"]
        found.setdefault((str(about.get("namespace")), str(about["name"])), item)
    return list(found.values())
