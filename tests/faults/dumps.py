"""Everything in a cluster, without what differs between two runs that did the same."""

import re
from pathlib import Path
from typing import Any

from kubernetes import client

from tests.faults.case import client_of

# Made and remade by controllers, or by nothing that an update does.
LEFT_OUT = {
    "ControllerRevision",
    "Endpoints",
    "EndpointSlice",
    "Event",
    "IPAddress",
    "Lease",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "ReplicaSet",
}
CHANGING = {
    "targetPort",
    "clusterIP",
    "clusterIPs",
    "nodePort",
    "healthCheckNodePort",
    "caBundle",
    "uid",
    "kai-fleet/cluster",  # the UID of a vCluster, which begins anew in some cases
    "kubectl.kubernetes.io/restartedAt",  # what a printed `rollout restart` leaves
}
ANNOTATIONS = ("deployment.kubernetes.io/", "kubectl.kubernetes.io/", "kwok.x-k8s.io/")
HELM_REVISION = re.compile(r"(sh\.helm\.release\.v1\..+)\.v(\d+)$")

Dump = dict[str, Any]


def dump(kubeconfig: Path) -> Dump:
    """Each object by `kind namespace/name`."""
    with client_of(kubeconfig) as api:
        found: Dump = {}
        for path, kind in _kinds(api):
            for item in _current(_get(api, path)["items"]):
                key, content = _normal(kind, item)
                found[key] = content
        return found


def differences(before: Dump, after: Dump) -> list[str]:
    """What there is in one only, or differently, in words."""
    only = [f"missing: {key}" for key in sorted(before.keys() - after.keys())]
    more = [f"too many: {key}" for key in sorted(after.keys() - before.keys())]
    changed = [
        f"differs: {key}: {before[key]} → {after[key]}"
        for key in sorted(before.keys() & after.keys())
        if before[key] != after[key]
    ]
    return only + more + changed


def versions(kubeconfig: Path, paths: list[str]) -> dict[str, str]:
    """The resourceVersion of the objects at these paths of the API."""
    with client_of(kubeconfig) as api:
        return {path: _get(api, path)["metadata"]["resourceVersion"] for path in paths}


def _kinds(api: client.ApiClient) -> list[tuple[str, str]]:
    groups = ["/api/v1"]
    groups += [
        f"/apis/{group['preferredVersion']['groupVersion']}"
        for group in _get(api, "/apis")["groups"]
    ]
    return [
        (f"{base}/{resource['name']}", resource["kind"])
        for base in groups
        for resource in _get(api, base)["resources"]
        if "list" in resource["verbs"]
        and "/" not in resource["name"]
        and resource["kind"] not in LEFT_OUT
    ]


def _current(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All, but of Helm's records of a release only the last: how many tries it took may differ."""
    last: dict[tuple[str, str], int] = {}
    revisions = []
    for item in items:
        found = HELM_REVISION.match(item["metadata"]["name"])
        key = (item["metadata"].get("namespace", ""), found[1] if found else "")
        revision = int(found[2]) if found else 0
        revisions.append((key, revision))
        last[key] = max(revision, last.get(key, 0))
    return [
        item
        for item, (key, revision) in zip(items, revisions, strict=True)
        if revision == last[key]
    ]


def _normal(kind: str, item: dict[str, Any]) -> tuple[str, Any]:
    metadata = item["metadata"]
    name = metadata["name"]
    content: dict[str, Any] = {
        key: value for key, value in item.items() if key not in ("metadata", "status", "kind")
    }
    labels = dict(metadata.get("labels") or {})
    if kind == "Secret":
        content["data"] = sorted(item.get("data") or {})
        helm = HELM_REVISION.match(name)
        if helm:
            name, labels = helm[1], {key: labels[key] for key in ("name", "status")}
    if kind == "ConfigMap":
        content["data"] = sorted(item.get("data") or {})
    annotations = {
        key: value
        for key, value in (metadata.get("annotations") or {}).items()
        if not key.startswith(ANNOTATIONS)
    }
    content["labels"], content["annotations"] = labels, annotations
    content["owners"] = [
        f"{owner['kind']} {owner['name']}" for owner in metadata.get("ownerReferences") or []
    ]
    if metadata.get("deletionTimestamp"):
        content["deleted"] = True
    return f"{kind} {metadata.get('namespace', '')}/{name}", _without_changing(content)


def _without_changing(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_changing(item) for key, item in value.items() if key not in CHANGING}
    if isinstance(value, list):
        return [_without_changing(item) for item in value]
    return value


def _get(api: client.ApiClient, path: str) -> dict[str, Any]:
    answer = api.rest_client.pool_manager.request("GET", api.configuration.host + path, timeout=20)
    assert answer.status == 200, f"{path}: {answer.status} {answer.data[:200]!r}"
    found: dict[str, Any] = answer.json()
    return found
