"""The stand-in for Pulumi's Kubernetes provider: `python -m sandbox.providers.kubernetes`.

For machines that reach nothing but package registries. It touches the sandbox and nothing else.
"""

from __future__ import annotations

import os
from typing import Any, Final

from pulumi.runtime.proto import provider_pb2

from kai_fleet.provider.errors import PluginError
from sandbox.providers import cluster as clusters
from sandbox.providers.cluster import Cluster, UnreachableError
from sandbox.providers.host import WARNING, StandIn, answered, serve
from sandbox.providers.objects import Objects
from sandbox.providers.official_words import officially
from sandbox.providers.releases import TOKEN, Releases
from sandbox.providers.values import UNKNOWN, decode, plain

VERSION: Final = "4.34.2"
_PREFIX: Final = "kubernetes:config:"
_CLUSTER_KEYS: Final = ("kubeconfig", "context")


class KubernetesStandIn(StandIn):
    """One provider resource: one cluster, seen as one user."""

    def __init__(self, engine: str = "") -> None:
        super().__init__("kubernetes", VERSION, engine)
        self.unreachable = "the provider is not configured"
        self.delete_unreachable = self.force = False
        self.namespace = "default"
        self.declared: dict[tuple[Any, Any], bool] = {}
        """Whether the kinds (group, kind) of CRDs that the program declares have a namespace."""
        self.cluster: Cluster
        self.objects, self._releases = Objects(self), Releases(self)

    def reached(self) -> Cluster:
        """The cluster. Raises PluginError where it does not answer."""
        if self.unreachable:
            raise PluginError(officially("unreachable", why=self.unreachable))
        return self.cluster

    def dropped(self, urn: str, otherwise: str) -> bool:
        """Whether a resource leaves the state because its cluster does not answer.

        Raises PluginError with the other words where that was not asked for.
        """
        if not self.unreachable:
            return False
        self.log(officially("unreachable", why=self.unreachable), urn, severity=WARNING)
        if not self.delete_unreachable:
            raise PluginError(otherwise)
        self.log(officially("dropped_from_state"), urn)
        return True

    def resources(self, token: str) -> Objects | Releases:  # noqa: D102
        if token == TOKEN:
            return self._releases
        if token.endswith("Patch") or token.startswith("kubernetes:helm.sh/"):
            raise self.unserved(f"The type {token}")
        return self.objects

    # Calls of the protocol, named as it names them.

    @answered
    def DiffConfig(self, request: Any) -> Any:  # noqa: D102, N802
        return _config_diff(plain(decode(request.olds)), plain(decode(request.news)))

    @answered
    def Configure(self, request: Any) -> Any:  # noqa: D102, N802
        given = {key.removeprefix(_PREFIX): value for key, value in request.variables.items()}
        for key in ("cluster", "renderYamlToDirectory", "upsertExistingObjects"):
            if given.get(key) not in (None, "", "false"):
                raise self.unserved(f"The provider's setting {key}")
        self.force = given.get("enablePatchForce") == "true"
        drop = os.environ.get("PULUMI_K8S_DELETE_UNREACHABLE")
        self.delete_unreachable = given.get("deleteUnreachable", drop) == "true"
        try:
            where = clusters.target(*(given.get(key, "") for key in _CLUSTER_KEYS))
            self.namespace = given.get("namespace") or where.namespace
            if not clusters.in_sandbox(where):
                raise PluginError(_not_sandbox(str(where.cluster.get("server"))))
            self.cluster = Cluster(where, self.namespace)
            self.cluster.probe()
            self.unreachable = ""
        except UnreachableError as why:
            self.unreachable = str(why)
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)


def _not_sandbox(server: str) -> str:
    return (
        f"the cluster at {server} is not the sandbox, and pulumi-resource-kubernetes {VERSION}, "
        "Pulumi's plugin for it, is not installed: kai-fleet's stand-in serves the sandbox alone. "
        f"Install the plugin: `pulumi plugin install resource kubernetes {VERSION}`."
    )


def _config_diff(old: dict[str, Any], new: dict[str, Any]) -> Any:
    """Which settings differ, and which of them make a new provider, and with it all it made.

    `clusterIdentifier` alone decides where it stays; else the kubeconfig's cluster does, and an
    unknown one counts as another.
    """
    differing = [key for key in {**old, **new} if key != "version" and old.get(key) != new.get(key)]
    answer = provider_pb2.DiffResponse(diffs=differing, changes=provider_pb2.DiffResponse.DIFF_NONE)
    if not differing:
        return answer
    answer.changes = provider_pb2.DiffResponse.DIFF_SOME
    before, after = old.get("clusterIdentifier"), new.get("clusterIdentifier")
    if before and after:
        answer.replaces.extend(["clusterIdentifier"] if before != after else [])
        return answer
    unknown = [key for key in _CLUSTER_KEYS if new.get(key) == UNKNOWN]
    was, now = (clusters.active_cluster(*map(it.get, _CLUSTER_KEYS)) for it in (old, new))
    moved = was is not None and now is not None and was != now
    answer.replaces.extend(unknown or [key for key in _CLUSTER_KEYS if moved and key in differing])
    return answer


if __name__ == "__main__":
    serve(KubernetesStandIn)
