"""`fleet-probe kai wait|clean-up` and `fleet-probe shards apply|remove`, for one KAI release.

wait: until all deployments of that version are rolled out, its objects are Ready, a Queue is
accepted and, if asked for, a gang of pods is placed. clean-up: delete what would be in the way
after that version is uninstalled. shards: set the fields in KAI_OBJECTS of KAI's SchedulingShards
and Config, or drop them.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import yaml

from kai_fleet.cluster import queues
from kai_fleet.cluster.kube.api import APPLY_PATCH, Api, Object
from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.cluster.probes.reasons import Keys, key, pool_key, reasons, refusals
from kai_fleet.cluster.probes.wait import (
    NotReadyError,
    client_for_removal,
    cluster,
    require_release,
    say,
    until_ready,
    variable,
)
from kai_fleet.releases import kai
from kai_fleet.releases.keys import NODE_POOL
from kai_fleet.values import get
from kai_usage.cluster_usage import count
from kai_usage.keys import KAI_NAMESPACE, QUEUE_LABEL
from kai_usage.scheduling import meanings_of

MANAGER = "kai-fleet-shards"
_SECONDS_A_KIND = 60.0  # for all requests about the objects of one kind
_APPLY_TIMEOUT_SECONDS = 60
_CLEAN_UP_TIMEOUT_SECONDS = 60
_KINDS = {"schedulingshards": "SchedulingShard", "configs": "Config"}
# Objects that KAI's chart or operator creates. Only our fields of them are dropped; the objects are
# never deleted with the shards.
_OF_THE_CHART = {"schedulingshards": "default", "configs": "kai-config"}
_LABEL = "kai-fleet/shard"
_DEPLOYMENTS = f"/apis/apps/v1/namespaces/{KAI_NAMESPACE}/deployments"
_PODS = f"/api/v1/namespaces/{KAI_NAMESPACE}/pods"
_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
_QUEUE = {
    "apiVersion": queues.API_VERSION,
    "kind": queues.KIND,
    "metadata": {"generateName": "kai-fleet-probe-"},
    "spec": {"resources": {}},
}


def wait() -> None:
    """Wait until KAI is ready: a pod with a GPU fraction created earlier would stay Pending.

    KAI_VERSION, KAI_DEPLOYMENTS and KAI_CONDITIONS say what has to be ready. KAI_VERIFY has
    `_verify` called after that. Raises UnusableKubeconfigError, UnknownVersionError, one of
    MALFORMED, and NotReadyError if KAI_CHART, without regard to a `v`, is of another version, KAI
    or a ConfigMap of its pods is gone, KAI_TIMEOUT seconds are over, or as `cluster`, `_verify`.
    """
    version = variable("KAI_VERSION")
    chart = os.environ.get("KAI_CHART")
    if chart and chart.removeprefix("v") != version.removeprefix("v"):
        raise NotReadyError(f"its chart is of KAI {chart}, and not of {version}")
    api = cluster()
    deployments = _names("KAI_DEPLOYMENTS")
    conditions = _names("KAI_CONDITIONS")
    keys = _keys()

    def memory_key(pod: KubeObject) -> str:
        """The key of a pod's memory limit, else of all values. Raises UnknownVersionError."""
        part = kai(version, untested=True).resources_key(pod.made_by(deployments))
        return f"{keys.requests}.{part}" if part else keys.requests

    def why() -> list[str]:
        """Why pods do not start, else are not created. Raises as `reasons` does."""
        pods = map(KubeObject, api.list(_PODS))
        phrases = reasons(
            api,
            pods,
            keys,
            memory_key=memory_key,
        )
        return phrases or refusals(api, KAI_NAMESPACE)

    until_ready(
        api,
        f"KAI {version}",
        lambda: _missing(api, deployments, conditions),
        float(variable("KAI_TIMEOUT")),
        f"kubectl -n {KAI_NAMESPACE} get pods,jobs and kubectl -n {KAI_NAMESPACE} get events",
        why,
    )
    if "KAI_VERIFY" in os.environ:
        _verify(api)


def _verify(api: Api) -> None:
    """Place the pods of verification.yaml, wait until each has a node, and remove them.

    A KAI may be Ready and schedule no gangs. Nothing is placed without queues of this program in
    the default shard, and no share of a GPU if KAI_VERIFY is `gang` or no GPU is free: KAI could
    evict a pod for it. Raises NotReadyError after two minutes or if a variable is not set;
    KubeError.
    """
    shard = f"labelSelector=!{NODE_POOL}"
    nodes = [node for node in api.list(f"/api/v1/nodes?{shard}") if KubeObject(node).takes_pods]
    found = api.list(f"{queues.PATH}?{shard},{queues.TREE}")
    usage = count({"nodes": nodes, "pods": api.list("/api/v1/pods"), "queues": found})
    leaves = [queue.name for queue in usage.queues.values() if not queue.children]
    if not leaves:
        return
    objects = yaml.safe_load(Path(__file__).with_name("verification.yaml").read_text())
    group, pod, *_ = objects.values()  # the other pods have the same labels and spec as the first
    group["spec"]["queue"] = leaves[0]
    pod["metadata"]["labels"][QUEUE_LABEL] = leaves[0]
    # Any pod of KAI has an image that is there, and tolerations.
    of_kai = api.list(_PODS)[0]["spec"]
    pod["spec"]["tolerations"] = of_kai["tolerations"]
    pod["spec"]["containers"][0]["image"] = of_kai["containers"][0]["image"]
    if variable("KAI_VERIFY") == "gang" or not any(node.free for node in usage.nodes.values()):
        say("warning: no share of a GPU is verified: GPU sharing is off, or no GPU is free")
        objects.popitem()
    try:
        for path, body in objects.items():
            api.delete(path)  # what a run left that was killed
            api.patch(path, body, APPLY_PATCH, fieldManager="kai-fleet-verify")
        until_ready(
            api,
            f"KAI {variable('KAI_VERSION')} with a gang of pods",
            lambda: _unplaced(api, objects),
            120.0,
            f"kubectl -n {KAI_NAMESPACE} get pods; or write the version before at"
            f" {_keys().requests.removesuffix('values')}version, or verify: false beside it",
        )
    finally:
        for path in objects:
            api.delete(path)


def _unplaced(api: Api, paths: Iterable[str]) -> list[str]:
    """A phrase for the first pod that has no node, though there may be room. Raises KubeError."""
    for path in paths:
        pod = KubeObject(api.get(path))
        known = next(meanings_of([pod.unscheduled], "operator"), None)
        if known and known.row.name in ("no-room", "too-many-pods", "queue-full"):
            say(f"warning: no room for pod {pod.name}, and none is waited for: {pod.unscheduled}")
        elif "nodeName" not in pod.spec and "minMember" not in pod.spec:
            return [f"a node for pod {pod.name}: {pod.unscheduled or 'KAI says nothing about it'}"]
    return []


def _names(variable: str) -> list[str]:
    """The names in an environment variable, separated by commas; none if it is absent."""
    return [name for name in os.environ.get(variable, "").split(",") if name]


def _keys() -> Keys:
    """The team's keys if PROBE_SECRET says that KAI runs in its vCluster, else the host's.

    Raises NotReadyError for a team without PROBE_PLACE.
    """
    team = os.environ.get("PROBE_SECRET", "").partition("/vc-")[2]
    if not team:
        return Keys("kai-fleet:kai", "kai-fleet:kai.values", "kai-fleet:kai.values")
    return Keys(key(team), pool_key(team), key(team, "scheduler.values"))


def _missing(api: Api, deployments: list[str], conditions: list[str]) -> list[str]:
    """What KAI still lacks, a phrase each: Deployments, and conditions once these are rolled out.

    Raises NotReadyError if the Helm release is gone, KubeError also if nothing is lacking but KAI's
    webhook refuses a queue, which is sent as a dry run.
    """
    deployments_missing = _not_rolled_out(api, deployments)
    if deployments_missing:
        return deployments_missing
    unready = [f"{name} (not Ready)" for name in conditions if not _is_ready(api, name)]
    if not unready:
        api.post(queues.PATH, _QUEUE, dryRun="All")  # a dry run asks the webhook, too
    return unready


def clean_up() -> None:
    """Delete `kai-config` and the chart's shard, and wait until what they own is gone.

    Only if KAI_CONFIG is `remove`, and the cluster still exists. After uninstalling KAI, two things
    would be left: webhooks that refuse all pods of the cluster, because their server is gone; and
    the shard's scheduler, which would run beside that of the next version. The chart keeps its
    shard, and any operator creates a scheduler from it.

    Raises NotReadyError after a minute, KubeError if a deletion is refused, and what
    `client_for_removal` raises.
    """
    if os.environ.get("KAI_CONFIG") != "remove":
        return
    api = client_for_removal()
    if api is None:
        return
    for plural, name in _OF_THE_CHART.items():
        api.delete(_path(plural, name))
    until_ready(
        api,
        "the removal of what KAI's operator made",
        lambda: [*_webhooks(api), *_owned_deployments(api)],
        _CLEAN_UP_TIMEOUT_SECONDS,
        f"kubectl -n {KAI_NAMESPACE} get deployments and"
        " kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
    )


def _webhooks(api: Api) -> Iterator[str]:
    """A phrase for each webhook whose Service is in KAI's namespace. Raises KubeError.

    It has the name of the webhook's configuration, so some are the same.
    """
    for kind in ("validating", "mutating"):
        for item in api.list(_WEBHOOKS.format(kind)):
            for hook in item.get("webhooks", []):
                service = hook["clientConfig"].get("service") or {}
                if service.get("namespace") == KAI_NAMESPACE:
                    yield f"webhook {item['metadata']['name']}"


def _owned_deployments(api: Api) -> Iterator[str]:
    """A phrase for each deployment that is deleted with its owner, not with the Helm release.

    Raises KubeError.
    """
    for item in api.list(_DEPLOYMENTS):
        for owner in item["metadata"].get("ownerReferences", []):
            is_of_kai = owner["apiVersion"].startswith("kai.scheduler/")
            if is_of_kai and owner["name"] in _OF_THE_CHART.values():
                yield f"deployment {item['metadata']['name']}"


def _not_rolled_out(api: Api, names: list[str]) -> list[str]:
    """A phrase for each of these deployments that is absent, then for each not rolled out.

    Raises NotReadyError if there is no deployment, and the Helm release is gone. Raises KubeError.
    """
    present = {item["metadata"]["name"]: KubeObject(item) for item in api.list(_DEPLOYMENTS)}
    if names and not present:
        require_release(api, "KAI", KAI_NAMESPACE, "kai-scheduler")
    phrases = [f"deployment {name} (absent)" for name in names if name not in present]
    for name in names:
        if name in present and not present[name].rolled_out:
            phrases.append(f"deployment {name}")
    return phrases


def _is_ready(api: Api, reference: str) -> bool:
    """Whether the object `plural.group/name` exists and is Ready at its newest generation.

    It is read in version v1 of its group. Raises KubeError.
    """
    resource, name = reference.split("/")
    plural, group = resource.split(".", 1)
    item = api.find(f"/apis/{group}/v1/{plural}/{name}")
    return item is not None and KubeObject(item).is_ready


def remove_fields() -> None:
    """Drop all fields that were set, and delete our shards, if the cluster still exists.

    Raises NotReadyError and KubeError as `client_for_removal` and `set_fields` do.
    """
    api = client_for_removal()
    if api is not None:
        set_fields(api, {})


def set_fields(api: Api, objects: Mapping[str, Mapping[str, Object]]) -> None:
    """Set the fields in `objects`: specs by plural kind (`schedulingshards`, `configs`) and name.

    What an earlier call set and `objects` lacks is dropped: fields of the chart's objects, and
    whole shards of ours. Sets the limits of `api` anew. Raises NotReadyError if for a minute an
    object of the chart does not exist, or the cluster refuses a spec; KubeError.
    """
    for plural, chart_object in _OF_THE_CHART.items():
        specs = dict(objects.get(plural, {}))
        if not specs.get(chart_object):
            specs.pop(chart_object, None)  # without configured fields it is left alone
        for name, spec in specs.items():
            _apply(api, plural, name, spec)
        api.restart_limits(_SECONDS_A_KIND)
        labelled = api.find(f"{_path(plural)}?labelSelector={_LABEL}") or {}  # None without the CRD
        for item in labelled.get("items") or []:
            name = item["metadata"]["name"]
            if name in specs:
                continue
            if name == chart_object:
                api.patch(_path(plural, name), _without_ours(item))
            else:
                api.delete(_path(plural, name))


def _apply(api: Api, plural: str, name: str, spec: Object) -> None:
    """Apply a spec; first wait for an object that KAI's chart creates, such as kai-config.

    Fields that others own are taken over. What the cluster refuses is tried again. Raises
    NotReadyError after a minute.
    """
    kind = _KINDS[plural]
    path = _path(plural, name)
    body = {
        "apiVersion": "kai.scheduler/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": {_LABEL: "true"}},
        "spec": spec,
    }

    def missing() -> list[str]:
        """Apply the spec, or say which object of the chart is still missing. Raises KubeError."""
        if name == _OF_THE_CHART[plural] and api.find(path) is None:
            return [f"{plural}.kai.scheduler/{name}, which KAI's chart makes"]
        api.patch(path, body, APPLY_PATCH, fieldManager=MANAGER, force="true")
        return []

    how_to_look = f"kubectl get {plural}.kai.scheduler {name} -o yaml"
    until_ready(api, f"{kind} {name}", missing, _APPLY_TIMEOUT_SECONDS, how_to_look)


def _without_ours(item: Object) -> Object:
    """A merge patch that removes our label and all fields that were applied under MANAGER.

    An empty apply would do so, too. But if no other field is left it leaves `spec: null`, which the
    API server refuses.
    """
    # The UID guards a new object of the same name, created since the object was read.
    metadata: Object = {"uid": item["metadata"]["uid"], "labels": {_LABEL: None}}
    patch: Object = {"metadata": metadata}
    for entry in item["metadata"].get("managedFields") or []:
        if entry.get("manager") == MANAGER:
            patch["spec"] = _nulls(get(entry, "fieldsV1", "f:spec") or {})
    return patch


def _nulls(fields: Object) -> Object:
    """Null for each field in a `fieldsV1`; of a mapping only for the fields that were set in it.

    A "." among the fields says that the mapping itself was set, too: then it becomes null.
    """
    nulls: Object = {}
    for name, below in fields.items():
        if name.startswith("f:"):
            is_partly_ours = below and "." not in below
            nulls[name.removeprefix("f:")] = _nulls(below) if is_partly_ours else None
    return nulls


def _path(plural: str, name: str = "") -> str:
    return f"/apis/kai.scheduler/v1/{plural}/{name}".rstrip("/")
