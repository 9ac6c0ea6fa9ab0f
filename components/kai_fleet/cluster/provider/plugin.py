"""The provider plugin: resource `Queues`, which is a queue tree, and the functions.

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
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.server import ProviderServicer as ComponentServicer
from pulumi.runtime.proto import provider_pb2

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import UnusableKubeconfigError
from kai_fleet.cluster.provider import PluginError, version
from kai_fleet.cluster.provider.functions import answer, opened
from kai_fleet.cluster.provider.queues import ClusterAwayError, Queues, SomeQueuesError
from kai_fleet.cluster.provider.serving import (
    Servicer,
    Values,
    engine_address,
    plain,
    property_values,
    serve,
)
from kai_fleet.cluster.provider.values import packed, struct, unpacked
from kai_fleet.names import EXISTING, PACKAGE, QUEUES, SECRET

Properties = Mapping[str, Any]
# Not part of the tree's state: credentials rotate.
ACCESS: Final = ("context", "kubeconfig")
REPLACES: Final = ("cluster", "identity")
# The official Kubernetes provider's variable: what is in a cluster that is gone leaves the state.
GONE: Final = "PULUMI_K8S_DELETE_UNREACHABLE"
_READ_PATIENCE: Final = 3.0  # seconds; an API server that restarts refuses for about one
_KINDS: Final = provider.PropertyDiffKind


class KaiFleet(provider.Provider):
    """Serve every queue tree of a program, whatever its cluster."""

    def __init__(self) -> None:
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
        kind = request.type.rpartition("$")[2]
        if kind != QUEUES:
            raise PluginError(f"the plugin {PACKAGE} serves no resource {kind}")
        return provider.CheckResponse(request.new_inputs, [])

    async def diff(self, request: provider.DiffRequest) -> provider.DiffResponse:
        """Name each queue that differs, at its own path."""
        changes = dict(_changes(_tree(request.old_state), _tree(request.new_inputs)))
        replaces = [path for path in changes if path in REPLACES]
        changes |= dict.fromkeys(replaces, _KINDS.UPDATE_REPLACE)
        details = {path: provider.PropertyDiff(kind, False) for path, kind in changes.items()}
        tops = dict.fromkeys(path.partition("[")[0] for path in changes)
        return provider.DiffResponse(
            changes=bool(changes), diffs=list(tops), replaces=replaces, detailed_diff=details
        )

    async def create(self, request: provider.CreateRequest) -> provider.CreateResponse:
        """Create the whole tree."""
        tree = _tree(request.properties)
        if request.preview:
            return provider.CreateResponse("", property_values(tree))
        identity = f"{tree['cluster']}/{tree['tree']}"
        await asyncio.to_thread(self._make, request.properties, identity, ())
        return provider.CreateResponse(identity, property_values(tree))

    async def update(self, request: provider.UpdateRequest) -> provider.UpdateResponse:
        """Change the queues that differ."""
        if not request.preview:
            known = plain(request.olds)["queues"]
            await asyncio.to_thread(self._make, request.news, request.resource_id, known)
        return provider.UpdateResponse(property_values(_tree(request.news)))

    async def read(self, request: provider.ReadRequest) -> provider.ReadResponse:
        """Read the queues as they are; no id where none is left."""
        if not request.inputs:
            raise PluginError(
                "a queue tree is not imported: declare it, and label the queues that it is to take"
                f" over: kubectl label queue NAME kai-fleet/tree={request.resource_id}"
            )
        inputs, state = plain(request.inputs), _tree(request.properties)
        live = await asyncio.to_thread(self._live, inputs, state["queues"])
        if not live:
            return provider.ReadResponse("", {}, {})
        state["queues"] = _specs(live)
        if "labels" in state:
            state["labels"] = _carried(state["labels"], live)
        found = property_values(state)
        return provider.ReadResponse(request.resource_id, found, {**request.inputs, **found})

    async def delete(self, request: provider.DeleteRequest) -> None:
        """Delete all queues of the tree."""
        await asyncio.to_thread(self._remove, plain(request.properties))

    async def invoke(self, request: provider.InvokeRequest) -> provider.InvokeResponse:
        """Read a Secret's content, or whether an object is there."""
        if request.tok not in (EXISTING, SECRET):
            raise PluginError(f"the plugin {PACKAGE} serves no function {request.tok}")
        found = await asyncio.to_thread(answer, request.tok, plain(request.args))
        values = property_values(found)
        if "data" in found:
            values["data"] = values["data"].with_secret(True)
        return provider.InvokeResponse(values)

    async def cancel(self) -> None:
        """Stop waiting for clusters."""
        self._cancelled.set()

    def _make(self, declared: Values, identity: str, known: Iterable[str]) -> None:
        """Reconcile the tree. Raises PluginError, with the live state if only a part succeeded."""
        inputs = plain(declared)
        queues = self._queues(inputs)
        try:
            queues.make(unpacked(inputs["queues"]), known, inputs.get("labels"))
        except SomeQueuesError as error:
            state = {**_tree(declared), "queues": _specs(queues.live(known))}
            partial = provider_pb2.ErrorResourceInitFailed(
                id=identity,
                properties=struct(state),
                inputs=PropertyValue.marshal_map(declared),  # the kubeconfig stays secret
                reasons=[str(error)],
            )
            raise PluginError(str(error), partial) from None

    def _live(self, inputs: Properties, known: Iterable[str]) -> Properties:
        try:
            return self._queues(inputs, _READ_PATIENCE).live(known)
        except ClusterAwayError as error:
            _unless_gone(error, "pulumi refresh")
            return {}

    def _remove(self, inputs: Properties) -> None:
        try:
            self._queues(inputs).remove(inputs["queues"])
        except ClusterAwayError as error:
            _unless_gone(error, "pulumi up")

    def _queues(self, inputs: Properties, patience: float = 30.0) -> Queues:
        cluster = str(inputs["cluster"])
        try:
            api = Api(opened(inputs.get("kubeconfig") or "", inputs.get("context") or ""))
        except UnusableKubeconfigError as error:
            raise ClusterAwayError(f"cluster {cluster}: {error}") from None
        return Queues(api, str(inputs["tree"]), cluster, self._cancelled.is_set, patience)


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


def _tree(properties: Values) -> dict[str, Any]:
    """The properties of a tree without kubeconfig and context."""
    return {key: value for key, value in plain(properties).items() if key not in ACCESS}


def _specs(live: Properties) -> dict[str, str]:
    """The specs of live queues, as text."""
    return packed({name: item.get("spec", {}) for name, item in live.items()})


def _carried(labels: Properties, live: Properties) -> dict[str, Any]:
    """The declared labels with their live values."""
    carried = {}
    for name, declared in labels.items():
        has = live.get(name, {}).get("metadata", {}).get("labels") or {}
        carried[name] = {key: has[key] for key in declared if key in has}
    return carried


def _unless_gone(error: ClusterAwayError, command: str) -> None:
    """Raise, unless PULUMI_K8S_DELETE_UNREACHABLE treats unreachable clusters as deleted."""
    if os.environ.get(GONE, "").lower() not in ("1", "t", "true"):
        hint = f"If that cluster is gone for good: {GONE}=true {command}"
        raise PluginError(f"{error}. {hint}") from None


def _changes(old: Properties, new: Properties, path: str = "") -> Iterator[tuple[str, Any]]:
    """Property path and kind of each difference. A whole queue is one property."""
    for key in {**old, **new}:
        here = f'{path}["{key}"]' if path else key
        before, after = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from _changes(before, after, here)
        elif before != after:
            whole = _KINDS.ADD if before is None else _KINDS.DELETE if after is None else None
            yield here, whole or _KINDS.UPDATE


def main() -> None:
    """Serve until the engine ends."""
    serve(KaiFleet(), version(), PackageServicer)
