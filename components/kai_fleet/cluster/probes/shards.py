"""`fleet-probe shards apply|remove`: fields of KAI's SchedulingShards and Config.

KAI_OBJECTS has their specs as JSON, by plural kind and name. apply: set these fields, and
drop those of an earlier apply that are missing now. remove: drop all of them.
"""

import json
import os
from typing import Any, Final

from kai_fleet.cluster.kube.api import APPLY_PATCH, Api, Object
from kai_fleet.cluster.kube.errors import RefusedError
from kai_fleet.cluster.probes.wait import NotReadyError, cluster, say, until_ready

MANAGER: Final = "kai-fleet-shards"
_GROUP: Final = "kai.scheduler"
_KINDS: Final = {"schedulingshards": "SchedulingShard", "configs": "Config"}
# Objects of KAI's chart: only our fields are dropped, never the objects.
_OF_THE_CHART: Final = ("default", "kai-config")
_LABEL: Final = "kai-fleet/shard"
_SECONDS: Final = 60.0


def apply() -> None:
    """Apply the configured fields, and delete or reset shards that are no longer configured."""
    _reconcile(json.loads(os.environ["KAI_OBJECTS"]))


def remove() -> None:
    """Drop every field of ours, and delete the shards that were created here."""
    _reconcile({})


def _reconcile(objects: dict[str, dict[str, Any]]) -> None:
    api = cluster()
    for plural in _KINDS:
        # Chart objects without configured fields are left alone.
        specs = {
            name: spec
            for name, spec in objects.get(plural, {}).items()
            if spec or name not in _OF_THE_CHART
        }
        for name, spec in specs.items():
            _until_applied(api, plural, name, spec)
        for name in _ours(api, plural):
            if name not in specs:
                _drop(api, plural, name)


def _until_applied(api: Api, plural: str, name: str, spec: dict[str, Any]) -> None:
    """Apply a spec; an object of the chart, such as kai-config, may have to be created first."""
    kind, path = _KINDS[plural], _path(plural, name)
    metadata = {"name": name, "labels": {_LABEL: "true"}}
    body = {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": metadata, "spec": spec}

    def missing() -> list[str]:
        if name in _OF_THE_CHART and api.find(path) is None:
            return [f"{plural}.{_GROUP}/{name}, which KAI's chart makes"]
        try:
            api.patch(path, body, APPLY_PATCH, fieldManager=MANAGER, force="true")
        except RefusedError as error:
            if error.status not in (400, 403, 422):
                raise
            raise NotReadyError(
                f"{kind} {name} is refused: {error.message or error}. Its settings are shards and"
                " fairshare beside KAI's version"
            ) from None
        return []

    how_to_look = f"kubectl get {plural}.{_GROUP} {name} -o yaml"
    until_ready(f"{kind} {name}", missing, _SECONDS, how_to_look)


def _ours(api: Api, plural: str) -> list[str]:
    """Names of objects with fields of ours; none without the CRD."""
    try:
        items = api.list(_path(plural), labelSelector=_LABEL)
    except RefusedError as error:
        if error.status == 404:
            return []
        raise
    return [item["metadata"]["name"] for item in items]


def _drop(api: Api, plural: str, name: str) -> None:
    try:
        if name not in _OF_THE_CHART:
            api.delete(_path(plural, name))
            say(f"deleted {_KINDS[plural]} {name}")
        elif (item := api.find(_path(plural, name))) is not None:
            api.patch(_path(plural, name), _without_ours(item))
            say(f"{_KINDS[plural]} {name} is as its chart makes it")
    except RefusedError as error:
        if error.status not in (404, 409):
            raise


def _without_ours(item: Object) -> dict[str, Any]:
    """The merge patch that removes the fields that were applied here.

    An empty apply would do so too, but if no other field is left it leaves `spec: null`, which is
    refused.
    """
    # With its uid: another object of that name may have been made meanwhile.
    patch: dict[str, Any] = {"metadata": {"uid": item["metadata"]["uid"], "labels": {_LABEL: None}}}
    for entry in item["metadata"].get("managedFields") or []:
        if entry.get("manager") == MANAGER:
            patch["spec"] = _nulls((entry.get("fieldsV1") or {}).get("f:spec") or {})
    return patch


def _nulls(fields: dict[str, Any]) -> dict[str, Any]:
    """Null for each owned field, and for a mapping that was made here as a whole ("." of it)."""
    return {
        name.removeprefix("f:"): _nulls(below) if below and "." not in below else None
        for name, below in fields.items()
        if name.startswith("f:")
    }


def _path(plural: str, name: str = "") -> str:
    return f"/apis/{_GROUP}/v1/{plural}/{name}".rstrip("/")
