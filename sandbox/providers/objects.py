"""Objects on the API server: create, apply, read, delete."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any, Final

from provider.plugin import PluginError

from . import naming
from .kinds import Discovery, Kind, NoMatchError, Served
from .rest import APPLY, JSON_PATCH, ApiError, Cluster

# Creates are real creates under this manager, as the official provider's; the first
# update moves their fields to the object's own manager and applies from then on.
CREATE_MANAGER: Final = "pulumi-kubernetes"
_TAKEN_OVER: Final = frozenset(
    {
        ("kubectl", "Apply"),
        ("kubectl", "Update"),
        ("kubectl-client-side-apply", "Update"),
        ("before-first-apply", "Update"),
        (CREATE_MANAGER, "Update"),
        ("pulumi-resource-kubernetes", "Update"),
    }
)
_PATCH_FORCE: Final = "pulumi.com/patchForce"
_PROPAGATION: Final = {"orphan": "Orphan", "background": "Background"}

# How long a create outlasts a namespace, a CRD or a webhook that is not there yet.
_SETTLE_SECONDS: Final = 60.0

CRD: Final = "CustomResourceDefinition"


class Objects:
    """The objects of one cluster. `namespace` is where those without one go."""

    def __init__(self, cluster: Cluster, namespace: str, force_conflicts: bool = False) -> None:
        self.cluster = cluster
        self.kinds = Discovery(cluster)
        self.namespace = namespace
        self._force = force_conflicts

    def place(self, obj: dict[str, Any], kind: Kind, patient: bool = True) -> tuple[Served, str]:
        """Where `obj` belongs. Sets or removes its namespace as its kind has one."""
        served = self.kinds.find(kind, patient)
        if served.namespaced:
            namespace = naming.namespace_of(obj) or self.namespace
            obj.setdefault("metadata", {})["namespace"] = namespace
            return served, namespace
        naming.metadata(obj).pop("namespace", None)
        return served, ""

    def create(
        self, obj: dict[str, Any], kind: Kind, preview: bool, waiting: Callable[[str], None]
    ) -> dict[str, Any]:
        """Makes `obj`; at preview the server only says what it would make.

        Outlasts, for a minute, a namespace, a kind or a webhook that is about to come.
        """
        obj = copy.deepcopy(obj)
        deadline = time.monotonic() + (0.0 if preview else _SETTLE_SECONDS)
        pause = 0.5
        while True:
            try:
                served, namespace = self.place(obj, kind, patient=not preview)
                return self.cluster.request(
                    "POST",
                    served.path(namespace),
                    obj,
                    patient=not preview,
                    fieldManager=CREATE_MANAGER,
                    fieldValidation="Warn",
                    dryRun="All" if preview else None,
                )
            except (NoMatchError, ApiError) as error:
                settles = (
                    isinstance(error, NoMatchError) or error.missing or error.from_webhook_down
                )
                if not settles or time.monotonic() + pause > deadline:
                    raise
                waiting(f"waiting to create {_called(obj, kind)}: {error}")
            time.sleep(pause)
            pause = min(pause * 1.5, 5.0)

    def read(self, kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
        """The live object, None when it or its kind is not there."""
        try:
            served = self.kinds.find(kind)
            return self.cluster.request("GET", served.path(namespace or self.namespace, name))
        except NoMatchError:
            return None
        except ApiError as error:
            if error.missing:
                return None
            raise

    def update(
        self,
        obj: dict[str, Any],
        kind: Kind,
        manager: str,
        preview: bool,
        waiting: Callable[[str], None],
    ) -> dict[str, Any]:
        """Applies `obj` (server-side) to the live object under the field manager `manager`."""
        obj = copy.deepcopy(obj)
        served, namespace = self.place(obj, kind)
        path = served.path(namespace, naming.name_of(obj))
        dry_run = "All" if preview else None
        deadline = time.monotonic() + (0.0 if preview else _SETTLE_SECONDS)
        while True:
            try:
                live = self.cluster.request("GET", path)
                if kind.name == CRD:
                    # Replaced as a whole, as `kubectl replace` does: an apply would
                    # merge versions and schemas that the program dropped.
                    obj["metadata"]["resourceVersion"] = naming.metadata(live)["resourceVersion"]
                    return self.cluster.request(
                        "PUT", path, obj, fieldManager=manager, dryRun=dry_run
                    )
                force = self._forced(obj, live, preview)
                if not preview:
                    self._take_over(path, live, manager)
                return self.cluster.request(
                    "PATCH",
                    path,
                    obj,
                    APPLY,
                    fieldManager=manager,
                    force="true" if force else "false",
                    fieldValidation="Warn",
                    dryRun=dry_run,
                )
            except ApiError as error:
                if error.code == 409 and error.reason == "Conflict":
                    raise PluginError(_conflict(obj, kind, error)) from None
                if not error.from_webhook_down or time.monotonic() + 2 > deadline:
                    raise
                waiting(f"waiting to update {_called(obj, kind)}: {error}")
            time.sleep(2)

    def _forced(self, obj: dict[str, Any], live: dict[str, Any], preview: bool) -> bool:
        if self._force or naming.annotation(obj, _PATCH_FORCE) == "true":
            return True
        managed = naming.metadata(live).get("managedFields") or []
        # At preview nothing is moved to our manager yet, so our own create would conflict.
        ours = any(
            (entry.get("manager"), entry.get("operation")) == (CREATE_MANAGER, "Update")
            for entry in managed
        )
        return not managed or (preview and ours)

    def _take_over(self, path: str, live: dict[str, Any], manager: str) -> None:
        """Moves what the create and kubectl own to `manager`, so that an apply can remove it."""
        managed: list[dict[str, Any]] = naming.metadata(live).get("managedFields") or []
        moved = [
            entry
            for entry in managed
            if (entry.get("manager"), entry.get("operation")) in _TAKEN_OVER
            and not entry.get("subresource")
        ]
        if not moved:
            return
        kept = [entry for entry in managed if entry not in moved]
        own = next(
            (e for e in kept if (e["manager"], e["operation"]) == (manager, "Apply")),
            None,
        )
        if own is None:
            own = {**moved[0], "manager": manager, "operation": "Apply", "fieldsV1": {}}
            kept.append(own)
        for entry in moved:
            own["fieldsV1"] = _union(own["fieldsV1"], entry.get("fieldsV1") or {})
        version = naming.metadata(live)["resourceVersion"]
        patch = [
            {"op": "replace", "path": "/metadata/managedFields", "value": kept},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
        ]
        self.cluster.request("PATCH", path, patch, JSON_PATCH)

    def delete(self, obj: dict[str, Any], kind: Kind, namespace: str, name: str) -> str | None:
        """Asks for the deletion; the uid of what goes away, None when it is gone already."""
        live = self.read(kind, namespace, name)
        if live is None:
            return None
        wanted = naming.annotation(obj, "pulumi.com/deletionPropagationPolicy").lower()
        options = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": _PROPAGATION.get(wanted, "Foreground"),
        }
        path = self.kinds.find(kind).path(namespace or self.namespace, name)
        try:
            self.cluster.request("DELETE", path, options)
        except ApiError as error:
            if not error.missing:
                raise
            return None
        return str(naming.metadata(live).get("uid", ""))


def _union(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    merged = dict(one)
    for key, value in other.items():
        merged[key] = _union(merged.get(key) or {}, value) if isinstance(value, dict) else value
    return merged


def _called(obj: dict[str, Any], kind: Kind) -> str:
    where = naming.namespace_of(obj)
    return f"{kind.name} {naming.identity(where, naming.name_of(obj))}"


def _conflict(obj: dict[str, Any], kind: Kind, error: ApiError) -> str:
    return (
        f"{_called(obj, kind)} has fields that something else manages: {error}. "
        "Leave them out of the program, or take them with the annotation "
        'pulumi.com/patchForce: "true"'
    )
