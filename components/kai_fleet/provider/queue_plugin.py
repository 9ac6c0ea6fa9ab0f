"""The resource `kai-fleet:index:Queues`, a tree of queues, as the engine asks for it; and the
functions `kai-fleet:index:secret` and `kai-fleet:index:clusterUid`.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from pulumi.provider.experimental import provider as engine
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.experimental.provider import PropertyDiff, PropertyDiffKind

from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import UnusableKubeconfigError
from kai_fleet.kube.kubeconfig import Connection, connection
from kai_fleet.provider import cluster_uid, secrets
from kai_fleet.provider.errors import PartialError, PluginError
from kai_fleet.provider.paths import Path, spelled
from kai_fleet.provider.queue_specs import packed, unpacked
from kai_fleet.provider.queues import ClusterAway, Queues, SomeQueuesError
from kai_fleet.provider.tokens import CLUSTER_UID, QUEUES, SECRET
from kai_fleet.provider.values import Properties, plain, properties

# How the cluster is reached is not part of what the tree is: credentials rotate (P3).
ACCESS: Final = ("context", "kubeconfig")
# The official Kubernetes provider's variable: what is in a cluster that is gone leaves the state.
GONE: Final = "PULUMI_K8S_DELETE_UNREACHABLE"
_WORKERS: Final = 64  # the engine runs many operations at once, and one that waits holds its thread
_READ_PATIENCE: Final = 3.0  # seconds; an API server that restarts refuses for about one
_Answer = TypeVar("_Answer")


class QueuePlugin(engine.Provider):
    """Serves every queue tree of a program, whatever its cluster, from one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ways: dict[tuple[str, str], Connection] = {}
        self._cancelled = threading.Event()
        self._workers = ThreadPoolExecutor(_WORKERS)

    async def configure(self, request: engine.ConfigureRequest) -> engine.ConfigureResponse:
        """Nothing is configured: each resource says which cluster it is for."""
        return engine.ConfigureResponse(accept_secrets=True, supports_preview=True)

    async def cancel(self) -> None:
        """End what waits for a cluster."""
        self._cancelled.set()

    async def invoke(self, request: engine.InvokeRequest) -> engine.InvokeResponse:
        """A Secret's content, or which cluster it is."""
        given = plain(request.args)
        if request.tok == CLUSTER_UID:
            found = await self._apart(lambda: cluster_uid.read(self._way(given)))
            return engine.InvokeResponse(found)
        if request.tok != SECRET:
            raise PluginError(f"the plugin kai-fleet serves no function {request.tok}")
        answer = await self._apart(
            lambda: secrets.read(self._way(given), str(given["namespace"]), str(given["name"]))
        )
        return engine.InvokeResponse(answer)

    async def check(self, request: engine.CheckRequest) -> engine.CheckResponse:
        """Whether it is a queue tree."""
        if request.type.rpartition("$")[2] != QUEUES:
            raise PluginError(f"the plugin kai-fleet serves no resource {request.type}")
        return engine.CheckResponse(request.new_inputs)

    async def diff(self, request: engine.DiffRequest) -> engine.DiffResponse:
        """Each queue that differs, at its own path."""
        answer = engine.DiffResponse(changes=False)
        for path, kind in _changes(_tree(request.old_state), _tree(request.new_inputs)):
            answer.changes = True
            top = "queues" if path.startswith("queues") else path
            if top not in answer.diffs:
                answer.diffs.append(top)
            # A tree of earlier releases has no identity: that one comes is no other cluster.
            another = path == "identity" and kind is PropertyDiffKind.UPDATE
            if path == "cluster" or another:
                kind = PropertyDiffKind.UPDATE_REPLACE
                answer.replaces.append(path)
            answer.detailed_diff[path] = PropertyDiff(kind, input_diff=False)
        return answer

    async def create(self, request: engine.CreateRequest) -> engine.CreateResponse:
        """The whole tree."""
        wanted = _tree(request.properties)
        if request.preview:
            return engine.CreateResponse(properties=properties(wanted))
        identity = f"{wanted['cluster']}/{wanted['tree']}"
        state = await self._apart(lambda: self._made(request.properties, identity, known=()))
        return engine.CreateResponse(identity, properties(state))

    async def update(self, request: engine.UpdateRequest) -> engine.UpdateResponse:
        """The queues that differ."""
        if request.preview:
            return engine.UpdateResponse(properties(_tree(request.news)))
        known = tuple(_tree(request.olds)["queues"])
        state = await self._apart(lambda: self._made(request.news, request.resource_id, known))
        return engine.UpdateResponse(properties(state))

    async def read(self, request: engine.ReadRequest) -> engine.ReadResponse:
        """The queues as they are; no id where none is left."""
        if not request.inputs:
            raise PluginError(
                f"a queue tree is not imported: declare it, and label the queues that it is to"
                f" take over: kubectl label queue NAME kai-fleet/tree={request.resource_id}"
            )
        state, given = _tree(request.properties), plain(request.inputs)
        try:
            live = await self._apart(
                lambda: self._queues(given, _READ_PATIENCE).live(state["queues"])
            )
        except ClusterAway as why:
            if _told_gone():
                return engine.ReadResponse()
            raise PluginError(f"{why}. {_if_gone('pulumi refresh')}") from None
        if not live:
            return engine.ReadResponse()
        state["queues"] = _specs(live)
        if "labels" in state:
            state["labels"] = _carried(state["labels"], live)
        inputs = {**request.inputs, **properties(state)}
        return engine.ReadResponse(request.resource_id, properties(state), inputs)

    async def delete(self, request: engine.DeleteRequest) -> None:
        """All queues of the tree."""
        known, given = _tree(request.properties)["queues"], plain(request.properties)
        try:
            await self._apart(lambda: self._queues(given).remove(known))
        except ClusterAway as why:
            if not _told_gone():
                raise PluginError(f"{why}. {_if_gone('pulumi up')}") from None

    def _made(
        self, given: Mapping[str, PropertyValue], identity: str, known: Iterable[str]
    ) -> Properties:
        """The state after the tree was made as wanted; what is there after it was not, in part."""
        wanted = _tree(given)
        queues = self._queues(plain(given))
        try:
            queues.make(unpacked(wanted["queues"]), known, wanted.get("labels"))
        except SomeQueuesError as why:
            wanted["queues"] = _specs(queues.live(known))
            raise PartialError(str(why), identity, wanted, given) from None
        return wanted

    def _queues(self, given: Mapping[str, Any], patience: float = 30.0) -> Queues:
        cluster, tree = str(given["cluster"]), str(given["tree"])
        return Queues(Api(self._way(given)), tree, cluster, self._cancelled.is_set, patience)

    def _way(self, given: Mapping[str, Any]) -> Connection:
        content, context = str(given.get("kubeconfig") or ""), str(given.get("context") or "")
        with self._lock:
            if (content, context) not in self._ways:
                try:
                    way = connection(content) if content else connection(context=context)
                except UnusableKubeconfigError as why:
                    where = f"cluster {given['cluster']}: " if "cluster" in given else ""
                    raise ClusterAway(f"{where}{why}") from None
                self._ways[content, context] = way
            return self._ways[content, context]

    async def _apart(self, act: Callable[[], _Answer]) -> _Answer:
        """What waits for a cluster, beside what else the engine asks for."""
        return await asyncio.get_running_loop().run_in_executor(self._workers, act)


def _tree(values: Mapping[str, PropertyValue]) -> Properties:
    """What the tree is, without the way to its cluster; its queues as text, older states' too."""
    tree = {key: value for key, value in plain(values).items() if key not in ACCESS}
    return {**tree, "queues": packed(tree.get("queues") or {})}


def _specs(live: Mapping[str, Any]) -> dict[str, str]:
    """Those of live queues, as text."""
    return packed({name: item.get("spec", {}) for name, item in live.items()})


def _carried(labels: Mapping[str, Any], live: Mapping[str, Any]) -> Properties:
    """Those of the labels that the live queues carry, with the values that they have there."""
    found = {}
    for name, wanted in labels.items():
        has = live.get(name, {}).get("metadata", {}).get("labels") or {}
        found[name] = {key: has[key] for key in wanted if key in has}
    return found


def _told_gone() -> bool:
    return os.environ.get(GONE, "").lower() in ("1", "t", "true")


def _if_gone(command: str) -> str:
    return f"If that cluster is gone for good: {GONE}=true {command}"


def _changes(old: object, new: object, path: Path = ()) -> Iterator[tuple[str, PropertyDiffKind]]:
    """Each leaf that differs, as Pulumi spells its path, and how. A whole queue is one."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in (*old, *(key for key in new if key not in old)):
            if key not in new:
                yield spelled((*path, key)), PropertyDiffKind.DELETE
            elif key not in old:
                yield spelled((*path, key)), PropertyDiffKind.ADD
            else:
                yield from _changes(old[key], new[key], (*path, key))
    elif old != new:
        yield spelled(path), PropertyDiffKind.UPDATE
