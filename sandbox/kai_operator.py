"""A simulation of one thing that KAI's operator does: it reports its objects as ready.

No pod of the sandbox runs anything, so nobody else would set these conditions.
"""

from __future__ import annotations

import datetime
from typing import Any, Final

from sandbox.kube_api import Api, ApiError

GROUP: Final = "/apis/kai.scheduler/v1"
# What the operator reports on: its configuration, and one scheduler per shard.
OBJECTS: Final = ("configs/kai-config", "schedulingshards/default")
OPERATOR: Final = "/apis/apps/v1/namespaces/kai-scheduler/deployments/kai-operator"


def report_ready(api: Api) -> None:
    """Set the condition Ready on what there is, once the operator's Deployment is available.

    Raises ApiError.
    """
    for path in OBJECTS:
        found = api.find(f"{GROUP}/{path}")
        if found is None or _ready(found) or not _available(api.find(OPERATOR)):
            continue
        conditions = [
            it for it in found.get("status", {}).get("conditions", []) if it["type"] != "Ready"
        ]
        body = {"status": {"conditions": [*conditions, _condition(found)]}}
        try:
            api.patch(f"{GROUP}/{path}/status", body)
        except ApiError as why:
            if why.status != 404:  # a CRD of that version without a status subresource
                raise


def _ready(item: dict[str, Any]) -> bool:
    generation = item["metadata"].get("generation")
    return any(
        it["type"] == "Ready"
        and it["status"] == "True"
        and it.get("observedGeneration", generation) == generation
        for it in item.get("status", {}).get("conditions", [])
    )


def _available(deployment: dict[str, Any] | None) -> bool:
    conditions = (deployment or {}).get("status", {}).get("conditions", [])
    return any(it["type"] == "Available" and it["status"] == "True" for it in conditions)


def _condition(item: dict[str, Any]) -> dict[str, Any]:
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "type": "Ready",
        "status": "True",
        "reason": "Simulated",
        "message": "reported by the sandbox in place of KAI's operator",
        "observedGeneration": item["metadata"].get("generation", 1),
        "lastTransitionTime": now,
    }
