"""The provider as the engine calls it: the resource `Queues`, a queue tree, and the functions.

The same process serves the components to programs in other languages.
"""

import asyncio
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from pulumi.provider.experimental import provider
from pulumi.provider.experimental.component import ComponentProvider
from pulumi.provider.server import ProviderServicer as ComponentServicer

from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import UnusableKubeconfigError
from kai_fleet.kube.kubeconfig import Connection, connection
from kai_fleet.provider import (
    EXISTING,
    PACKAGE,
    QUEUES,
    SECRET,
    PartialError,
    PluginError,
    version,
)
from kai_fleet.provider.functions import read_existing, read_secret
from kai_fleet.provider.queues import ClusterAwayError, Queues, SomeQueuesError
from kai_fleet.provider.serving import (
    Servicer,
    Values,
    engine_address,
    plain,
    property_values,
    serve,
)
from kai_fleet.provider.values import packed, spelled, unpacked

# How the cluster is reached is not part of what the tree is: credentials rotate.
ACCESS: Final = ("context", "kubeconfig")
REPLACES: Final = ("cluster", "identity")
# The official Kubernetes provider's variable: what is in a cluster that is gone leaves the state.
GONE: Final = "PULUMI_K8S_DELETE_UNREACHABLE"
_READ_PATIENCE: Final = 3.0  # seconds; an API server that restarts refuses for about one
_KINDS: Final = provider.PropertyDiffKind


class KaiFleet(provider.Provider):
    """Serve every queue tree of a program, whatever its cluster."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connections: dict[tuple[str, str], Connection] = {}
        self._cancelled = threading.Event()

    async def configure(self, request: provider.ConfigureRequest) -> provider.ConfigureResponse:
        """Take no output values: the SDK cannot read one that is unknown."""
        return provider.ConfigureResponse(
            accept_secrets=True, supports_preview=True, accept_resources=True
        )

    async def get_schema(self, request: provider.GetSchemaRequest) -> provider.GetSchemaResponse:
        """Describe the components, for programs in other languages."""
        return provider.GetSchemaResponse(components().schema)

    async def check(self, request: provider.CheckRequest) -> provider.CheckResponse:
        """Refuse what is no queue tree."""
        kind = request.urn.split("::")[-2].rpartition("$")[2]
        if kind != QUEUES:
            raise PluginError(f"the plugin {PACKAGE} serves no resource {kind}")
        return provider.CheckResponse(request.new_inputs, [])

    async def diff(self, request: provider.DiffRequest) -> provider.DiffResponse:
        """Name each queue that differs, at its own path."""
        changes = dict(_changes(_tree(request.old_state), _tree(request.new_inputs)))
        replaces = [path for path in changes if path in REPLACES]
        changes |= dict.fromkeys(replaces, _KINDS.UPDATE_REPLACE)
        tops = ["queues" if path.startswith("queues") else path for path in changes]
        return provider.DiffResponse(
            changes=bool(changes),
            diffs=list(dict.fromkeys(tops)),
            replaces=replaces,
            detailed_diff={
                path: provider.PropertyDiff(kind, False) for path, kind in changes.items()
            },
        )

    async def create(self, request: provider.CreateRequest) -> provider.CreateResponse:
        """Make the whole tree."""
        tree = _tree(request.properties)
        if request.preview:
            return provider.CreateResponse("", property_values(tree))
        identity = f"{tree['cluster']}/{tree['tree']}"
        await asyncio.to_thread(self._make, request.properties, tree, identity, ())
        return provider.CreateResponse(identity, property_values(tree))

    async def update(self, request: provider.UpdateRequest) -> provider.UpdateResponse:
        """Change the queues that differ."""
        tree = _tree(request.news)
        if not request.preview:
            known = _tree(request.olds)["queues"]
            await asyncio.to_thread(self._make, request.news, tree, request.resource_id, known)
        return provider.UpdateResponse(property_values(tree))

    async def read(self, request: provider.ReadRequest) -> provider.ReadResponse:
        """Read the queues as they are; no id where none is left."""
        if not request.inputs:
            raise PluginError(
                "a queue tree is not imported: declare it, and label the queues that it is to take"
                f" over: kubectl label queue NAME kai-fleet/tree={request.resource_id}"
            )
        return await asyncio.to_thread(self._read, request)

    async def delete(self, request: provider.DeleteRequest) -> None:
        """Delete all queues of the tree."""
        await asyncio.to_thread(self._remove, plain(request.properties))

    async def invoke(self, request: provider.InvokeRequest) -> provider.InvokeResponse:
        """Read a Secret's content, or whether an object is there."""
        if request.tok not in (EXISTING, SECRET):
            raise PluginError(f"the plugin {PACKAGE} serves no function {request.tok}")
        found = await asyncio.to_thread(self._answer, request.tok, plain(request.args))
        answer = property_values(found)
        if "data" in found:
            answer["data"] = answer["data"].with_secret(True)
        return provider.InvokeResponse(answer)

    async def cancel(self) -> None:
        """End what waits for a cluster."""
        self._cancelled.set()

    def _answer(self, function: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        try:
            way = self._connection(arguments)
        except ClusterAwayError as error:
            if function == SECRET:
                raise
            return {"problem": str(error), "away": True}
        if function == EXISTING:
            return read_existing(way, str(arguments["path"]))
        return read_secret(way, str(arguments["namespace"]), str(arguments["name"]))

    def _read(self, request: provider.ReadRequest) -> provider.ReadResponse:
        state = _tree(request.properties)
        try:
            live = self._queues(plain(request.inputs), _READ_PATIENCE).live(state["queues"])
        except ClusterAwayError as error:
            if _is_gone():
                return provider.ReadResponse("", {}, {})
            raise PluginError(f"{error}. {_if_gone('pulumi refresh')}") from None
        if not live:
            return provider.ReadResponse("", {}, {})
        state["queues"] = _specs(live)
        if "labels" in state:
            state["labels"] = _carried(state["labels"], live)
        found = property_values(state)
        return provider.ReadResponse(request.resource_id, found, {**request.inputs, **found})

    def _remove(self, properties: Mapping[str, Any]) -> None:
        try:
            self._queues(properties).remove(properties["queues"])
        except ClusterAwayError as error:
            if not _is_gone():
                raise PluginError(f"{error}. {_if_gone('pulumi up')}") from None

    def _make(
        self, inputs: Values, tree: Mapping[str, Any], identity: str, known: Iterable[str]
    ) -> None:
        """Make the tree as declared. Raises PartialError with what is there if it is so in part."""
        queues = self._queues(plain(inputs))
        try:
            queues.make(unpacked(tree["queues"]), known, tree.get("labels"))
        except SomeQueuesError as error:
            state = {**tree, "queues": _specs(queues.live(known))}
            raise PartialError(str(error), identity, property_values(state), inputs) from None

    def _queues(self, properties: Mapping[str, Any], patience: float = 30.0) -> Queues:
        cluster, tree = str(properties["cluster"]), str(properties["tree"])
        api = Api(self._connection(properties))
        return Queues(api, tree, cluster, self._cancelled.is_set, patience)

    def _connection(self, properties: Mapping[str, Any]) -> Connection:
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


def components() -> ComponentProvider:
    """Return the components that other languages use."""
    import kai_fleet

    served = [getattr(kai_fleet, name) for name in kai_fleet.COMPONENTS]
    return ComponentProvider(served, PACKAGE, version=version())


class PackageServicer(Servicer):
    """Serve components as well."""

    @cached_property
    def _components(self) -> ComponentServicer:
        return ComponentServicer(components(), [], engine_address())

    async def Construct(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Construct a component by the SDK's other servicer: this one reads no unknown outputs."""
        return await self._components.Construct(request, context)


def _tree(properties: Mapping[str, Any]) -> dict[str, Any]:
    """What the tree is, without the way to its cluster."""
    return {key: value for key, value in plain(properties).items() if key not in ACCESS}


def _specs(live: Mapping[str, Any]) -> dict[str, str]:
    """The specs of live queues, as text."""
    return packed({name: item.get("spec", {}) for name, item in live.items()})


def _carried(labels: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, Any]:
    """The labels that the live queues carry, with the values that they have there."""
    carried = {}
    for name, declared in labels.items():
        has = live.get(name, {}).get("metadata", {}).get("labels") or {}
        carried[name] = {key: has[key] for key in declared if key in has}
    return carried


def _is_gone() -> bool:
    """Whether the user says that clusters that do not answer are gone for good."""
    return os.environ.get(GONE, "").lower() in ("1", "t", "true")


def _if_gone(command: str) -> str:
    return f"If that cluster is gone for good: {GONE}=true {command}"


def _changes(old: object, new: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
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


def main() -> None:
    """Serve until the engine ends."""
    serve(KaiFleet(), version(), PackageServicer)


if __name__ == "__main__":
    main()
