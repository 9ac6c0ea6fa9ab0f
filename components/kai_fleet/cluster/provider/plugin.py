"""The provider plugin: resource `Queues`, which is a queue tree; `QueueCheck`, which fails where
queues of a tree that several teams share are not as declared; and functions that read clusters.

The same process serves the components to programs in other languages.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from functools import cached_property, lru_cache, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.empty_pb2 import Empty
from pulumi.provider.experimental import provider
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.experimental.server import ProviderServicer
from pulumi.provider.server import ProviderServicer as ComponentServicer
from pulumi.runtime.proto import provider_pb2

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import KubeError, RefusedError, UnreachableError, complaint
from kai_fleet.cluster.kube.identity import LOOK_SECONDS, uid_of
from kai_fleet.cluster.kube.kubeconfig import Connection, connection
from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.cluster.provider import PluginError, version
from kai_fleet.cluster.provider.queues import ClusterAwayError, Queues, SomeQueuesError, several
from kai_fleet.cluster.provider.serving import Values, engine_address, plain, property_values, serve
from kai_fleet.cluster.provider.values import struct
from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError, address_of, of_secret
from kai_fleet.names import PACKAGE, QUEUE_CHECK, SECRET
from kai_fleet.urns import read_urn

if TYPE_CHECKING:
    from kai_fleet.cluster.provider.constructing import Components

Properties = Mapping[str, Any]
# Not part of the tree: credentials rotate, and what was refused each update finds anew.
_NOT_OF_TREE: Final = ("context", "kubeconfig", "refused")
# The official Kubernetes provider's variable: what is in a cluster that is gone leaves the state.
_GONE: Final = "PULUMI_K8S_DELETE_UNREACHABLE"
# The engine's variable for providers that run already.
_ATTACHED: Final = "PULUMI_DEBUG_PROVIDERS"
_READ_SECONDS: Final = 20.0
_TREE_SECONDS: Final = 300.0  # a webhook that starts takes 30 of them on each level
_KINDS: Final = provider.PropertyDiffKind


class KaiFleet(provider.Provider):
    """Serve every queue tree of a program, whatever its cluster."""

    async def configure(self, request: provider.ConfigureRequest) -> provider.ConfigureResponse:
        """Take no output values: the SDK cannot read one that is unknown."""
        return provider.ConfigureResponse(
            accept_secrets=True, supports_preview=True, accept_resources=True
        )

    async def get_schema(self, request: provider.GetSchemaRequest) -> provider.GetSchemaResponse:
        """Describe the components, for programs in other languages."""
        return provider.GetSchemaResponse(components().schema)

    async def diff(self, request: provider.DiffRequest) -> provider.DiffResponse:
        """Name each queue that differs, at its own path. Another cluster makes another tree."""
        changes = dict(_changes(_tree(request.old_state), _tree(request.new_inputs)))
        replaces = ["cluster"] if "cluster" in changes else []
        changes |= dict.fromkeys(replaces, _KINDS.UPDATE_REPLACE)
        details = {path: provider.PropertyDiff(kind, False) for path, kind in changes.items()}
        tops = dict.fromkeys(path.partition("[")[0] for path in changes)
        return provider.DiffResponse(
            changes=bool(changes), diffs=list(tops), replaces=replaces, detailed_diff=details
        )

    async def create(self, request: provider.CreateRequest) -> provider.CreateResponse:
        """Create the whole tree."""
        if _is_check(request.urn):
            inputs = _checked(request.properties, preview=request.preview)
            return provider.CreateResponse("" if request.preview else request.name, inputs)
        tree = _tree(request.properties)
        if request.preview:
            return provider.CreateResponse("", property_values(_with_refused(tree, {})))
        identity = f"{tree['cluster']}/{tree['tree']}"
        made = await asyncio.to_thread(_make, request.properties, identity, {})
        return provider.CreateResponse(identity, property_values(made))

    async def update(self, request: provider.UpdateRequest) -> provider.UpdateResponse:
        """Change the queues that differ."""
        if _is_check(request.urn):
            return provider.UpdateResponse(_checked(request.news, preview=request.preview))
        olds = plain(request.olds)
        if request.preview:
            tree = _with_refused(_tree(request.news), olds.get("refused") or {})
            return provider.UpdateResponse(property_values(tree))
        known = olds["queues"]
        made = await asyncio.to_thread(_make, request.news, request.resource_id, known)
        return provider.UpdateResponse(property_values(made))

    async def read(self, request: provider.ReadRequest) -> provider.ReadResponse:
        """Read the queues as they are; no id where none is left."""
        if _is_check(request.urn):
            return provider.ReadResponse(request.resource_id, request.properties, request.inputs)
        state, inputs = _tree(request.properties), plain(request.inputs)
        access = {**inputs, "queues": state["queues"]}
        live = await asyncio.to_thread(_reached, access, "pulumi refresh", Queues.live)
        if not live:
            return provider.ReadResponse("", {}, {})
        state["queues"] = {name: item.get("spec", {}) for name, item in live.items()}
        found = property_values(state)
        return provider.ReadResponse(request.resource_id, found, {**request.inputs, **found})

    async def delete(self, request: provider.DeleteRequest) -> None:
        """Delete all queues of the tree."""
        if _is_check(request.urn):
            return
        await asyncio.to_thread(_reached, plain(request.properties), "pulumi up", Queues.remove)

    async def invoke(self, request: provider.InvokeRequest) -> provider.InvokeResponse:
        """Read a Secret's content, or whether an object is there."""
        found = await asyncio.to_thread(_answer, request.tok, plain(request.args))
        values = property_values(found)
        if "data" in found:
            values["data"] = values["data"].with_secret(True)
        return provider.InvokeResponse(values)


class _Servicer(ProviderServicer):
    async def Attach(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Allow the engine to use what is served by `serve_here`."""
        return Empty()

    @cached_property
    def _components(self) -> ComponentServicer:
        return ComponentServicer(components(), [], engine_address())

    async def Construct(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Construct a component by the SDK's other servicer: this one reads no unknown outputs."""
        return await self._components.Construct(request, context)

    async def Delete(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Add the inputs that the state lacks, the kubeconfig: the SDK leaves them out."""
        for key in request.old_inputs.fields.keys() - request.properties.fields.keys():
            request.properties.fields[key].CopyFrom(request.old_inputs.fields[key])
        return await super().Delete(request, context)


def components() -> "Components":
    """Return the components that other languages use; they take a second to import."""
    from kai_fleet.cluster.provider.constructing import Components

    return Components()


def _make(declared: Values, identity: str, known: Properties) -> dict[str, Any]:
    """Reconcile the tree, and return its state. Where only a part succeeds, the state keeps the
    `known` queues: the label finds the others.

    A tree that is `shared` succeeds without what concerns single queues, which is in `refused` by
    their names. Those that are declared are not in its state, so that the next update tries again.
    """
    inputs, tree = plain(declared), _tree(declared)
    failures = _queues({**inputs, "queues": known}).make(inputs["queues"], inputs.get("labels"))
    refused = dict(failures)
    if failures and ("" in refused or not inputs.get("shared")):
        error = SomeQueuesError(several(failures))
        error.partial = provider_pb2.ErrorResourceInitFailed(
            id=identity,
            properties=struct({**tree, "queues": known}),
            inputs=PropertyValue.marshal_map(declared),  # the kubeconfig stays secret
            reasons=[str(error)],
        )
        raise error
    declared_queues, left = tree["queues"].items(), refused.keys() - tree["queues"].keys()
    tree["queues"] = {name: spec for name, spec in declared_queues if name not in refused}
    tree["queues"] |= {name: known[name] for name in left if name in known}
    return _with_refused(tree, refused)


def _with_refused(tree: dict[str, Any], refused: Properties) -> dict[str, Any]:
    """The outputs of a tree; in a preview `refused` is that of the last update."""
    return {**tree, "refused": dict(refused)} if tree.get("shared") else tree


def _is_check(urn: str) -> bool:
    """Whether a resource is a QueueCheck."""
    return read_urn(urn).type == QUEUE_CHECK


def _checked(declared: Values, *, preview: bool) -> dict[str, PropertyValue]:
    """The inputs of a check. Raises SomeQueuesError with its `refusal`, but in a preview."""
    refusal = plain(declared).get("refusal")
    if refusal and not preview:
        raise SomeQueuesError(str(refusal))
    return dict(declared)


def _reached(inputs: Properties, command: str, ask: Callable[[Queues], Any]) -> Any:
    """What `ask` returns; None if PULUMI_K8S_DELETE_UNREACHABLE counts the cluster as deleted."""
    try:
        return ask(_queues(inputs))
    except (ClusterAwayError, UnreachableError) as error:
        if os.environ.get(_GONE, "").lower() in ("1", "t", "true"):
            return None
        hint = f"If that cluster is gone for good: {_GONE}=true {command}"
        raise PluginError(f"{error}. {hint}") from None


def _queues(inputs: Properties) -> Queues:
    opened = _opened(inputs.get("kubeconfig") or "", inputs.get("context") or "")
    api = Api(opened, in_all=_TREE_SECONDS)
    known, tenants = frozenset(inputs["queues"]), tuple(inputs.get("tenants") or ())
    return Queues(api, inputs["tree"], inputs["cluster"], known, tenants)


def _tree(properties: Values) -> dict[str, Any]:
    """The properties of a tree without kubeconfig and context, and without what was refused."""
    return {key: value for key, value in plain(properties).items() if key not in _NOT_OF_TREE}


def _changes(old: Properties, new: Properties, path: str = "") -> Iterator[tuple[str, Any]]:
    """Property path and kind of each difference."""
    for key in {**old, **new}:
        here = f'{path}["{key}"]' if path else key
        before, after = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from _changes(before, after, here)
        elif before != after:
            whole = _KINDS.ADD if before is None else _KINDS.DELETE if after is None else None
            yield here, whole or _KINDS.UPDATE


@lru_cache
def _opened(content: str, context: str) -> Connection:
    """Open each cluster once, which may take a second. Raises UnusableKubeconfigError."""
    return connection(content, context=context)


def _answer(function: str, arguments: Properties) -> dict[str, Any]:
    """Call a function. Its result has `problem` if the cluster refused, `denied` if this user may
    not ask, and `away` if it did not answer: of an error the engine would make its own words.
    """
    path, of_secret = arguments.get("path", ""), function == SECRET
    if of_secret:
        path = "/api/v1/namespaces/{namespace}/secrets/{name}".format_map(arguments)
    try:
        content, context = (arguments.get(key) or "" for key in ("kubeconfig", "context"))
        api = Api(_opened(content, context), in_all=_READ_SECONDS)
        found = api.find(path)
    except KubeError as error:
        problem = f"{'cannot be read: ' if of_secret else ''}{complaint(error)}"
        status = error.status if isinstance(error, RefusedError) else None
        return {
            "problem": problem,
            "away": isinstance(error, UnreachableError),
            "denied": status == HTTPStatus.FORBIDDEN,
        }
    if of_secret:
        if found is None:
            return {"problem": "is not there"}
        data = found.get("data") or {}
        server = str(arguments.get("server") or "")
        if not server:
            return {"data": data}
        return {"data": data, **_identity(data, server), **_address(api, arguments)}
    return {"there": False} if found is None else {"there": True, **_about(found)}


def _identity(data: Properties, server: str) -> dict[str, Any]:
    """The UID of a vCluster as `cluster`, by its Secret, at a server; none where it gives none."""
    try:
        content = of_secret(data, server, "look")
        uid = uid_of(Api.of_kubeconfig(content, in_all=LOOK_SECONDS))
    except (TenantKubeconfigError, KubeError):
        return {}
    return {"cluster": uid} if uid else {}


def _address(api: Api, arguments: Properties) -> dict[str, Any]:
    """The URL of a vCluster by its Service as `server`; none where that has none, or is not read.

    A Service that somebody deleted and made again has another node port or load balancer.
    """
    path = "/api/v1/namespaces/{namespace}/services/{vcluster}"
    try:
        service = api.find(path.format_map(arguments))
    except KubeError:
        return {}
    if service is None:
        return {}
    address = address_of(service, str(arguments["access"]), str(arguments["host"]) or None)
    return {"server": f"https://{address}"} if address else {}


def _about(found: Properties) -> dict[str, Any]:
    """`handler`, `labels` and `spec` of an object, `value` of a PriorityClass, `release` of an
    object of Helm; of a list its `nodes`, each with `labels` and `taints`.
    """
    if "items" in found:
        nodes = map(KubeObject, found["items"])
        taints = [{"labels": n.labels, "taints": n.spec.get("taints") or []} for n in nodes]
        return {"nodes": taints}
    own = KubeObject({"metadata": {}, **found})  # what the API says of itself has none
    helm = [own.annotations.get(f"meta.helm.sh/release-{key}") for key in ("namespace", "name")]
    return {
        "handler": found.get("handler"),
        "labels": own.labels,
        "value": found.get("value"),
        "spec": own.spec,
        "release": "/".join(map(str, helm)),
    }


def serve_here() -> dict[str, str]:
    """Serve in a thread of this process, which has loaded most of it already.

    Returns the variable by which the engine uses that and starts no plugin.
    """
    port = Future[int]()
    serving = partial(serve, KaiFleet(), version(), _Servicer, port.set_result)
    threading.Thread(target=serving, daemon=True).start()
    others = os.environ.get(_ATTACHED, "")  # whoever debugs a provider
    return {_ATTACHED: f"{others},{PACKAGE}:{port.result()}".lstrip(",")}


def main() -> None:
    """Serve until the engine ends."""
    serve(KaiFleet(), version(), _Servicer)
