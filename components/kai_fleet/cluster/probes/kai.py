"""`fleet-probe kai wait|clean-up` and `fleet-probe shards apply|remove`: around one KAI release.

wait: every deployment of that version is rolled out, its objects say Ready, and a Queue is
accepted. clean-up: remove what uninstalling that version would leave in the way. shards: set fields
of KAI's SchedulingShards and Config, from KAI_OBJECTS, or drop them.
"""

import os
from collections.abc import Mapping
from typing import Any, Final

from kai_fleet.cluster.kube.api import APPLY_PATCH, Api, Object
from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.cluster.probes.reasons import key, reasons, refusals
from kai_fleet.cluster.probes.wait import (
    NotReadyError,
    cluster,
    remaining,
    require_release,
    until_ready,
)
from kai_fleet.cluster.provider import queues
from kai_fleet.releases import kai
from kai_fleet.releases.keys import KAI_NAMESPACE

MANAGER: Final = "kai-fleet-shards"
_SECONDS: Final = 60.0  # to drop the fields of one kind
_KINDS: Final = {"schedulingshards": "SchedulingShard", "configs": "Config"}
# Objects that KAI's chart or operator makes: only our fields are dropped, never the objects.
_OF_THE_CHART: Final = {"schedulingshards": "default", "configs": "kai-config"}
_LABEL: Final = "kai-fleet/shard"
_DEPLOYMENTS: Final = f"/apis/apps/v1/namespaces/{KAI_NAMESPACE}/deployments"
_PODS: Final = f"/api/v1/namespaces/{KAI_NAMESPACE}/pods"
_WEBHOOKS: Final = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
_QUEUE: Final = {
    "apiVersion": queues.API_VERSION,
    "kind": queues.KIND,
    "metadata": {"generateName": "kai-fleet-probe-"},
    "spec": {"resources": {}},
}


def wait() -> None:
    """Return when KAI is ready; a pod with a GPU fraction made earlier would stay Pending."""
    version, chart = os.environ["KAI_VERSION"], os.environ.get("KAI_CHART")
    if chart and chart.removeprefix("v") != version.removeprefix("v"):
        raise NotReadyError(f"its chart is of KAI {chart}, and not of {version}")
    api = cluster()
    deployments, conditions = (
        [name for name in os.environ.get(variable, "").split(",") if name]
        for variable in ("KAI_DEPLOYMENTS", "KAI_CONDITIONS")
    )
    keys = ("kai-fleet:kai", "kai-fleet:kai.values", "kai-fleet:kai.values")
    if team := os.environ.get("PROBE_SECRET", "").partition("/vc-")[2]:
        keys = (key(team), key(team, "nodePool"), key(team, "scheduler.values"))

    def memory(pod: KubeObject) -> str:
        part = kai(os.environ["KAI_VERSION"]).resources_key(pod.made_by(deployments))
        return f"{keys[2]}.{part}" if part else keys[2]

    def missing() -> list[str]:
        left = _not_rolled_out(api, deployments)
        left = left or [f"{name} (not Ready)" for name in conditions if not _is_ready(api, name)]
        if not left:  # a dry run asks the webhook, too: an error is what is missing
            api.post(queues.PATH, _QUEUE, dryRun="All")
        return left

    def why() -> list[str]:
        found = reasons(api, map(KubeObject, api.list(_PODS)), *keys, memory)
        return found or refusals(api, KAI_NAMESPACE)

    until_ready(
        api,
        f"KAI {version}",
        missing,
        float(os.environ["KAI_TIMEOUT"]),
        f"kubectl -n {KAI_NAMESPACE} get pods,jobs and kubectl -n {KAI_NAMESPACE} get events",
        why,
    )


def clean_up() -> None:
    """Delete `kai-config` and the chart's shard, and wait until what they own is gone.

    Otherwise uninstalling leaves Fail-policy webhooks without a server, and no pod can be made
    in the whole cluster; and the shard's scheduler, which would run beside the next version's. The
    chart keeps its shard, and any operator makes a scheduler from it.
    """
    if os.environ.get("KAI_CONFIG") != "remove" or (api := remaining()) is None:
        return
    for plural, name in _OF_THE_CHART.items():
        api.delete(_path(plural, name))
    until_ready(
        api,
        "the removal of what KAI's operator made",
        lambda: _left(api),
        60,
        f"kubectl -n {KAI_NAMESPACE} get deployments and"
        " kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
    )


def _left(api: Api) -> list[str]:
    """Webhooks of KAI, and deployments that go with their owner, not with the Helm release."""
    hooks = [
        f"webhook {item['metadata']['name']}"
        for kind in ("validating", "mutating")
        for item in api.list(_WEBHOOKS.format(kind))
        for hook in item.get("webhooks", [])
        if (hook["clientConfig"].get("service") or {}).get("namespace") == KAI_NAMESPACE
    ]
    return hooks + [
        f"deployment {item['metadata']['name']}"
        for item in api.list(_DEPLOYMENTS)
        for owner in item["metadata"].get("ownerReferences", [])
        if owner["apiVersion"].startswith("kai.scheduler/")
        and owner["name"] in _OF_THE_CHART.values()
    ]


def _not_rolled_out(api: Api, names: list[str]) -> list[str]:
    """Deployments that are absent or not rolled out. Raises NotReadyError if KAI is gone."""
    present = {item["metadata"]["name"]: KubeObject(item) for item in api.list(_DEPLOYMENTS)}
    left = [f"deployment {name} (absent)" for name in names if name not in present]
    there = [present[name] for name in names if name in present]
    left += [f"deployment {each.name}" for each in there if not each.rolled_out]
    if names and not present:
        require_release(api, "KAI", KAI_NAMESPACE, "kai-scheduler")
    return left


def _is_ready(api: Api, reference: str) -> bool:
    """Whether `plural.group/name` exists and is Ready at its newest generation."""
    kind, name = reference.split("/")
    plural, group = kind.split(".", 1)
    item = api.find(f"/apis/{group}/v1/{plural}/{name}")
    return item is not None and KubeObject(item).is_ready


def remove_fields() -> None:
    """Drop all fields that were set, and delete the shards."""
    if (api := remaining()) is not None:
        set_fields(api, {})


def set_fields(api: Api, objects: Mapping[str, Mapping[str, Any]]) -> None:
    """Set these fields, specs by plural kind and name. Drop those of an earlier run, and delete the
    shards that are no longer configured.
    """
    for plural, of_chart in _OF_THE_CHART.items():
        # An object of the chart without configured fields is left alone.
        own = objects.get(plural, {}).items()
        specs = {name: spec for name, spec in own if spec or name != of_chart}
        for name, spec in specs.items():
            _until_applied(api, plural, name, spec)
        api.begin(_SECONDS)
        labelled = api.find(f"{_path(plural)}?labelSelector={_LABEL}") or {}  # None: no CRD
        for item in labelled.get("items") or []:
            name = item["metadata"]["name"]
            if name == of_chart and name not in specs:
                api.patch(_path(plural, name), _without_ours(item))
            elif name not in specs:
                api.delete(_path(plural, name))


def _until_applied(api: Api, plural: str, name: str, spec: dict[str, Any]) -> None:
    """Apply a spec; an object of the chart, such as kai-config, may have to be created first."""
    kind, path = _KINDS[plural], _path(plural, name)
    metadata = {"name": name, "labels": {_LABEL: "true"}}
    body = {"apiVersion": "kai.scheduler/v1", "kind": kind, "metadata": metadata, "spec": spec}

    def missing() -> list[str]:
        if name == _OF_THE_CHART[plural] and api.find(path) is None:
            return [f"{plural}.kai.scheduler/{name}, which KAI's chart makes"]
        api.patch(path, body, APPLY_PATCH, fieldManager=MANAGER, force="true")
        return []

    how_to_look = f"kubectl get {plural}.kai.scheduler {name} -o yaml"
    until_ready(api, f"{kind} {name}", missing, 60, how_to_look)


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
    return f"/apis/kai.scheduler/v1/{plural}/{name}".rstrip("/")
