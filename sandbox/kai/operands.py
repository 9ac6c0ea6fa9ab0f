"""The objects that KAI's operator makes: Deployments of its parts, and its webhooks.

Nothing runs in them: the sandbox's pods have no programs, and the webhooks match no request,
because nobody would answer it.
"""

import copy
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import yaml

from kubectl_fleet.releases import KaiRelease
from sandbox.control_plane.kube_api import Object

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
_OPERAND: Final[Object] = yaml.safe_load(
    Path(__file__).with_name("operand.yaml").read_text(encoding="utf-8")
)
_WEBHOOKS: Final = Path(__file__).with_name("webhooks.yaml")


def names(release: KaiRelease, has_shard: bool) -> Iterator[str]:
    """The Deployments that the operator of that version sees to, or the chart in its place.

    A shard gets a scheduler from every operator, also from one whose chart brings its own.
    """
    yield from (n for n in release.deployments if n not in ("kai-operator", SHARDS_SCHEDULER))
    if has_shard:
        yield SHARDS_SCHEDULER


def deployment(name: str, version: str, config: Object, owner: Object) -> Object:
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
    found = copy.deepcopy(_OPERAND)
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container], **placed}}
    found["spec"] |= {"selector": {"matchLabels": labels}, "template": pod}
    made_from = hashlib.sha256(json.dumps(found["spec"], sort_keys=True).encode()).hexdigest()[:16]
    found["metadata"]["labels"] |= labels
    found["metadata"] |= {
        "name": name,
        "annotations": {MADE_FROM: made_from},
        "ownerReferences": [reference(owner)],
    }
    return found


def outdated(actual: Object, wanted: Object) -> bool:
    """Whether a Deployment that the operator made is now to be another. Charts' own never are."""
    made_from = actual["metadata"].get("annotations", {}).get(MADE_FROM)
    return made_from not in (None, wanted["metadata"]["annotations"][MADE_FROM])


def image(name: str, version: str) -> str:
    """Where the version of a part shows."""
    return f"stand-in.invalid/kai-scheduler/{name}:{version}"


def webhooks() -> Iterator[tuple[str, Object]]:
    """Path and object of each webhook configuration that the operator registers, ownerless."""
    for body in yaml.safe_load(_WEBHOOKS.read_text(encoding="utf-8")):
        yield f"{ADMISSION}/{body['kind'].lower()}s", body


def reference(owner: Object) -> Object:
    """As Kubernetes writes who owns an object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
