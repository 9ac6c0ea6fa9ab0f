"""Simulate KAI's operator: Deployments and webhooks come and go with its Config; no pod runs."""

import copy
import datetime
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import yaml

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.releases import KAI, KaiRelease, UnknownVersionError, kai
from kai_usage.keys import KAI_NAMESPACE
from sandbox.chart_packages import SOURCES
from sandbox.control_plane.kube_api import AdminApi, Object, RefusedError

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
CONFIGS: Final = "/apis/kai.scheduler/v1/configs"
CONFIG: Final = f"{CONFIGS}/kai-config"
SHARD: Final = "/apis/kai.scheduler/v1/schedulingshards/default"
DEPLOYMENTS: Final = f"/apis/apps/v1/namespaces/{KAI_NAMESPACE}/deployments"
OPERATOR: Final = f"{DEPLOYMENTS}/kai-operator"
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_CLUSTER_POLICIES: Final = f"{CRDS}/clusterpolicies.nvidia.com"
# The version whose job ran, on the operator; so that a Config deleted on purpose stays deleted.
APPLIED: Final = "kai-fleet/config-applied"
_QUEUE_CRD: Final = SOURCES / "kai-scheduler" / "crds" / "scheduling.run.ai_queues.yaml"
_YAML: Final = yaml.safe_load(Path(__file__).with_name("operator.yaml").read_text(encoding="utf-8"))
# The charts of these bring kai-config themselves, as an object or a hook; in later ones a job
# applies it.
_CHART_BRINGS_CONFIG: Final = ("v0.9.", "v0.10.", "v0.13.")


def play(api: AdminApi) -> None:
    """Reconcile once; called in a loop. Raises KubeError."""
    found = {item["metadata"]["name"]: item for item in api.served(DEPLOYMENTS)}
    if not found:
        return
    if "queuecontroller" in found:
        _do_jobs_of_v07(api)
    config, shard = api.find(CONFIG), api.find(SHARD)
    _collect(api, found, config, shard)
    operator = found.get("kai-operator")
    if operator is None or not _available(operator):
        return
    release = _release(operator)
    config = _applied(api, operator, release, config)
    waits = release.needs_cluster_policy_crd and api.find(_CLUSTER_POLICIES) is None
    if config is None or waits:  # without that CRD, which it watches, this operator never starts
        return
    _make(api, release, found, config, shard)
    parts = _operands(release, shard is not None)
    if release.ready_conditions and all(_available(found.get(name, {})) for name in parts):
        for path, item in ((CONFIG, config), (SHARD, shard)):
            _report_ready(api, path, item)


def _do_jobs_of_v07(api: AdminApi) -> None:
    """Create what crd-upgrader and the webhook jobs of v0.7 create."""
    if api.find(f"{CRDS}/queues.scheduling.run.ai") is None:
        api.post(CRDS, yaml.safe_load(_QUEUE_CRD.read_text(encoding="utf-8")))
    for kind in ("mutating", "validating"):
        collection = f"{ADMISSION}/{kind}webhookconfigurations"
        for item in api.get(collection)["items"]:
            hooks = item.get("webhooks", [])
            ours = [hook for hook in hooks if _serves_kai(hook)]
            if all(hook.get("matchConditions") for hook in ours):
                continue
            for hook in ours:
                hook["matchConditions"] = [_YAML["never"]]
            api.patch(f"{collection}/{item['metadata']['name']}", {"webhooks": hooks})


def _serves_kai(hook: Object) -> bool:
    service = hook["clientConfig"].get("service") or {}
    return service.get("namespace") == KAI_NAMESPACE


def _collect(
    api: AdminApi, found: dict[str, Object], config: Object | None, shard: Object | None
) -> None:
    """Delete objects whose owner is gone: for a new kind Kubernetes takes up to half a minute."""
    living = {item["metadata"]["uid"] for item in (config, shard) if item is not None}
    orphans = [
        name
        for name, item in found.items()
        if any(
            owner["apiVersion"].startswith("kai.scheduler/") and owner["uid"] not in living
            for owner in item["metadata"].get("ownerReferences", [])
        )
    ]
    if orphans and config is None:
        for collection, body in _webhooks():
            api.delete(f"{collection}/{body['metadata']['name']}")
    for name in orphans:
        api.delete(f"{DEPLOYMENTS}/{name}")
        del found[name]


def _release(operator: Object) -> KaiRelease:
    """The version of its parts: that of the chart, from its own image's tag.

    A real operator reads it from the Config, where the chart writes it (v0.9.3 to v0.16.8), so the
    old operator already brings up the new parts while the new one's pod starts.
    """
    image = operator["spec"]["template"]["spec"]["containers"][0]["image"]
    try:
        return kai(image.rpartition(":")[2], untested=True)
    except UnknownVersionError:
        return list(KAI.values())[-1]


def _applied(
    api: AdminApi, operator: Object, release: KaiRelease, config: Object | None
) -> Object | None:
    """The Config, applied here for a real chart whose deployer job would apply it.

    Only the stand-in chart's follows the values: the manifest in a job that does not run is not
    read.
    """
    standin = "kai-fleet/stand-in" in operator["metadata"].get("labels", {})
    if standin or release.version.startswith(_CHART_BRINGS_CONFIG):
        return config
    applied = operator["metadata"].get("annotations", {}).get(APPLIED)
    helms = "meta.helm.sh/release-name" in (config or {}).get("metadata", {}).get("annotations", {})
    # An upgrade from a chart that declares the Config deletes it, and only then runs the job.
    if applied == release.version or helms:
        return config
    api.ensure(CONFIGS, _YAML["config"])
    api.patch(OPERATOR, {"metadata": {"annotations": {APPLIED: release.version}}})
    return api.find(CONFIG)


def _make(
    api: AdminApi,
    release: KaiRelease,
    found: dict[str, Object],
    config: Object,
    shard: Object | None,
) -> None:
    """Create or update every part of KAI, of this version and as `config` describes it."""
    missing = []
    for name in _operands(release, shard is not None):
        owner = shard if shard is not None and name == SHARDS_SCHEDULER else config
        body = _deployment(name, release.version, config, owner)
        if name not in found:
            missing.append(body)
        elif _outdated(found[name], body):
            api.ensure(DEPLOYMENTS, body)
            found[name] = {}  # not available before its status is read again
    if missing:
        for collection, hooks in _webhooks():
            hooks["metadata"]["ownerReferences"] = [_reference(config)]
            api.ensure(collection, hooks)
    for body in missing:
        api.ensure(DEPLOYMENTS, body)


def _available(deployment: Object) -> bool:
    status = deployment.get("status", {})
    current = status.get("observedGeneration") == deployment.get("metadata", {}).get("generation")
    return current and KubeObject(deployment).is_true("Available")


def _report_ready(api: AdminApi, path: str, item: Object | None) -> None:
    if item is None or KubeObject(item).is_ready:
        return
    known = item.get("status", {}).get("conditions", [])
    others = [each for each in known if each["type"] != "Ready"]
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    generation = item["metadata"].get("generation", 1)
    condition = _YAML["ready"] | {"observedGeneration": generation, "lastTransitionTime": now}
    try:
        api.patch(f"{path}/status", {"status": {"conditions": [*others, condition]}})
    except RefusedError as why:
        if why.status != 404:  # deleted meanwhile
            raise


def _operands(release: KaiRelease, has_shard: bool) -> Iterator[str]:
    """The Deployments that the operator of that version manages, or its chart.

    A shard gets a scheduler from every operator, also from one whose chart brings its own.
    """
    yield from (n for n in release.deployments if n not in ("kai-operator", SHARDS_SCHEDULER))
    if has_shard:
        yield SHARDS_SCHEDULER


def _deployment(name: str, version: str, config: Object, owner: Object) -> Object:
    """One part of KAI, as the Config describes it; deleted with its owner."""
    spec = config.get("spec") or {}
    common, own = spec.get("global") or {}, spec.get(_PARTS[name]) or {}
    labels = {"app": name}
    container = {
        "name": name,
        "image": f"stand-in.invalid/kai-scheduler/{name}:{version}",
        "resources": (own.get("service") or {}).get("resources") or _REQUESTS,
    }
    if "gpuSharing" in own:
        container["args"] = [f"--gpu-sharing-enabled={str(own['gpuSharing']).lower()}"]
    # Unset keys are written, too: a merge patch keeps what it does not name.
    placed = {key: common.get(key) for key in ("nodeSelector", "tolerations", "affinity")}
    body = copy.deepcopy(_OPERAND)
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container], **placed}}
    body["spec"] |= {"selector": {"matchLabels": labels}, "template": pod}
    made_from = hashlib.sha256(json.dumps(body["spec"], sort_keys=True).encode()).hexdigest()[:16]
    body["metadata"]["labels"] |= labels
    body["metadata"] |= {
        "name": name,
        "annotations": {MADE_FROM: made_from},
        "ownerReferences": [_reference(owner)],
    }
    return body


def _outdated(actual: Object, desired: Object) -> bool:
    """Whether a Deployment of the operator differs from the desired one. Charts' own never do."""
    made_from = actual["metadata"].get("annotations", {}).get(MADE_FROM)
    return made_from not in (None, desired["metadata"]["annotations"][MADE_FROM])


def _webhooks() -> Iterator[tuple[str, Object]]:
    """Path and object of each webhook configuration that the operator registers, ownerless."""
    for body in yaml.safe_load(_WEBHOOKS.read_text(encoding="utf-8")):
        yield f"{ADMISSION}/{body['kind'].lower()}s", body


def _reference(owner: Object) -> Object:
    """An owner reference to an object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
