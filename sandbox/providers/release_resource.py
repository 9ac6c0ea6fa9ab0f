"""A Helm release as a Pulumi resource."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from provider import wire
from provider.plugin import WARNING, PartialError, PluginError

from . import naming, releases
from .helm import Helm, HelmError
from .helm_records import newest
from .kinds import Kind

if TYPE_CHECKING:
    from .kubernetes import KubernetesPlugin


class ReleaseResource:
    """What the engine asks of one release."""

    def __init__(self, plugin: KubernetesPlugin) -> None:
        self._plugin = plugin

    def check(
        self, request: Any, news: dict[str, Any], olds: dict[str, Any]
    ) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """The inputs, complete, with the chart's exact version."""
        helm = Helm(None, self._plugin.cancelled.is_set)
        return releases.check(news, olds, request.urn, self._plugin.default_namespace, helm)

    def diff(self, request: Any, olds: dict[str, Any], news: dict[str, Any]) -> Any:
        """The protocol's answer to what differs."""
        return releases.changed(olds, news, list(request.ignoreChanges))

    def create(self, request: Any, news: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The id and the state of the release installed."""
        if request.preview:
            return "", releases.outputs(news, None)
        name, namespace = releases.address(news)
        return naming.identity(namespace, name), self._deployed(request, news, fresh=True)

    def update(self, request: Any, olds: dict[str, Any], news: dict[str, Any]) -> dict[str, Any]:
        """The state of the release upgraded."""
        if request.preview:
            return releases.outputs(news, None)
        return self._deployed(request, news, fresh=False)

    def _deployed(self, request: Any, news: dict[str, Any], fresh: bool) -> dict[str, Any]:
        helm = self._plugin.helm()
        name, namespace = releases.address(news)
        resource_id = naming.identity(namespace, name)
        deploy = releases.create if fresh else releases.deploy
        with _patiently("deployed"):
            before = newest(self._plugin.objects().cluster, name, namespace)
        try:
            deployed = deploy(news, before, helm, self._unlock)
        except HelmError as error:
            text = f"Helm release {resource_id} failed: {error}"
            left = helm.status(name, namespace)
            if left is None:
                raise PluginError(text) from None
            # It is there, if not as wanted: the state has it, and the next run upgrades it.
            state = wire.encode(releases.outputs(news, left), self._plugin.accepts_secrets)
            raise PartialError(text, resource_id, state) from None
        return releases.outputs(news, deployed)

    def _unlock(self, namespace: str, secret: str) -> None:
        self._plugin.objects().delete({}, Kind("v1", "Secret"), namespace, secret)

    def read(
        self, request: Any, outputs: dict[str, Any], inputs: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The (state, inputs) of the release, None when it is gone."""
        helm = self._plugin.helm()
        namespace, name = naming.parse_identity(request.id)
        deployed = helm.status(name, namespace or self._plugin.default_namespace)
        if deployed is None:
            return None
        if not inputs:
            inputs = {
                "name": name,
                "namespace": deployed.namespace,
                "chart": deployed.chart,
                "version": deployed.version,
                # Values may hold passwords, and nothing says which.
                "values": wire.Secret(helm.values(name, deployed.namespace)),
            }
        return releases.outputs(inputs, deployed), inputs

    def delete(self, request: Any, olds: dict[str, Any]) -> None:
        """Uninstalls the release; one that is gone already is fine."""
        with _patiently("uninstalled"):
            self._plugin.objects().cluster.request("GET", "/version")
        name, namespace = releases.address(olds)
        given = wire.plain(olds)
        wait = given.get("atomic") is True or given.get("skipAwait") is not True
        said = self._plugin.helm().uninstall(name, namespace, wait, releases.seconds(olds))
        if said:
            self._plugin.log(f"helm uninstall: {said}", request.urn, severity=WARNING)


@contextmanager
def _patiently(done: str) -> Iterator[None]:
    """A patient question comes first: helm itself would give up on an API server that restarts."""
    try:
        yield
    except PluginError as error:
        raise PluginError(f"the Helm release cannot be {done}: {error}") from None
