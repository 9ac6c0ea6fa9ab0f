"""Drives a stand-in over gRPC, as the engine does, against a small fake API server."""

from __future__ import annotations

import base64
import copy
import json
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import grpc
import yaml
from google.protobuf.empty_pb2 import Empty
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.runtime.proto import engine_pb2_grpc, provider_pb2, provider_pb2_grpc

from sandbox.control_plane.certificates import Authority
from sandbox.providers import values
from sandbox.providers.host import StandIn
from tests.unit import http_server

Json = dict[str, Any]


@dataclass(frozen=True)
class Secret:
    """A secret value, in what is given to a stand-in and in what comes back."""

    value: Any


def _given(value: Any) -> PropertyValue:
    if isinstance(value, Secret):
        return _given(value.value).with_secret(True)
    if isinstance(value, dict):
        return PropertyValue({key: _given(item) for key, item in value.items()})
    if isinstance(value, list):
        return PropertyValue([_given(item) for item in value])
    return values.marked(value)


def _seen(value: PropertyValue) -> Any:
    if value.is_secret:
        return Secret(_seen(value.with_secret(False)))
    if value.type.value == "Map":
        return {key: _seen(item) for key, item in value.value.items()}  # type: ignore[union-attr]
    if value.type.value == "Array":
        return [_seen(item) for item in value.value]  # type: ignore[union-attr]
    return values.plain(value)


def encode(given: Json) -> Any:
    return values.encode({key: _given(item) for key, item in given.items()})


def decode(struct: Any) -> Json:
    return {key: _seen(item) for key, item in values.decode(struct).items()}


RESOURCES: dict[str, list[tuple[str, str, bool]]] = {
    "/api/v1": [
        ("namespaces", "Namespace", False),
        ("configmaps", "ConfigMap", True),
        ("secrets", "Secret", True),
    ],
    "/apis/node.k8s.io/v1": [("runtimeclasses", "RuntimeClass", False)],
}


class FakeApi:
    """Objects by path. Applies merge at the top level; nothing is validated."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.resources = copy.deepcopy(RESOURCES)
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.failures: list[tuple[int, str, str]] = []
        """Answers (code, reason, message) for the next writes, instead of doing them."""
        self.url = ""
        self.authority = Path()
        self._count = 0

    def answer(self, method: str, target: str, body: Any) -> tuple[int, Json]:
        parts = urlsplit(target)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        self.requests.append((method, parts.path, query, body))
        if parts.path == "/version":
            return 200, {}
        if parts.path in self.resources:
            listed = [
                {"name": plural, "kind": kind, "namespaced": namespaced}
                for plural, kind, namespaced in self.resources[parts.path]
            ]
            return 200, {"resources": listed}
        if method != "GET" and self.failures:
            code, reason, message = self.failures.pop(0)
            return code, {"reason": reason, "message": message}
        dry = "dryRun" in query
        if method == "POST":
            return self._create(parts.path, body, dry)
        found = self.objects.get(parts.path)
        if found is None:
            return 404, {"reason": "NotFound", "message": f"{parts.path} not found"}
        if method == "GET":
            return 200, found
        if method == "DELETE":
            if not found["metadata"].get("finalizers"):
                del self.objects[parts.path]
            return 200, {}
        if isinstance(body, list):
            return 200, found
        made = {**found, **body, "metadata": {**found["metadata"], **body["metadata"]}}
        if not dry:
            self.objects[parts.path] = made
        return 200, made

    def _create(self, collection: str, body: Json, dry: bool) -> tuple[int, Json]:
        path = f"{collection}/{body['metadata']['name']}"
        if path in self.objects:
            name = path.rpartition("/")[2]
            return 409, {"reason": "AlreadyExists", "message": f'things "{name}" already exists'}
        self._count += 1
        made = copy.deepcopy(body)
        made["metadata"] |= {
            "uid": f"uid-{self._count}",
            "resourceVersion": "1",
            "managedFields": [{"manager": "pulumi-kubernetes", "operation": "Update"}],
        }
        if not dry:
            self.objects[path] = made
        return 201, made

    def writes(self, method: str) -> list[tuple[str, dict[str, str], Any]]:
        return [(path, query, body) for m, path, query, body in self.requests if m == method]


@contextmanager
def fake_api(directory: Path) -> Iterator[FakeApi]:
    """One whose certificates are a sandbox's, kept in the directory."""
    api = FakeApi()
    authority = Authority(directory / "certs")
    authority.ensure("fake")
    api.authority = authority.pair.certificate
    pair = authority.server("server", ["127.0.0.1"])
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(pair.certificate, pair.key)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _handle(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            code, answer = api.answer(self.command, self.path, body)
            data = json.dumps(answer).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    with http_server.listening(Handler, tls) as server:
        api.url = f"https://127.0.0.1:{server.server_port}"
        yield api


def kubeconfig(server: str, authority: Path | None = None) -> str:
    cluster = {"server": server}
    if authority is not None:
        data = base64.b64encode(authority.read_bytes()).decode()
        cluster["certificate-authority-data"] = data
    return yaml.safe_dump(
        {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": "t"}}],
        }
    )


class Engine(engine_pb2_grpc.EngineServicer):
    """The engine's side: what plugins log."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def Log(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.messages.append(request.message)
        return Empty()


class Driver:
    """Calls a plugin with plain values."""

    def __init__(self, stub: Any, engine: Engine) -> None:
        self._stub = stub
        self.engine = engine
        self.token = ""

    def urn(self, name: str = "it") -> str:
        return f"urn:pulumi:stack::project::{self.token}::{name}"

    def configure(self, **settings: str) -> None:
        variables = {f"kubernetes:config:{key}": value for key, value in settings.items()}
        self._stub.Configure(provider_pb2.ConfigureRequest(variables=variables, acceptSecrets=True))

    def check(self, news: Json, olds: Json | None = None) -> tuple[Json, list[str]]:
        answer = self._stub.Check(
            provider_pb2.CheckRequest(
                urn=self.urn(),
                news=encode(news),
                olds=encode(olds or {}),
                randomSeed=b"seed",
            )
        )
        return decode(answer.inputs), [f"{f.property} {f.reason}" for f in answer.failures]

    def diff(self, olds: Json, news: Json, ignore: tuple[str, ...] = ()) -> Any:
        return self._stub.Diff(
            provider_pb2.DiffRequest(
                id="x",
                urn=self.urn(),
                olds=encode(olds),
                news=encode(news),
                ignoreChanges=ignore,
            )
        )

    def diff_config(self, olds: Json, news: Json) -> Any:
        return self._stub.DiffConfig(provider_pb2.DiffRequest(olds=encode(olds), news=encode(news)))

    def create(self, inputs: Json, preview: bool = False) -> tuple[str, Json]:
        answer = self._stub.Create(
            provider_pb2.CreateRequest(urn=self.urn(), properties=encode(inputs), preview=preview)
        )
        return answer.id, decode(answer.properties)

    def read(self, resource_id: str, state: Json, inputs: Json) -> tuple[str, Json, Json]:
        answer = self._stub.Read(
            provider_pb2.ReadRequest(
                id=resource_id,
                urn=self.urn(),
                properties=encode(state),
                inputs=encode(inputs),
            )
        )
        return answer.id, decode(answer.properties), decode(answer.inputs)

    def update(self, resource_id: str, olds: Json, news: Json, preview: bool = False) -> Json:
        answer = self._stub.Update(
            provider_pb2.UpdateRequest(
                id=resource_id,
                urn=self.urn(),
                olds=encode(olds),
                news=encode(news),
                preview=preview,
            )
        )
        return decode(answer.properties)

    def delete(self, resource_id: str, state: Json, timeout: float = 0) -> None:
        self._stub.Delete(
            provider_pb2.DeleteRequest(
                id=resource_id,
                urn=self.urn(),
                properties=encode(state),
                timeout=timeout,
            )
        )

    def fails(self, call: Any, *arguments: Any, **options: Any) -> str:
        try:
            call(*arguments, **options)
        except grpc.RpcError as error:
            return str(error.details())  # type: ignore[attr-defined]
        raise AssertionError("the call succeeded")


@contextmanager
def driven(plugin_type: type[StandIn]) -> Iterator[Driver]:
    engine = Engine()
    with ThreadPoolExecutor(max_workers=8) as threads:
        host = grpc.server(threads)
        engine_pb2_grpc.add_EngineServicer_to_server(engine, host)
        address = f"127.0.0.1:{host.add_insecure_port('127.0.0.1:0')}"
        plugin = plugin_type(engine=address)  # type: ignore[call-arg]
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(plugin, host)
        host.start()
        try:
            with grpc.insecure_channel(address) as channel:
                yield Driver(provider_pb2_grpc.ResourceProviderStub(channel), engine)
        finally:
            host.stop(None).wait()


def fake_program(directory: Path, name: str, script: str) -> Path:
    """An executable on a PATH of its own."""
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
