"""The resource `kai-fleet:index:Queues`, a tree of queues, as the engine asks for it; and the
function `kai-fleet:index:secret`, which reads a Secret.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

from google.protobuf.empty_pb2 import Empty
from google.protobuf.struct_pb2 import Struct
from kubernetes import client

from provider import secrets, wire
from provider.cluster_client import UNUSABLE, cluster_client
from provider.paths import Path, spelled
from provider.plugin import (
    PartialError,
    Plugin,
    PluginError,
    answered,
    engine_address,
    serve,
)
from provider.protocol import provider_pb2
from provider.queue_specs import packed, unpacked
from provider.queues import Queues, SomeQueuesError
from provider.tokens import PACKAGE, QUEUES, SECRET

VERSION: Final = "0.1.0"
# How the cluster is reached is not part of what the tree is: credentials rotate (P3).
ACCESS: Final = ("context", "kubeconfig")
_KIND: Final = provider_pb2.PropertyDiff
Properties = dict[str, Any]


class QueuePlugin(Plugin):
    """Serves every queue tree of a program, whatever its cluster, from one process."""

    def __init__(self, engine: str = "") -> None:
        super().__init__(PACKAGE, VERSION, engine)
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str], client.ApiClient] = {}

    # Calls of the protocol, named as it names them.

    @answered
    def CheckConfig(self, request: Any) -> Any:  # noqa: D102, N802
        return provider_pb2.CheckResponse(inputs=request.news)

    @answered
    def DiffConfig(self, request: Any) -> Any:  # noqa: D102, N802
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    @answered
    def Configure(self, request: Any) -> Any:  # noqa: D102, N802
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True, supportsPreview=True, acceptResources=False, acceptOutputs=False
        )

    @answered
    def Invoke(self, request: Any) -> Any:  # noqa: D102, N802
        if request.tok != SECRET:
            raise PluginError(self._unserved(f"function {request.tok}"))
        given = wire.plain(wire.decode(request.args))
        answer = secrets.read(self._client(given), str(given["namespace"]), str(given["name"]))
        return provider_pb2.InvokeResponse(**{"return": wire.encode(answer)})

    @answered
    def Check(self, request: Any) -> Any:  # noqa: D102, N802
        if f"{QUEUES}::" not in request.urn:
            raise PluginError(self._unserved(f"resource {request.urn.rpartition('::')[2]}"))
        return provider_pb2.CheckResponse(inputs=request.news)

    @answered
    def Diff(self, request: Any) -> Any:  # noqa: D102, N802
        answer = provider_pb2.DiffResponse(
            changes=provider_pb2.DiffResponse.DIFF_NONE, hasDetailedDiff=True
        )
        for path, kind in _changes(_tree(request.olds), _tree(request.news)):
            replaces = path == "cluster"
            top = "queues" if path.startswith("queues") else path
            if top not in answer.diffs:
                answer.diffs.append(top)
            answer.changes = provider_pb2.DiffResponse.DIFF_SOME
            answer.detailedDiff[path].kind = _KIND.UPDATE_REPLACE if replaces else kind
            if replaces:
                answer.replaces.append(path)
        return answer

    @answered
    def Create(self, request: Any) -> Any:  # noqa: D102, N802
        wanted = _tree(request.properties)
        identity = f"{wanted['cluster']}/{wanted['tree']}"
        if request.preview:
            return provider_pb2.CreateResponse(properties=wire.encode(wanted))
        state = self._made(request.properties, identity, known=())
        return provider_pb2.CreateResponse(id=identity, properties=state)

    @answered
    def Update(self, request: Any) -> Any:  # noqa: D102, N802
        if request.preview:
            return provider_pb2.UpdateResponse(properties=wire.encode(_tree(request.news)))
        known = _tree(request.olds).get("queues") or ()
        return provider_pb2.UpdateResponse(
            properties=self._made(request.news, request.id, tuple(known))
        )

    @answered
    def Read(self, request: Any) -> Any:  # noqa: D102, N802
        if not request.inputs.fields:
            raise PluginError(
                f"a queue tree is not imported: declare it, and label the queues that it is to"
                f" take over: kubectl label queue NAME kai-fleet/tree={request.id}"
            )
        state = _tree(request.properties)
        live = self._queues(request.inputs).live(state.get("queues") or ())
        if not live:
            return provider_pb2.ReadResponse()
        state["queues"] = _specs(live)
        if "labels" in state:
            state["labels"] = _carried(state["labels"], live)
        return provider_pb2.ReadResponse(
            id=request.id,
            properties=wire.encode(state),
            inputs=wire.encode({**wire.decode(request.inputs), **state}),
        )

    @answered
    def Delete(self, request: Any) -> Any:  # noqa: D102, N802
        known = _tree(request.properties).get("queues") or ()
        self._queues(request.old_inputs).remove(known)
        return Empty()

    def _made(self, given: Struct, identity: str, known: tuple[str, ...]) -> Struct:
        """The state after the tree was made as wanted; what is there after it was not, in part."""
        wanted = _tree(given)
        queues = self._queues(given)
        try:
            queues.make(unpacked(wanted["queues"]), known, wanted.get("labels"))
        except SomeQueuesError as why:
            wanted["queues"] = _specs(queues.live(known))
            raise PartialError(str(why), identity, wire.encode(wanted), given) from None
        return wire.encode(wanted)

    def _queues(self, inputs: Struct) -> Queues:
        given = wire.plain(wire.decode(inputs))
        return Queues(self._client(given), str(given["tree"]), self.cancelled.is_set)

    def _client(self, given: Mapping[str, Any]) -> client.ApiClient:
        key = (str(given.get("context") or ""), str(given.get("kubeconfig") or ""))
        with self._lock:
            if key not in self._clients:
                self._clients[key] = _client(*key)
            return self._clients[key]


def _tree(properties: Struct) -> Properties:
    """What the tree is, without the way to its cluster; its queues as text, older states' too."""
    found = wire.plain(wire.decode(properties))
    tree = {key: value for key, value in found.items() if key not in ACCESS}
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


def _client(context: str, kubeconfig: str) -> client.ApiClient:
    try:
        return cluster_client(context, kubeconfig)
    except UNUSABLE as why:
        raise PluginError(f"the kubeconfig of the cluster cannot be used: {why}") from None


def _changes(old: object, new: object, path: Path = ()) -> Iterator[tuple[str, Any]]:
    """Each leaf that differs, as Pulumi spells its path, and how. A whole queue is one."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in (*old, *(key for key in new if key not in old)):
            if key not in new:
                yield spelled((*path, key)), _KIND.DELETE
            elif key not in old:
                yield spelled((*path, key)), _KIND.ADD
            else:
                yield from _changes(old[key], new[key], (*path, key))
    elif old != new:
        yield spelled(path), _KIND.UPDATE


def main() -> None:
    """Serves until the engine ends."""
    serve(QueuePlugin(engine_address(sys.argv[1:])))


if __name__ == "__main__":
    main()
