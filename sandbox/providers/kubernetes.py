"""The stand-in for Pulumi's Kubernetes provider: `python -m sandbox.providers.kubernetes`."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any, Final

from google.protobuf.empty_pb2 import Empty

from provider import wire
from provider.plugin import WARNING, PluginError, answered, engine_address, serve
from provider.protocol import provider_pb2

from . import provider_config, releases
from .helm import Helm
from .kinds import of_urn
from .object_resource import ObjectResource
from .objects import Objects
from .release_resource import ReleaseResource
from .rest import ApiError, Cluster
from .standin import StandIn

VERSION: Final = "4.34.2"

_ASK_AGAIN_SECONDS: Final = 5.0


class KubernetesPlugin(StandIn):
    """One provider resource: one cluster, seen as one user."""

    def __init__(self, engine: str = "") -> None:
        super().__init__("kubernetes", VERSION, engine)
        self.settings = provider_config.Settings()
        self._lock = threading.Lock()
        self._probe = threading.Lock()
        self._objects: Objects | None = None
        self._reachable = False
        self._asked = -60.0
        self.declared: dict[tuple[str, str], bool] = {}
        """Whether the kinds (group, kind) of CRDs that the program declares have a namespace."""

    @property
    def default_namespace(self) -> str:
        """Where objects without a namespace go: the provider's, else the context's."""
        if self.settings.namespace:
            return self.settings.namespace
        try:
            return str(self.settings.target().namespace)
        except PluginError:
            return "default"

    def objects(self) -> Objects:
        """The cluster's objects. Raises when the kubeconfig names no cluster."""
        with self._lock:
            if self._objects is None:
                self._objects = Objects(
                    Cluster(self.settings.target()),
                    self.default_namespace,
                    self.settings.force_conflicts,
                )
            return self._objects

    def reachable(self) -> bool:
        """Whether the cluster answers. One that did is taken to answer on."""
        with self._probe:
            if not self._reachable and time.monotonic() - self._asked > _ASK_AGAIN_SECONDS:
                try:
                    self.objects().cluster.request("GET", "/version", patient=False)
                    self._reachable = True
                except ApiError:
                    # It answers, if only to refuse this user.
                    self._reachable = True
                except PluginError as error:
                    self.log(str(error), severity=WARNING)
                self._asked = time.monotonic()
            return self._reachable

    def helm(self) -> Helm:
        """helm on this provider's cluster."""
        return Helm(self.objects().cluster.target, self.cancelled.is_set)

    def _resource(self, urn: str) -> ObjectResource | ReleaseResource:
        token = of_urn(urn)
        if token == releases.TOKEN:
            return ReleaseResource(self)
        name = token.rpartition(":")[2]
        if name.endswith("Patch") or token.startswith("kubernetes:helm.sh/"):
            raise PluginError(self._unserved(f"type {token}"))
        if name.endswith("List"):
            raise PluginError(f"{token} cannot be declared: declare its items one by one")
        return ObjectResource(self)

    # Calls of the protocol, named as it names them.

    @answered
    def CheckConfig(self, request: Any) -> Any:  # noqa: D102, N802
        failures = provider_config.check(wire.decode(request.news))
        return _checked(request.news, failures)

    @answered
    def DiffConfig(self, request: Any) -> Any:  # noqa: D102, N802
        return provider_config.changed(wire.decode(request.olds), wire.decode(request.news))

    @answered
    def Configure(self, request: Any) -> Any:  # noqa: D102, N802
        self.accepts_secrets = request.acceptSecrets
        self.settings = provider_config.Settings.of(dict(request.variables))
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True,
            supportsPreview=True,
            acceptOutputs=True,
            supports_autonaming_configuration=True,
        )

    @answered
    def Check(self, request: Any) -> Any:  # noqa: D102, N802
        inputs, failures = self._resource(request.urn).check(
            request, wire.decode(request.news), wire.decode(request.olds)
        )
        return _checked(wire.encode(inputs, self.accepts_secrets), failures)

    @answered
    def Diff(self, request: Any) -> Any:  # noqa: D102, N802
        return self._resource(request.urn).diff(
            request, wire.decode(request.olds), wire.decode(request.news)
        )

    @answered
    def Create(self, request: Any) -> Any:  # noqa: D102, N802
        resource_id, outputs = self._resource(request.urn).create(
            request, wire.decode(request.properties)
        )
        return provider_pb2.CreateResponse(
            id="" if request.preview else resource_id,
            properties=wire.encode(outputs, self.accepts_secrets),
        )

    @answered
    def Read(self, request: Any) -> Any:  # noqa: D102, N802
        if not self.reachable():
            if self.settings.delete_unreachable:
                return provider_pb2.ReadResponse()
            raise PluginError(
                "the state of this resource cannot be read, for its cluster is unreachable; if "
                "the cluster is gone for good, set PULUMI_K8S_DELETE_UNREACHABLE=true to drop it"
            )
        found = self._resource(request.urn).read(
            request, wire.decode(request.properties), wire.decode(request.inputs)
        )
        if found is None:
            return provider_pb2.ReadResponse()
        outputs, inputs = found
        return provider_pb2.ReadResponse(
            id=request.id,
            properties=wire.encode(outputs, self.accepts_secrets),
            inputs=wire.encode(inputs, self.accepts_secrets),
        )

    @answered
    def Update(self, request: Any) -> Any:  # noqa: D102, N802
        outputs = self._resource(request.urn).update(
            request, wire.decode(request.olds), wire.decode(request.news)
        )
        return provider_pb2.UpdateResponse(properties=wire.encode(outputs, self.accepts_secrets))

    @answered
    def Delete(self, request: Any) -> Any:  # noqa: D102, N802
        self._resource(request.urn).delete(request, wire.decode(request.properties))
        return Empty()


def _checked(inputs: Any, failures: list[tuple[str, str]]) -> Any:
    return provider_pb2.CheckResponse(
        inputs=inputs,
        failures=[
            provider_pb2.CheckFailure(property=name, reason=reason) for name, reason in failures
        ],
    )


def main() -> None:
    """Serves until the engine ends."""
    serve(KubernetesPlugin(engine_address(sys.argv[1:])))


if __name__ == "__main__":
    main()
