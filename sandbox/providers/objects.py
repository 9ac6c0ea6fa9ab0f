"""Any Kubernetes object as a Pulumi resource, by server-side apply."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pulumi.runtime.proto import provider_pb2

from kai_fleet.kube.errors import KubeError
from kai_fleet.provider.errors import PartialError, PluginError
from sandbox.control_plane.kube_api import Object
from sandbox.providers import awaits, diff
from sandbox.providers.cluster import Cluster, Kind, NoMatchError, status_of, words
from sandbox.providers.manifests import (
    CREATOR,
    assign_name,
    created_fields,
    cut,
    handed_over,
    identity,
    kind_of,
    manifest,
    new_manager,
    of_state,
    properties,
    same_place,
    state,
)
from sandbox.providers.official_words import officially
from sandbox.providers.values import Properties, decode, encode, has_unknown, plain

if TYPE_CHECKING:
    from sandbox.providers.kubernetes import KubernetesStandIn

CRD: Final = "CustomResourceDefinition"
_APPLY: Final = "application/apply-patch+yaml"
_JSON_PATCH: Final = "application/json-patch+json"
_RETRIES: Final = 5  # after 1, 2, 4 … seconds: the kind or the namespace may be about to come
# Built-in kinds without a namespace, for previews while no cluster answers.
_CLUSTER_SCOPED: Final = ("Namespace", "RuntimeClass", "ClusterRole", "ClusterRoleBinding", CRD)


class Objects:
    """What the engine asks of an object."""

    def __init__(self, standin: KubernetesStandIn) -> None:
        self._standin = standin

    def check(self, request: Any) -> Any:
        """The inputs with a name and a namespace."""
        given = decode(request.news)
        obj, old = manifest(plain(given)), manifest(plain(decode(request.olds)))
        kind = kind_of(obj, request.urn)
        if isinstance(metadata := obj.setdefault("metadata", {}), dict):
            assign_name(metadata, old.get("metadata") or {}, request)
            if not metadata.get("namespace") and self._namespaced(kind):
                metadata["namespace"] = self._standin.namespace
        if kind.name == CRD and isinstance(spec := obj.get("spec"), dict):
            named = (spec.get("group"), (spec.get("names") or {}).get("kind"))
            self._standin.declared[named] = spec.get("scope") == "Namespaced"
        return provider_pb2.CheckResponse(inputs=encode(properties(obj, given)))

    def _namespaced(self, kind: Kind) -> bool:
        """Whether a kind has a namespace; one that is not known yet is taken to have one."""
        declared = self._standin.declared.get((kind.group, kind.name))
        if declared is not None:
            return declared
        if self._standin.unreachable:
            return kind.name not in _CLUSTER_SCOPED and "admission" not in kind.group
        try:
            return self._standin.cluster.is_namespaced(kind)
        except KubeError:
            return True

    def _served(self, kind: Kind) -> bool:
        """Whether the server can say what would become of an object."""
        try:
            return not self._standin.unreachable and bool(self._standin.cluster.path(kind, ""))
        except KubeError:
            return False

    def diff(self, request: Any) -> Any:
        """What differs, and whether that replaces the object."""
        inputs, live, _ = of_state(decode(request.olds))
        new = diff.with_data(manifest(plain(decode(request.news))))
        old, kind = diff.with_data(inputs), kind_of(new, request.urn)
        for obj in (old, live, new):
            metadata = obj.setdefault("metadata", {})
            if self._namespaced(kind):
                metadata["namespace"] = metadata.get("namespace") or "default"
            else:
                metadata.pop("namespace", None)
        old["metadata"]["name"] = live["metadata"].get("name")
        found = list(diff.changes(old, live, new))
        answer = diff.response(kind, found, list(request.ignoreChanges))
        answer.deleteBeforeReplace = bool(answer.replaces) and same_place(new, live)
        return answer

    def create(self, request: Any, given: Properties) -> tuple[str, Properties]:
        """Make the object and wait until it is ready; at preview the server says what it makes."""
        obj, manager = manifest(plain(given)), new_manager()
        kind = kind_of(obj, request.urn)
        if request.preview and (has_unknown(obj) or not self._served(kind)):
            return "", given
        cluster = self._standin.reached()
        try:
            live = self._posted(cluster, obj, kind, request)
        except KubeError as why:
            if request.preview and _says_nothing(why):
                return "", given
            raise PluginError(_not_created(why, kind, request.urn)) from None
        if request.preview:
            live.pop("status", None)
            return "", state(obj, live, given, manager)
        where = identity(live)
        try:
            live = self._ready(request, obj, kind, live)
        except awaits.UnreadyError as why:
            raise PartialError(
                officially("created_unready", urn=request.urn, why=why),
                where,
                state(obj, why.live, given, manager),
                reasons=why.reasons,
            ) from None
        return where, state(obj, live, given, manager)

    def _posted(self, cluster: Cluster, obj: Object, kind: Kind, request: Any) -> Object:
        options = {"fieldManager": CREATOR} | ({"dryRun": "All"} if request.preview else {})
        for attempt in range(_RETRIES + 1):
            try:
                if not cluster.is_namespaced(kind):
                    obj["metadata"].pop("namespace", None)
                path = cluster.path(kind, obj["metadata"].get("namespace", ""))
                return cluster.send("POST", path, obj, **options)
            except KubeError as why:
                absent = isinstance(why, NoMatchError) or status_of(why) == 404
                if request.preview or not absent or attempt == _RETRIES:
                    raise
                said = officially("retrying", attempt=attempt, why=words(why))
                self._standin.log(said, request.urn, passing=True)
                time.sleep(2**attempt)
        raise AssertionError("the last attempt returns or raises")

    def _ready(self, request: Any, obj: Object, kind: Kind, live: Object) -> Object:
        live = self._wait(request, obj).until_ready(kind, live)
        if kind.name == CRD:
            self._standin.cluster.forget(obj["spec"]["group"])
        return live

    def _wait(self, request: Any, inputs: Object) -> awaits.Wait:
        say = partial(self._standin.log, urn=request.urn, passing=True)
        cancelled = self._standin.cancelled.is_set
        return awaits.Wait(self._standin.cluster, inputs, request.timeout, say, cancelled)

    def read(self, request: Any) -> tuple[str, Properties, Properties] | None:
        """The object as it is."""
        if self._standin.dropped(request.urn, officially("unread")):
            return None
        given = decode(request.inputs)
        known = manifest(plain(given))
        _, before, manager = of_state(decode(request.properties))
        namespace, _, name = request.id.rpartition("/")
        live = self._standin.cluster.live(kind_of(known or before, request.urn), namespace, name)
        if live is None:
            return None
        inputs = cut(live, diff.with_data(known)) if known else manifest(live)
        inputs.pop("status", None)
        return request.id, state(inputs, live, given, manager), properties(inputs, given)

    def update(self, request: Any, given: Properties) -> Properties:
        """Apply what is wanted now and wait until it is ready."""
        obj, (_, _, manager) = manifest(plain(given)), of_state(decode(request.olds))
        kind, metadata = kind_of(obj, request.urn), obj["metadata"]
        if request.preview and (has_unknown(obj) or not self._served(kind)):
            return given
        cluster = self._standin.reached()
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        try:
            path = cluster.path(kind, namespace, name)
            live = self._applied(cluster, path, obj, manager, request.preview)
            if not request.preview:
                live = self._ready(request, obj, kind, live)
        except (KubeError, awaits.UnreadyError) as why:
            said = words(why) if isinstance(why, KubeError) else str(why)
            if request.preview and isinstance(why, KubeError) and status_of(why) == 403:
                return given
            now = cluster.live(kind, namespace, name)
            if now is None:
                gone = officially("gone_at_update", urn=request.urn, why=said)
                raise PluginError(gone) from None
            raise PartialError(
                officially("updated_unready", name=identity(now), why=said),
                identity(now),
                state(obj, now, given, manager),
                reasons=why.reasons if isinstance(why, awaits.UnreadyError) else (),
            ) from None
        return state(obj, live, given, manager)

    def _applied(
        self, cluster: Cluster, path: str, obj: Object, manager: str, preview: bool
    ) -> Object:
        live = cluster.get(path)
        options = {"fieldManager": manager} | ({"dryRun": "All"} if preview else {})
        if obj["kind"] == CRD:
            # Replaced as a whole: an apply would keep versions that the program dropped.
            version = live["metadata"]["resourceVersion"]
            body = obj | {"metadata": obj["metadata"] | {"resourceVersion": version}}
            return cluster.send("PUT", path, body, **options)
        created = bool(created_fields(live))
        if not preview and (patch := handed_over(live, manager)):
            cluster.send("PATCH", path, patch, _JSON_PATCH)
        owned = live["metadata"].get("managedFields")
        force = self._standin.force or not owned or (preview and created)
        options["force"] = str(force).lower()
        try:
            return cluster.send("PATCH", path, obj, _APPLY, **options)
        except KubeError as why:
            if status_of(why) != 409:
                raise
            raise KubeError(officially("conflict", manager=manager, why=words(why))) from None

    def delete(self, request: Any) -> None:
        """Return once the object is gone."""
        if self._standin.dropped(request.urn, officially("undeleted")):
            return
        inputs, live, manager = of_state(kept := decode(request.properties))
        kind, cluster = kind_of(inputs or live, request.urn), self._standin.cluster
        namespace, _, name = request.id.rpartition("/")
        policy = {"kind": "DeleteOptions", "propagationPolicy": awaits.propagation(inputs)}
        try:
            path = cluster.path(kind, namespace, name)
            gone = cluster.send("DELETE", path, {"apiVersion": "v1", **policy})
            uid = gone.get("metadata", {}).get("uid") or gone.get("details", {}).get("uid")
            self._wait(request, inputs).until_gone(kind, namespace, name, uid)
        except NoMatchError:
            return
        except KubeError as why:
            if status_of(why) != 404:
                raise PluginError(words(why)) from None
        except awaits.UnreadyError as why:
            left: Properties = state(inputs, why.live, kept, manager)
            raise PartialError(str(why), request.id, left, reasons=why.reasons) from None
        if kind.name == CRD:
            cluster.forget(str(inputs.get("spec", {}).get("group")))


def _says_nothing(why: KubeError) -> bool:
    """Whether a refused preview tells nothing of the object.

    Its namespace is still to come, it is to be replaced, the user may not try, or a webhook takes
    no dry run.
    """
    status, said = status_of(why), words(why)
    no_namespace = status == 404 and "namespaces" in said
    return no_namespace or status in (403, 409) or "does not support dry run" in said


def _not_created(why: KubeError, kind: Kind, urn: str) -> str:
    if isinstance(why, NoMatchError):
        named = f"{kind.api_version}/{kind.name}"
        return officially("unknown_kind", urn=urn, kind=named, why=why)
    exists = status_of(why) == 409 and "already exists" in words(why)
    said = officially("not_created", urn=urn, why=words(why))
    return said + (officially("exists") if exists else "")
