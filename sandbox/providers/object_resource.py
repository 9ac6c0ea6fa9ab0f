"""Any Kubernetes object as a Pulumi resource."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from provider import wire
from provider.paths import Path
from provider.plugin import WARNING, PartialError, PluginError
from provider.wire import UNKNOWN

from . import awaits, checkpoint, diff, naming, replacement
from .kinds import (
    CLUSTER_SCOPED,
    Kind,
    declared_kind,
    is_namespaced,
    of_object,
    of_urn,
)
from .objects import CRD
from .rest import ApiError

if TYPE_CHECKING:
    from .kubernetes import KubernetesPlugin


class ObjectResource:
    """What the engine asks of one object."""

    def __init__(self, plugin: KubernetesPlugin) -> None:
        self._plugin = plugin

    def check(
        self, request: Any, news: dict[str, Any], olds: dict[str, Any]
    ) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """The inputs, named and placed in a namespace."""
        plugin = self._plugin
        obj = checkpoint.manifest(news)
        naming.assign(
            obj, checkpoint.manifest(olds), request.urn, request.randomSeed, request.autonaming
        )
        kind = of_object(obj, of_urn(request.urn))
        if kind.name == CRD:
            plugin.declared[declared_kind(obj)] = is_namespaced(obj)
        metadata = obj.get("metadata")
        if not isinstance(metadata, dict) or metadata.get("namespace"):
            return checkpoint.properties(obj, news), []
        if self._namespaced(kind):
            metadata["namespace"] = plugin.default_namespace
        return checkpoint.properties(obj, news), []

    def _namespaced(self, kind: Kind) -> bool:
        """Whether objects of `kind` have a namespace; an unknown kind is taken to have one.

        That guess is the official provider's; a create drops the namespace that a
        cluster-scoped kind got by it.
        """
        declared = self._plugin.declared.get((kind.group, kind.name))
        if declared is not None:
            return declared
        if self._plugin.reachable():
            try:
                return bool(self._plugin.objects().kinds.find(kind, patient=False).namespaced)
            except PluginError:
                pass
        return kind.name not in CLUSTER_SCOPED

    def diff(self, request: Any, olds: dict[str, Any], news: dict[str, Any]) -> Any:
        """The protocol's answer to what differs."""
        settings = self._plugin.settings
        inputs, live = checkpoint.restore(olds)
        wanted = checkpoint.manifest(news)
        kind = of_object(wanted, of_urn(request.urn))
        given = wanted.get("stringData")
        old, live, new = (checkpoint.comparable(obj) for obj in (inputs, live, wanted))
        self._level_namespaces(kind, old, live, new)
        # What the inputs call the object is what it is called, however it was named.
        if naming.name_of(live):
            old.setdefault("metadata", {})["name"] = naming.name_of(live)
        found = [
            diff.Change(("stringData", *change.path[1:]), change.kind)
            if _given_as_string(change.path, given)
            else change
            for change in diff.changes(old, live, new)
        ]
        fixed = replacement.fixed_paths(
            kind, new, settings.mutable_config_maps, settings.mutable_secrets
        )
        same_place = naming.identity(
            naming.namespace_of(new), naming.name_of(new)
        ) == naming.identity(naming.namespace_of(live), naming.name_of(live))
        own_name = naming.annotation(new, naming.AUTONAMED) != "true"
        return diff.response(
            found, fixed, list(request.ignoreChanges), delete_first=same_place and own_name
        )

    def _level_namespaces(self, kind: Kind, *objs: dict[str, Any]) -> None:
        """No namespace and the default one are the same; a cluster-scoped kind has none."""
        namespaced = self._namespaced(kind)
        for obj in objs:
            metadata = obj.setdefault("metadata", {})
            if not isinstance(metadata, dict) or metadata.get("namespace") is UNKNOWN:
                continue
            if namespaced:
                metadata["namespace"] = metadata.get("namespace") or "default"
            else:
                metadata.pop("namespace", None)

    def create(self, request: Any, news: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The id and the state of the object made; at preview, of the one to be made."""
        obj = checkpoint.manifest(news)
        kind = of_object(obj, of_urn(request.urn))
        if request.preview:
            return "", self._preview(request.urn, obj, kind, news)
        objects = self._plugin.objects()
        say = self._passing(request.urn)
        manager = naming.field_manager()
        try:
            live = objects.create(obj, kind, preview=False, waiting=say)
        except PluginError as error:
            raise PluginError(self._not_made(obj, kind, error)) from None
        self._warn(request.urn)
        resource_id = naming.identity(naming.namespace_of(live), naming.name_of(live))
        live = self._ready(request, obj, live, kind, news, manager, resource_id)
        if kind.name == CRD:
            objects.kinds.forget(str(obj["spec"]["group"]))
        return resource_id, checkpoint.state(obj, live, news, manager)

    def _preview(
        self, urn: str, obj: dict[str, Any], kind: Kind, news: dict[str, Any]
    ) -> dict[str, Any]:
        if wire.has_unknown(obj) or not self._plugin.reachable():
            return news
        objects = self._plugin.objects()
        try:
            live = objects.create(obj, kind, preview=True, waiting=lambda _: None)
        except ApiError as error:
            # These say nothing of the object: its namespace is still to come, it is to be
            # replaced, this user may not try, a webhook is down or takes no dry run.
            tells = error.code not in (403, 404, 409) and "webhook" not in str(error)
            if tells:
                raise PluginError(self._not_made(obj, kind, error)) from None
            return news
        except PluginError:
            return news
        objects.cluster.take_warnings()
        live.pop("status", None)
        return checkpoint.state(obj, live, news, "")

    def _ready(
        self,
        request: Any,
        obj: dict[str, Any],
        live: dict[str, Any],
        kind: Kind,
        news: dict[str, Any],
        manager: str,
        resource_id: str,
    ) -> dict[str, Any]:
        """The object once it is ready; what was made is in the state even when it is not."""
        try:
            return awaits.until_ready(
                self._plugin.objects(),
                obj,
                live,
                kind,
                awaits.timeout(obj, request.timeout),
                self._plugin.cancelled.is_set,
                self._passing(request.urn),
            )
        except PluginError as error:
            last = error.live if isinstance(error, awaits.NotReadyError) else live
            state = checkpoint.state(obj, last, news, manager)
            outputs = wire.encode(state, self._plugin.accepts_secrets)
            raise PartialError(str(error), resource_id, outputs) from None

    def read(
        self, request: Any, outputs: dict[str, Any], inputs: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The (state, inputs) of the live object, None when it is gone."""
        known = checkpoint.manifest(inputs)
        kind = of_object(known or checkpoint.restore(outputs)[1], of_urn(request.urn))
        namespace, name = naming.parse_identity(request.id)
        live = self._plugin.objects().read(kind, namespace, name)
        if live is None:
            return None
        seen = {key: value for key, value in live.items() if key != "status"}
        found = checkpoint.manifest(seen)
        if known:
            found = checkpoint.cut_to(found, known)
            if "stringData" in known:
                found = checkpoint.strings_as_live(found, known, live)
        manager = wire.plain(outputs.get(checkpoint.FIELD_MANAGER)) or naming.field_manager()
        kept = checkpoint.properties(found, inputs)
        if kind == Kind("v1", "Secret") and "data" in kept:
            kept["data"] = wire.Secret(wire.plain(kept["data"]))
        return checkpoint.state(found, live, kept, manager), kept

    def update(self, request: Any, olds: dict[str, Any], news: dict[str, Any]) -> dict[str, Any]:
        """The state after the update; at preview, the one that it would have."""
        plugin = self._plugin
        obj = checkpoint.manifest(news)
        kind = of_object(obj, of_urn(request.urn))
        if request.preview and (wire.has_unknown(obj) or not plugin.reachable()):
            return news
        objects = plugin.objects()
        manager = wire.plain(olds.get(checkpoint.FIELD_MANAGER)) or naming.field_manager()
        try:
            live = objects.update(obj, kind, manager, request.preview, self._passing(request.urn))
        except PluginError as error:
            if request.preview and "webhook" in str(error):
                return news
            called = naming.identity(naming.namespace_of(obj), naming.name_of(obj))
            raise PluginError(
                f"{kind.name} {called} was not updated; the API server says: {error}"
            ) from None
        if request.preview:
            objects.cluster.take_warnings()
            return checkpoint.state(obj, live, news, manager)
        self._warn(request.urn)
        live = self._ready(request, obj, live, kind, news, manager, request.id)
        if kind.name == CRD:
            objects.kinds.forget(str(obj["spec"]["group"]))
        return checkpoint.state(obj, live, news, manager)

    def delete(self, request: Any, olds: dict[str, Any]) -> None:
        """Returns once the object is gone."""
        plugin = self._plugin
        if not plugin.reachable() and plugin.settings.delete_unreachable:
            return
        inputs, live = checkpoint.restore(olds)
        kind = of_object(inputs or live, of_urn(request.urn))
        objects = plugin.objects()
        namespace, name = naming.parse_identity(request.id)
        uid = objects.delete(inputs, kind, namespace, name)
        if uid is not None and not awaits.skipped(inputs):
            try:
                awaits.until_gone(
                    objects,
                    kind,
                    namespace,
                    name,
                    uid,
                    awaits.timeout(inputs, request.timeout),
                    plugin.cancelled.is_set,
                    self._passing(request.urn),
                )
            except awaits.NotReadyError as error:
                manager = wire.plain(olds.get(checkpoint.FIELD_MANAGER)) or ""
                state = checkpoint.state(inputs, error.live, olds, manager)
                outputs = wire.encode(state, plugin.accepts_secrets)
                raise PartialError(str(error), request.id, outputs) from None
        if kind.name == CRD:
            objects.kinds.forget(str((live.get("spec") or {}).get("group", "")))

    def _passing(self, urn: str) -> Callable[[str], None]:
        return lambda message: self._plugin.log(message, urn, passing=True)

    def _warn(self, urn: str) -> None:
        for warning in self._plugin.objects().cluster.take_warnings():
            if not self._plugin.settings.quiet_warnings:
                self._plugin.log(warning, urn, severity=WARNING)

    @staticmethod
    def _not_made(obj: dict[str, Any], kind: Kind, error: PluginError) -> str:
        called = naming.identity(naming.namespace_of(obj), naming.name_of(obj))
        text = f"{kind.name} {called} was not created; the API server says: {error}"
        if isinstance(error, ApiError) and error.reason == "AlreadyExists":
            text += (
                ". It is in the cluster and not of this stack: remove it, choose another name, "
                f"or take it over with `pulumi import {kind.token} <name> {called}`"
            )
        return text


def _given_as_string(path: Path, strings: Any) -> bool:
    return len(path) > 1 and path[0] == "data" and isinstance(strings, dict) and path[1] in strings
