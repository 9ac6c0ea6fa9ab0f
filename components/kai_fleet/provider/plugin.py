"""The provider as the engine calls it: the resource `Queues`, a queue tree, and the functions."""

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from google.protobuf.empty_pb2 import Empty
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto import provider_pb2

from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import UnusableKubeconfigError
from kai_fleet.kube.kubeconfig import Connection, connection
from kai_fleet.provider import (
    CLUSTER_UID,
    EXISTING,
    QUEUES,
    SECRET,
    PartialError,
    PluginError,
    version,
)
from kai_fleet.provider.functions import read_cluster_uid, read_existing, read_secret
from kai_fleet.provider.process import Servicer, answering
from kai_fleet.provider.queues import ClusterAwayError, Queues, SomeQueuesError
from kai_fleet.provider.values import Path, packed, plain, spelled, struct, unpacked

# How the cluster is reached is not part of what the tree is: credentials rotate (P3).
ACCESS: Final = ("context", "kubeconfig")
# The official Kubernetes provider's variable: what is in a cluster that is gone leaves the state.
GONE: Final = "PULUMI_K8S_DELETE_UNREACHABLE"
_READ_PATIENCE: Final = 3.0  # seconds; an API server that restarts refuses for about one
_KINDS: Final = provider_pb2.PropertyDiff

Properties = dict[str, Any]


class QueuePlugin(Servicer):
    """Serves every queue tree of a program, whatever its cluster, from one process."""

    def __init__(self) -> None:
        super().__init__(version())
        self._lock = threading.Lock()
        self._connections: dict[tuple[str, str], Connection] = {}

    @answering
    def Invoke(self, request: Any) -> Any:  # noqa: N802
        """A Secret's content, which cluster it is, or whether an object is there."""
        arguments = plain(request.args)
        if request.tok == CLUSTER_UID:
            try:
                result = read_cluster_uid(self._connection(arguments))
            except ClusterAwayError as error:
                result = {"problem": str(error)}
        elif request.tok == SECRET:
            way = self._connection(arguments)
            result = read_secret(way, str(arguments["namespace"]), str(arguments["name"]))
        elif request.tok == EXISTING:
            try:
                result = read_existing(self._connection(arguments), str(arguments["path"]))
            except ClusterAwayError as error:
                result = {"problem": str(error), "away": True}
        else:
            raise PluginError(f"the plugin kai-fleet serves no function {request.tok}")
        return provider_pb2.InvokeResponse(**{"return": struct(result)})

    @answering
    def Check(self, request: Any) -> Any:  # noqa: N802
        """Whether it is a queue tree."""
        kind = request.urn.split("::")[-2].rpartition("$")[2]
        if kind != QUEUES:
            raise PluginError(f"the plugin kai-fleet serves no resource {kind}")
        return provider_pb2.CheckResponse(inputs=request.news)

    @answering
    def Diff(self, request: Any) -> Any:  # noqa: N802
        """Each queue that differs, at its own path."""
        changes = dict(_changes(_tree(request.olds), _tree(request.news)))
        replaces = [path for path in changes if path in ("cluster", "identity")]
        changes |= dict.fromkeys(replaces, _KINDS.UPDATE_REPLACE)
        tops = ["queues" if path.startswith("queues") else path for path in changes]
        answer = provider_pb2.DiffResponse
        return answer(
            changes=answer.DIFF_SOME if changes else answer.DIFF_NONE,
            diffs=list(dict.fromkeys(tops)),
            replaces=replaces,
            detailedDiff={path: _KINDS(kind=kind) for path, kind in changes.items()},
            hasDetailedDiff=True,
        )

    @answering
    def Create(self, request: Any) -> Any:  # noqa: N802
        """The whole tree."""
        tree = _tree(request.properties)
        if request.preview:
            return provider_pb2.CreateResponse(properties=struct(tree))
        identity = f"{tree['cluster']}/{tree['tree']}"
        self._make(request.properties, identity, known=())
        return provider_pb2.CreateResponse(id=identity, properties=struct(tree))

    @answering
    def Update(self, request: Any) -> Any:  # noqa: N802
        """The queues that differ."""
        if not request.preview:
            self._make(request.news, request.id, known=_tree(request.olds)["queues"])
        return provider_pb2.UpdateResponse(properties=struct(_tree(request.news)))

    @answering
    def Read(self, request: Any) -> Any:  # noqa: N802
        """The queues as they are; no id where none is left."""
        if not request.inputs.fields:
            raise PluginError(
                f"a queue tree is not imported: declare it, and label the queues that it is to"
                f" take over: kubectl label queue NAME kai-fleet/tree={request.id}"
            )
        state = _tree(request.properties)
        try:
            live = self._queues(plain(request.inputs), _READ_PATIENCE).live(state["queues"])
        except ClusterAwayError as error:
            if _is_gone():
                return provider_pb2.ReadResponse()
            raise PluginError(f"{error}. {_if_gone('pulumi refresh')}") from None
        if not live:
            return provider_pb2.ReadResponse()
        state["queues"] = _specs(live)
        if "labels" in state:
            state["labels"] = _carried(state["labels"], live)
        request.inputs.update(state)
        return provider_pb2.ReadResponse(
            id=request.id, properties=struct(state), inputs=request.inputs
        )

    @answering
    def Delete(self, request: Any) -> Empty:  # noqa: N802
        """All queues of the tree. The way to the cluster is in the inputs: no state holds it."""
        state = plain(request.properties)
        try:
            self._queues({**plain(request.old_inputs), **state}).remove(state["queues"])
        except ClusterAwayError as error:
            if not _is_gone():
                raise PluginError(f"{error}. {_if_gone('pulumi up')}") from None
        return Empty()

    def _make(self, inputs: Struct, identity: str, known: Iterable[str]) -> None:
        """Make the tree as wanted. Raises PartialError with what is there if it is so in part."""
        tree = _tree(inputs)
        queues = self._queues(plain(inputs))
        try:
            queues.make(unpacked(tree["queues"]), known, tree.get("labels"))
        except SomeQueuesError as error:
            tree["queues"] = _specs(queues.live(known))
            raise PartialError(str(error), identity, tree, inputs) from None

    def _queues(self, properties: Properties, patience: float = 30.0) -> Queues:
        cluster, tree = str(properties["cluster"]), str(properties["tree"])
        api = Api(self._connection(properties))
        return Queues(api, tree, cluster, self.cancelled.is_set, patience)

    def _connection(self, properties: Properties) -> Connection:
        content = str(properties.get("kubeconfig") or "")
        context = str(properties.get("context") or "")
        with self._lock:
            if (content, context) not in self._connections:
                try:
                    way = connection(content, context=context)
                except UnusableKubeconfigError as error:
                    where = f"cluster {properties['cluster']}: " if "cluster" in properties else ""
                    raise ClusterAwayError(f"{where}{error}") from None
                self._connections[content, context] = way
            return self._connections[content, context]


def _tree(properties: Struct) -> Properties:
    """What the tree is, without the way to its cluster."""
    return {key: value for key, value in plain(properties).items() if key not in ACCESS}


def _specs(live: Mapping[str, Any]) -> dict[str, str]:
    """Those of live queues, as text."""
    return packed({name: item.get("spec", {}) for name, item in live.items()})


def _carried(labels: Mapping[str, Any], live: Mapping[str, Any]) -> Properties:
    """Those of the labels that the live queues carry, with the values that they have there."""
    carried = {}
    for name, wanted in labels.items():
        has = live.get(name, {}).get("metadata", {}).get("labels") or {}
        carried[name] = {key: has[key] for key in wanted if key in has}
    return carried


def _is_gone() -> bool:
    """Whether the user says that clusters that do not answer are gone for good."""
    return os.environ.get(GONE, "").lower() in ("1", "t", "true")


def _if_gone(command: str) -> str:
    return f"If that cluster is gone for good: {GONE}=true {command}"


def _changes(old: object, new: object, path: Path = ()) -> Iterator[tuple[str, Any]]:
    """Each leaf that differs, as Pulumi spells its path, and how. A whole queue is one."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in (*old, *(key for key in new if key not in old)):
            if key not in new:
                yield spelled((*path, key)), _KINDS.DELETE
            elif key not in old:
                yield spelled((*path, key)), _KINDS.ADD
            else:
                yield from _changes(old[key], new[key], (*path, key))
    elif old != new:
        yield spelled(path), _KINDS.UPDATE
