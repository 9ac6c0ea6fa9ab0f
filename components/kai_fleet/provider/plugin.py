"""The provider plugin: two resources, and functions that read clusters.

`Queues` is a whole queue tree. `QueueCheck` fails if queues of a tree that several teams share are
not as declared. The same process serves the components to programs in other languages.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from functools import cached_property, lru_cache
from http import HTTPStatus
from typing import Any, TypeVar

from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message
from grpc.aio import ServicerContext
from pulumi.provider.experimental import provider
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.experimental.server import ProviderServicer
from pulumi.provider.server import ProviderServicer as ComponentServicer
from pulumi.runtime.proto import provider_pb2

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import KubeError, RefusedError, UnreachableError, complaint
from kai_fleet.cluster.kube.identity import uid_at
from kai_fleet.cluster.kube.kubeconfig import Connection, connection
from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.cluster.queues import ClusterAwayError, Queues, SomeQueuesError, several
from kai_fleet.cluster.tenant_kubeconfig import address_of
from kai_fleet.names import PACKAGE, QUEUE_CHECK, SECRET
from kai_fleet.provider import PluginError, version
from kai_fleet.provider.constructing import Components
from kai_fleet.provider.serving import (
    Values,
    engine_address,
    property_values,
    python_properties,
    serve,
)
from kai_fleet.provider.values import struct
from kai_fleet.urns import read_urn

Answer = TypeVar("Answer")
# Inputs, or outputs, in plain Python.
Properties = Mapping[str, Any]
State = dict[str, Any]
# Not part of the tree in the state: credentials rotate, and each update finds anew what is refused.
_NOT_OF_TREE = ("context", "kubeconfig", "refused")
# The official Kubernetes provider's variable: objects of an unreachable cluster leave the state.
_DELETE_UNREACHABLE = "PULUMI_K8S_DELETE_UNREACHABLE"
# The engine's variable for providers that run already.
_ATTACHED = "PULUMI_DEBUG_PROVIDERS"
_READ_SECONDS = 20.0
_START_SECONDS = 60.0
_DIFF = provider.PropertyDiffKind


class KaiFleet(provider.Provider):
    """Serve all queue trees of a program, in whichever clusters they are."""

    async def configure(self, request: provider.ConfigureRequest) -> provider.ConfigureResponse:
        """Accept no output values: the SDK cannot read an unknown one."""
        return provider.ConfigureResponse(
            accept_secrets=True, supports_preview=True, accept_resources=True
        )

    async def get_schema(self, request: provider.GetSchemaRequest) -> provider.GetSchemaResponse:
        """Return the schema of the components, for programs in other languages."""
        return provider.GetSchemaResponse(Components().schema)

    async def diff(self, request: provider.DiffRequest) -> provider.DiffResponse:
        """Name each queue that differs, at its own path. Another cluster replaces the tree.

        Another kubeconfig or context is no difference. A QueueCheck is compared in the same way.
        """
        kinds = dict(_differences(_tree(request.old_state), _tree(request.new_inputs)))
        replaces = []
        if "cluster" in kinds:
            kinds["cluster"] = _DIFF.UPDATE_REPLACE
            replaces = ["cluster"]
        top_level = dict.fromkeys(path.partition("[")[0] for path in kinds)
        return provider.DiffResponse(
            changes=bool(kinds),
            diffs=list(top_level),
            replaces=replaces,
            detailed_diff={
                path: provider.PropertyDiff(kind, False) for path, kind in kinds.items()
            },
        )

    async def create(self, request: provider.CreateRequest) -> provider.CreateResponse:
        """Create the whole tree, or check queues; a preview does neither.

        Raises SomeQueuesError and KubeError as `_make` and `_checked` do.
        """
        if _is_check(request.urn):
            inputs = _checked(request.properties, preview=request.preview)
            identity = "" if request.preview else request.name
            return provider.CreateResponse(identity, inputs)
        tree = _tree(request.properties)
        if request.preview:
            return provider.CreateResponse("", property_values(_with_refused(tree, {})))
        identity = f"{tree['cluster']}/{tree['tree']}"
        state = await asyncio.to_thread(_make, request.properties, identity, {})
        return provider.CreateResponse(identity, property_values(state))

    async def update(self, request: provider.UpdateRequest) -> provider.UpdateResponse:
        """Change the queues that differ, or check queues; a preview does neither.

        Raises SomeQueuesError and KubeError as `_make` and `_checked` do.
        """
        if _is_check(request.urn):
            return provider.UpdateResponse(_checked(request.news, preview=request.preview))
        old_state = python_properties(request.olds)
        if request.preview:
            tree = _with_refused(_tree(request.news), old_state.get("refused") or {})
            return provider.UpdateResponse(property_values(tree))
        old_queues = old_state["queues"]
        state = await asyncio.to_thread(_make, request.news, request.resource_id, old_queues)
        return provider.UpdateResponse(property_values(state))

    async def read(self, request: provider.ReadRequest) -> provider.ReadResponse:
        """Read the queues as they are in the cluster; without any, the response has no id.

        So has one of a cluster that does not answer, if _DELETE_UNREACHABLE gives it up. Returns a
        QueueCheck as it is. Raises PluginError, and QueuesError if the list is refused.
        """
        if _is_check(request.urn):
            return provider.ReadResponse(request.resource_id, request.properties, request.inputs)
        state = _tree(request.properties)
        access = {**python_properties(request.inputs), "queues": state["queues"]}
        live = await asyncio.to_thread(_if_reachable, access, "pulumi refresh", Queues.live)
        if not live:
            return provider.ReadResponse("", {}, {})
        state["queues"] = {name: queue.get("spec", {}) for name, queue in live.items()}
        properties = property_values(state)
        inputs = {**request.inputs, **properties}
        return provider.ReadResponse(request.resource_id, properties, inputs)

    async def delete(self, request: provider.DeleteRequest) -> None:
        """Delete all queues of the tree, except in a cluster that _DELETE_UNREACHABLE gives up.

        Raises PluginError, and SomeQueuesError and QueuesError as `Queues.remove` does.
        """
        if _is_check(request.urn):
            return
        properties = python_properties(request.properties)
        await asyncio.to_thread(_if_reachable, properties, "pulumi up", Queues.remove)

    async def invoke(self, request: provider.InvokeRequest) -> provider.InvokeResponse:
        """Read a Secret's content, which stays secret, or any other object.

        Errors of the cluster are part of the answer: see `_answer`.
        """
        answer = await asyncio.to_thread(_answer, request.tok, python_properties(request.args))
        values = property_values(answer)
        if "data" in answer:
            values["data"] = values["data"].with_secret(True)
        return provider.InvokeResponse(values)


class _Servicer(ProviderServicer):
    async def Attach(self, request: Message, context: ServicerContext) -> Empty:  # noqa: N802
        """Let the engine attach to the provider that `serve_here` serves."""
        return Empty()

    @cached_property
    def _components(self) -> ComponentServicer:
        return ComponentServicer(Components(), [], engine_address())

    async def Construct(  # noqa: N802
        self, request: provider_pb2.ConstructRequest, context: ServicerContext
    ) -> provider_pb2.ConstructResponse:
        """Construct a component by the SDK's other servicer: this one fails on unknown outputs."""
        return await self._components.Construct(request, context)

    async def Delete(  # noqa: N802
        self, request: provider_pb2.DeleteRequest, context: ServicerContext
    ) -> Empty:
        """Add the inputs that the state lacks, such as the kubeconfig: the SDK leaves them out."""
        for key in request.old_inputs.fields.keys() - request.properties.fields.keys():
            request.properties.fields[key].CopyFrom(request.old_inputs.fields[key])
        return await super().Delete(request, context)


def _make(declared: Values, identity: str, old_queues: Properties) -> State:
    """Reconcile the tree, and return its new state.

    A tree that is not `shared` fails if one queue fails. A `shared` tree fails only if the whole
    cluster does; otherwise `refused` in its state has the reasons by name. A declared queue that is
    refused is not in the state, so that the next update tries again; one that could not be deleted
    stays in it.

    Args:
        declared: The inputs.
        identity: The resource's id.
        old_queues: The queues in the state before.

    Raises:
        SomeQueuesError: The tree failed. The error's `partial` keeps `old_queues` in the state; the
            label finds queues that were created.
        ClusterAwayError: The cluster does not answer when the queues are listed.
        QueuesError: It refuses to list them.
        UnusableKubeconfigError: Its kubeconfig cannot be used.
    """
    inputs = python_properties(declared)
    tree = _tree(declared)
    tree_queues = _queues({**inputs, "queues": old_queues})
    failures = tree_queues.make(inputs["queues"], inputs.get("labels") or {})
    refused = dict(failures)
    if failures and ("" in refused or not inputs.get("shared")):
        error = SomeQueuesError(several(failures))
        error.partial = provider_pb2.ErrorResourceInitFailed(
            id=identity,
            properties=struct({**tree, "queues": old_queues}),
            inputs=PropertyValue.marshal_map(declared),  # keeps the kubeconfig secret
            reasons=[str(error)],
        )
        raise error
    queues = {name: spec for name, spec in tree["queues"].items() if name not in refused}
    for name in refused.keys() - tree["queues"].keys():
        if name in old_queues:
            queues[name] = old_queues[name]
    return _with_refused({**tree, "queues": queues}, refused)


def _with_refused(tree: State, refused: Properties) -> State:
    """The outputs of a tree: if it is shared, with `refused`. A preview shows the last update's."""
    if not tree.get("shared"):
        return tree
    return {**tree, "refused": dict(refused)}


def _is_check(urn: str) -> bool:
    """Whether a resource is a QueueCheck."""
    return read_urn(urn).type == QUEUE_CHECK


def _checked(declared: Values, *, preview: bool) -> Values:
    """The inputs of a check.

    Raises SomeQueuesError with its `refusal`, if that is not empty, except in a preview.
    """
    refusal = python_properties(declared).get("refusal")
    if refusal and not preview:
        raise SomeQueuesError(str(refusal))
    return dict(declared)


def _if_reachable(
    inputs: Properties, command: str, ask: Callable[[Queues], Answer]
) -> Answer | None:
    """The result of `ask`; None if PULUMI_K8S_DELETE_UNREACHABLE gives up an unreachable cluster.

    Raises PluginError for an unreachable cluster or an unusable kubeconfig otherwise, with the
    variable and `command`. Other errors of `ask` are raised as they are.
    """
    try:
        return ask(_queues(inputs))
    except (ClusterAwayError, UnreachableError) as error:
        if os.environ.get(_DELETE_UNREACHABLE, "").lower() in ("1", "t", "true"):
            return None
        hint = f"If that cluster is gone for good: {_DELETE_UNREACHABLE}=true {command}"
        raise PluginError(f"{error}. {hint}") from None


def _queues(inputs: Properties) -> Queues:
    """The queues of a tree with these inputs, whose `queues` are those in the state.

    Raises UnusableKubeconfigError.
    """
    return Queues(
        api=Api(_connection_in(inputs)),
        tree=inputs["tree"],
        cluster=inputs["cluster"],
        known=frozenset(inputs["queues"]),
        tenants=tuple(inputs.get("tenants") or ()),
    )


def _tree(properties: Values) -> State:
    """The properties of a tree without its kubeconfig and context, and without `refused`."""
    return {
        key: value
        for key, value in python_properties(properties).items()
        if key not in _NOT_OF_TREE
    }


def _differences(
    old: Properties, new: Properties, path: str = ""
) -> Iterator[tuple[str, provider.PropertyDiffKind]]:
    """The property path and the kind of each difference: `queues["ml"]["priority"]`.

    A null counts as an absent value. Lists are compared as a whole.
    """
    for key in {**old, **new}:
        key_path = f'{path}["{key}"]' if path else key
        before = old.get(key)
        after = new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from _differences(before, after, key_path)
        elif before == after:
            continue
        elif before is None:
            yield key_path, _DIFF.ADD
        elif after is None:
            yield key_path, _DIFF.DELETE
        else:
            yield key_path, _DIFF.UPDATE


# Connects to each cluster once in this process: it may take a second. Errors are not cached.
_connect = lru_cache(connection)


def _connection_in(inputs: Properties) -> Connection:
    """The connection that `kubeconfig` or `context` give. Raises UnusableKubeconfigError."""
    return _connect(inputs.get("kubeconfig") or "", context=inputs.get("context") or "")


def _answer(function: str, arguments: Properties) -> State:
    """The result of a provider function.

    Errors are part of it, because the engine would reword an exception: `problem` is the message,
    `denied` says that this user may not read the object, `away` that the cluster did not answer.
    Otherwise SECRET has the result of `_secret`; any other function says whether the object at
    `path` is `there`, with what `_about` tells of it. Raises KeyError without an argument that
    SECRET needs.
    """
    if function == SECRET:
        path = "/api/v1/namespaces/{namespace}/secrets/{name}".format_map(arguments)
    else:
        path = arguments.get("path", "")
    try:
        api = Api(_connection_in(arguments), total_seconds=_READ_SECONDS)
        item = api.find(path)
    except KubeError as error:
        prefix = "cannot be read: " if function == SECRET else ""
        return {
            "problem": f"{prefix}{complaint(error)}",
            "away": isinstance(error, UnreachableError),
            "denied": isinstance(error, RefusedError) and error.status == HTTPStatus.FORBIDDEN,
        }
    if function == SECRET:
        return _secret(api, arguments, item)
    if item is None:
        return {"there": False}
    return {"there": True, **_about(item)}


def _secret(api: Api, arguments: Properties, secret: Properties | None) -> State:
    """The `data` of a Secret; with an argument `server` also what identifies its vCluster.

    That is the UID as `cluster`; if it does not answer there, the URL by its Service as `server`.
    Either is absent if it cannot be read. Without a Secret there is a `problem` in place of both.
    Raises KeyError and one of MALFORMED as `_url` does.
    """
    if secret is None:
        return {"problem": "is not there"}
    data = secret.get("data") or {}
    server = str(arguments.get("server") or "")
    if not server:
        return {"data": data}
    uid = uid_at(server, data)
    if uid:
        return {"data": data, "cluster": uid}
    url = _url(api, arguments)
    return {"data": data, "server": url} if url else {"data": data}


def _url(api: Api, arguments: Properties) -> str:
    """The URL of a vCluster by its Service; "" if it has none, or cannot be read.

    If somebody deletes the Service and creates it again, it gets another node port or balancer.
    Raises KeyError without one of the arguments `namespace`, `vcluster`, `access` and `host`, of
    which "" as `host` means none; one of MALFORMED as `address_of` does.
    """
    path = "/api/v1/namespaces/{namespace}/services/{vcluster}"
    try:
        service = api.find(path.format_map(arguments))
    except KubeError:
        return ""
    if service is None:
        return ""
    address = address_of(service, str(arguments["access"]), str(arguments["host"]) or None)
    return f"https://{address}" if address else ""


def _about(item: Properties) -> State:
    """What a program needs to know about an object, or about a list of nodes.

    Of an object `labels`, `spec`, a RuntimeClass' `handler`, a PriorityClass' `value`, and the
    `release` of Helm that owns it as NAMESPACE/NAME: `None/None` without one. Of a list the
    `nodes`, each with its `labels` and `taints`. Of the API server itself its `version`.
    """
    if "items" in item:
        nodes = map(KubeObject, item["items"])
        return {
            "nodes": [
                {"labels": node.labels, "taints": node.spec.get("taints") or []} for node in nodes
            ]
        }
    kube_object = KubeObject({"metadata": {}, **item})  # a discovery document has none
    namespace = kube_object.annotations.get("meta.helm.sh/release-namespace")
    name = kube_object.annotations.get("meta.helm.sh/release-name")
    return {
        "handler": item.get("handler"),
        "labels": kube_object.labels,
        "value": item.get("value"),
        "spec": kube_object.spec,
        "version": item.get("gitVersion"),
        "release": f"{namespace}/{name}",
    }


def serve_here() -> dict[str, str]:
    """Serve in a thread of this process, which has loaded most of the provider already.

    Returns, once it can be reached, the environment variable that makes the engine attach to it,
    and start no plugin. Providers that the variable has already stay in it. Raises PluginError if
    it cannot be reached within _START_SECONDS, or ends before.
    """
    port = Future[int]()
    threading.Thread(target=_serve, args=[port], daemon=True).start()
    try:
        number = port.result(_START_SECONDS)
    except Exception as error:
        raise PluginError(f"the provider does not start in this process: {error!r}") from None
    others = os.environ.get(_ATTACHED, "")  # providers that the user debugs
    return {_ATTACHED: f"{others},{PACKAGE}:{number}".lstrip(",")}


def _serve(port: Future[int]) -> None:
    """Serve, and give the port, or the error if there is none."""
    try:
        serve(KaiFleet(), version(), _Servicer, port.set_result)
    except Exception as error:
        port.set_exception(error)


def main() -> None:
    """Serve until the engine ends."""
    serve(KaiFleet(), version(), _Servicer)
