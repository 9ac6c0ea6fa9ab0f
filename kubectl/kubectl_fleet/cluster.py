"""Read a cluster: one list for each kind of object, at the same time, as the kubeconfig's user.

A kind is named by its plural in the API: `pods`, `queues`.
"""

import asyncio
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from http import HTTPStatus

import httpx2
from lightkube import ConfigError
from lightkube.generic_resource import create_global_resource as cluster_wide
from lightkube.generic_resource import create_namespaced_resource as namespaced

from kai_usage.keys import KAI_NAMESPACE
from kai_usage.objects import Object, last_seen
from kai_usage.times import seconds_since
from kai_usage.words import json_without_controls, short_line
from kubectl_fleet.kubeconfig import UserError, open_cluster

_GLOBAL = {
    "nodes": cluster_wide("", "v1", "Node", "nodes"),
    "queues": cluster_wide("scheduling.run.ai", "v2", "Queue", "queues"),
    "runtimeclasses": cluster_wide("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses"),
}
_NAMESPACED = {
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
# The kinds to read for usage, and for the reasons of waiting pods. Deployments are only those of
# KAI's namespace: they tell which version runs, and whether it serves.
USAGE = ("nodes", "pods", "queues", "podgroups", "deployments")
REASONS = (*_GLOBAL, *_NAMESPACED)
_Lists = dict[str, list[Object] | int]  # by kind, or the HTTP status of a refusal


@dataclass(frozen=True)
class Snapshot:
    """The objects of one reading of a cluster.

    Attributes:
        objects: Lists of objects by kind; only kinds that were to be read, that the API serves and
            that may be listed. Events are newest first. No text has control characters.
        forbidden: Kinds that may not be listed. With `pods_of_one_namespace`, namespaced kinds but
            Deployments are in it only if they may not be listed in `namespace` either. An API
            server refuses kinds that it does not serve, too, if they may not be listed.
        namespace: The one of -n, else, also for -n "", the kubeconfig's.
        shown_namespace: The only namespace whose pods are shown; None for all.
        pods_of_one_namespace: The pods of all namespaces may not be listed; perhaps those of
            `namespace` may not either. All namespaced kinds but Deployments are read in `namespace`
            alone. False if pods were not to be read.
        kubectl: The kubectl command for this cluster, for sentences; quoted as for a shell.
        now: The time when the reading ended.
    """

    objects: dict[str, list[Object]]
    forbidden: set[str]
    namespace: str
    shown_namespace: str | None
    pods_of_one_namespace: bool
    kubectl: str
    now: datetime

    def all(self, kind: str) -> list[Object]:
        """The objects of a kind; empty if it is not served, may not be listed, or was not read."""
        return self.objects.get(kind, [])

    def named(self, kind: str, name: str, namespace: str | None = None) -> Object | None:
        """The object of that name; None if it is absent, or if its kind was not or cannot be read.

        `namespace` is None for an object of a cluster-wide kind. Raises LookupError, TypeError or
        AttributeError if any object of the snapshot is malformed.
        """
        return self._by_name.get((kind, name, namespace))

    @cached_property
    def _by_name(self) -> dict[tuple[str, str, str | None], Object]:
        """Objects by kind, name and namespace, read once: `objects` must not change afterwards."""
        by_name: dict[tuple[str, str, str | None], Object] = {}
        for kind, items in self.objects.items():
            for item in items:
                metadata = item["metadata"]
                by_name[kind, metadata["name"], metadata.get("namespace")] = item
        return by_name

    @property
    def has_queue_api(self) -> bool:
        """Whether the API of queues is served here, so that KAI runs in this cluster.

        False if KAI runs on the host or nowhere, or if queues were not among the kinds to read.
        Queues that may not be listed count as served, because the server does not say.
        """
        return "queues" in self.objects or "queues" in self.forbidden

    def shows(self, namespace: str) -> bool:
        """Whether pods of a namespace are shown, as `shown_namespace` says."""
        return self.shown_namespace in (None, namespace)

    def name_in_table(self, name: str, namespace: str) -> str:
        """A name as tables have it: `NAMESPACE/NAME`.

        The name alone in the only namespace that is shown, and in `default` if all are.
        """
        return name if namespace == (self.shown_namespace or "default") else f"{namespace}/{name}"

    def seconds_since(self, stamp: object) -> float:
        """The seconds since a time stamp of Kubernetes, negative for a later one than `now`.

        0 for what cannot be read as one, such as None and "".
        """
        return seconds_since(stamp, self.now)

    def age(self, stamp: str) -> str:
        """The time since a stamp in one unit: `45s`, `12m`, `3h`, `9d`; "" without one.

        In the largest unit of which it is two or more, rounded down; only seconds are rounded to
        the nearest, up to `120s`. kubectl writes some ages in finer units: `3m20s` for `3m`, `150m`
        for `2h`. A stamp that is later than `now`, or cannot be read, gives `0s`.
        """
        seconds = self.seconds_since(stamp)
        for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
            if seconds >= 2 * length:
                return f"{seconds // length:.0f}{unit}"
        return f"{max(0.0, seconds):.0f}s" if stamp else ""


class Cluster:
    """The cluster of a context of a kubeconfig.

    Args:
        file: The kubeconfig; None or "" for $KUBECONFIG, else ~/.kube/config. Several paths are
            read as in $KUBECONFIG, but kubectl takes a single one behind --kubeconfig: then the
            commands in sentences fail.
        context: None or "" for the current one of the kubeconfig.
        namespace: The one of -n, whose pods alone are shown. None or "" for all, or for the
            kubeconfig's if not all may be listed.

    Raises:
        UserError: The kubeconfig cannot be used.
    """

    def __init__(self, file: str | None, context: str | None, namespace: str | None) -> None:
        self._loop = asyncio.Runner()
        self._client, self._bounds = open_cluster(file, context)
        self._plugin = self._client.config.user and self._client.config.user.exec
        self._namespace = namespace
        command = ["kubectl"]
        if file:
            command += ["--kubeconfig", file]
        if context:
            command += ["--context", context]
        self._kubectl = shlex.join(command)

    def read(self, kinds: Iterable[str]) -> Snapshot:
        """List the objects of these kinds in all namespaces, also with -n.

        All answers may take 60 seconds and 256 MiB. Deployments are always those of KAI's namespace
        alone. If `pods` is among the kinds and may not be listed in all namespaces, pods and all
        other namespaced kinds are read in the namespace of -n, else of the kubeconfig. If pods may
        be listed, a kind that may not is not tried there. Of several objects with one name and
        namespace the first counts.

        Args:
            kinds: Plurals in the API, each of them in `REASONS`.

        Raises:
            UserError: The cluster cannot be reached, does not answer in time, answers too much, an
                error or something else than Kubernetes does, or refuses the credentials; or a
                credential plugin gives no token; or a kind is not in `REASONS`.
            LookupError, TypeError, AttributeError: An object is malformed.
        """
        self._bounds.reset_bounds()
        return self._loop.run(self._read(list(kinds)))

    async def _read(self, kinds: list[str]) -> Snapshot:
        """List the kinds in all namespaces, then in one if pods are forbidden. Raises as `read`."""
        namespace = self._namespace or self._client.namespace
        lists = await self._lists(kinds, "*")
        of_one_namespace = lists.get("pods") == HTTPStatus.FORBIDDEN
        if of_one_namespace:
            namespaced_kinds = [kind for kind in kinds if kind in _NAMESPACED]
            lists |= await self._lists(namespaced_kinds, namespace)
        objects: dict[str, list[Object]] = {}
        forbidden = set[str]()
        for kind, items in lists.items():
            if isinstance(items, list):
                objects[kind] = _without_repetitions(items)
            elif items == HTTPStatus.FORBIDDEN:
                forbidden.add(kind)
        objects.get("events", []).sort(key=last_seen, reverse=True)  # newest first
        shown_namespace = self._namespace or None
        if of_one_namespace and "pods" in objects:
            shown_namespace = namespace
        return Snapshot(
            objects=objects,
            forbidden=forbidden,
            namespace=namespace,
            shown_namespace=shown_namespace,
            pods_of_one_namespace=of_one_namespace,
            kubectl=self._kubectl,
            now=datetime.now(UTC),
        )

    async def _lists(self, kinds: list[str], namespace: str) -> _Lists:
        """List each kind as `_list` does, with its `namespace`, at the same time. Raises UserError.

        All in one thread: msgspec, with which lightkube decodes, crashes if two threads meet a type
        for the first time.
        """
        lists: _Lists = {}
        if self._plugin and kinds:
            # The credential plugin runs for the first request; its token serves the others.
            lists[kinds[0]] = await self._list(kinds[0], namespace)
        others = [kind for kind in kinds if kind not in lists]
        answers = await asyncio.gather(*[self._list(kind, namespace) for kind in others])
        lists.update(zip(others, answers, strict=True))
        return lists

    async def _list(self, kind: str, namespace: str) -> list[Object] | int:
        """The objects of a kind, or a status: 403 if it may not be listed, 404 if it is not served.

        Their texts have no control characters: a tenant writes them, or its own API server does.
        `namespace` is `*` for all. Cluster-wide kinds ignore it; Deployments are always those of
        KAI's namespace. Raises UserError if the cluster cannot be read.
        """
        try:
            # The iterators have no names: a name would keep one alive after the loop has ended, and
            # asyncio would complain about it on stderr.
            if kind in _GLOBAL:
                return [
                    json_without_controls(item) async for item in self._client.list(_GLOBAL[kind])
                ]
            if kind == "deployments":
                namespace = KAI_NAMESPACE
            resource = _NAMESPACED[kind]
            return [
                json_without_controls(item)
                async for item in self._client.list(resource, namespace=namespace)
            ]
        except httpx2.HTTPStatusError as error:
            status = error.response.status_code
            if status in (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND):
                return status
            reason = f"it answers {status} {error.response.reason_phrase}"
            if status == HTTPStatus.UNAUTHORIZED:
                reason = "it does not accept the credentials (401)"
        except httpx2.HTTPError as error:
            reason = short_line(error) or type(error).__name__
        except (ConfigError, OSError, LookupError, TypeError, ValueError, RecursionError) as error:
            reason = self._why_unreadable(error)
        raise UserError(
            f"the cluster at {self._client.config.cluster.server} can't be read: {reason}"
        )

    def _why_unreadable(self, error: Exception) -> str:
        """With a credential plugin, its error and its hint; else that this is no Kubernetes API."""
        if not self._plugin:
            return "what answers there is no Kubernetes API"
        hint = f"; {self._plugin.installHint}" if self._plugin.installHint else ""
        return f"{self._plugin.command} hands out no token: {short_line(error, 300)}{hint}"


def _without_repetitions(items: list[Object]) -> list[Object]:
    """The first object of each name and namespace: a server may list one again and again.

    Raises LookupError, TypeError or AttributeError for a malformed one.
    """
    by_name: dict[tuple[str, str], Object] = {}
    for item in items:
        namespace = str(item["metadata"].get("namespace"))
        by_name.setdefault((namespace, str(item["metadata"]["name"])), item)
    return list(by_name.values())
