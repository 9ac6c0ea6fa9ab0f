"""The objects that KAI's operator makes: Deployments of its parts, and its webhooks.

Nothing runs in them: the sandbox's pods have no programs, and the webhooks match no request,
because nobody would answer it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Final

from kai_fleet.components.releases import KaiRelease

NAMESPACE: Final = "kai-scheduler"
MANAGED: Final = {"app.kubernetes.io/managed-by": "kai-operator"}
MADE_FROM: Final = "kai-fleet/made-from"
SHARDS_SCHEDULER: Final = "kai-scheduler-default"
ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
# Deployment, and the key of the Config that describes it.
_PARTS: Final = {
    "scheduler": "scheduler",
    SHARDS_SCHEDULER: "scheduler",
    "binder": "binder",
    "admission": "admission",
    "pod-grouper": "podGrouper",
    "podgroup-controller": "podGroupController",
    "queue-controller": "queueController",
}
_REQUESTS: Final = {"requests": {"cpu": "10m", "memory": "16Mi"}}
NEVER: Final = [{"name": "no-program-answers-in-the-sandbox", "expression": "false"}]


def names(release: KaiRelease, has_shard: bool) -> Iterator[str]:
    """The Deployments that the operator of that version sees to, or the chart in its place.

    A shard gets a scheduler from every operator, also from one whose chart brings its own.
    """
    yield from (n for n in release.deployments if n not in ("kai-operator", SHARDS_SCHEDULER))
    if has_shard:
        yield SHARDS_SCHEDULER


def deployment(
    name: str, version: str, config: dict[str, Any], owner: dict[str, Any]
) -> dict[str, Any]:
    """One part of KAI, as the Config wants it. The owner takes it along when it goes."""
    spec = config.get("spec") or {}
    common, own = spec.get("global") or {}, spec.get(_PARTS[name]) or {}
    labels = {"app": name}
    container = {
        "name": name,
        "image": image(name, version),
        "resources": (own.get("service") or {}).get("resources") or _REQUESTS,
    }
    if "gpuSharing" in own:
        container["args"] = [f"--gpu-sharing-enabled={str(own['gpuSharing']).lower()}"]
    # What is no longer wanted is named too: a merge leaves what it does not name.
    placed = {key: common.get(key) for key in ("nodeSelector", "tolerations", "affinity")}
    body = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [container], **placed},
        },
    }
    made_from = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": labels | MANAGED,
            "annotations": {MADE_FROM: made_from},
            "ownerReferences": [reference(owner)],
        },
        "spec": body,
    }


def outdated(actual: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether a Deployment that the operator made is now to be another. Charts' own never are."""
    made_from = actual["metadata"].get("annotations", {}).get(MADE_FROM)
    return made_from not in (None, wanted["metadata"]["annotations"][MADE_FROM])


def image(name: str, version: str) -> str:
    """Where the version of a part shows."""
    return f"stand-in.invalid/kai-scheduler/{name}:{version}"


def webhooks(owner: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Path and object of each webhook configuration that the operator registers."""
    for kind, name, part in (
        ("Mutating", "mutating-kai-admission", "admission"),
        ("Validating", "validating-kai-admission", "admission"),
        ("Validating", "kai-queue-validation-v2", "queue-controller"),
    ):
        rule = (
            {"apiGroups": ["scheduling.run.ai"], "apiVersions": ["v2"], "resources": ["queues"]}
            if part == "queue-controller"
            else {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
        )
        hook = {
            "name": f"{part}.kai-scheduler.svc",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"name": part, "namespace": NAMESPACE, "port": 443}},
            "failurePolicy": "Fail",
            "matchConditions": NEVER,
            "rules": [rule | {"operations": ["CREATE", "UPDATE"]}],
            "sideEffects": "None",
        }
        body = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {
                "name": name,
                "labels": dict(MANAGED),
                "ownerReferences": [reference(owner)],
            },
            "webhooks": [hook],
        }
        yield f"{ADMISSION}/{kind.lower()}webhookconfigurations", body


def reference(owner: dict[str, Any]) -> dict[str, Any]:
    """As Kubernetes writes who owns an object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
