"""`fleet-probe kai wait|clean-up`: around one KAI release.

wait: every deployment of that version is rolled out, its objects say Ready, and a Queue is
accepted. clean-up: remove what uninstalling that version would leave in the way.
"""

import os
from typing import Final

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import RefusedError
from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.cluster.probes.wait import NotReadyError, cluster, say, until_ready
from kai_fleet.cluster.provider import queues
from kai_fleet.releases.keys import KAI_NAMESPACE

# What the operator's objects belong to. The chart keeps its shard when it is uninstalled, and
# any operator makes a scheduler from it, also one whose chart brings its own.
_OWNERS: Final = {"configs": "kai-config", "schedulingshards": "default"}
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
    api = cluster()
    deployments, conditions = (
        [name for name in os.environ.get(variable, "").split(",") if name]
        for variable in ("KAI_DEPLOYMENTS", "KAI_CONDITIONS")
    )

    def missing() -> list[str]:
        return (
            _not_rolled_out(api, deployments)
            or [f"{name} (not Ready)" for name in conditions if not _is_ready(api, name)]
            or _queue_refused(api)
        )

    until_ready(
        f"KAI {os.environ['KAI_VERSION']}",
        missing,
        float(os.environ["KAI_TIMEOUT"]),
        f"kubectl -n {KAI_NAMESPACE} get pods,jobs and kubectl -n {KAI_NAMESPACE} get events",
    )


def clean_up() -> None:
    """Delete `kai-config` and the chart's shard, and wait until what they own is gone.

    Otherwise uninstalling leaves Fail-policy webhooks without a server, and no pod can be made
    in the whole cluster; and the shard's scheduler, which would run beside the next version's.
    """
    if os.environ.get("KAI_CONFIG") != "remove":
        return
    api = cluster()
    for plural, name in _OWNERS.items():
        try:
            if api.delete(f"/apis/kai.scheduler/v1/{plural}/{name}"):
                say(f"deleted {plural}.kai.scheduler/{name}")
        except RefusedError as error:
            raise NotReadyError(
                f"{plural}.kai.scheduler/{name} cannot be deleted: {error.message or error.reason}"
            ) from None
    until_ready(
        "the removal of what KAI's operator made",
        lambda: [*_kai_webhooks(api), *_operands(api)],
        60,
        f"kubectl -n {KAI_NAMESPACE} get deployments and"
        " kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
    )


def _operands(api: Api) -> list[str]:
    """The deployments that go with their owner, not with the Helm release."""
    return [
        f"deployment {item['metadata']['name']}"
        for item in api.list(_DEPLOYMENTS)
        for owner in item["metadata"].get("ownerReferences", [])
        if owner["apiVersion"].startswith("kai.scheduler/") and owner["name"] in _OWNERS.values()
    ]


def _kai_webhooks(api: Api) -> list[str]:
    return [
        f"webhook {item['metadata']['name']}"
        for kind in ("validating", "mutating")
        for item in api.list(_WEBHOOKS.format(kind))
        for hook in item.get("webhooks", [])
        if (hook["clientConfig"].get("service") or {}).get("namespace") == KAI_NAMESPACE
    ]


def _not_rolled_out(api: Api, names: list[str]) -> list[str]:
    """Deployments that are absent or not rolled out, with hook jobs whose pod has no node: helm
    hangs on them until its timeout.
    """
    present = {(own := KubeObject(item)).name: own for item in api.list(_DEPLOYMENTS)}
    left = []
    for name in names:
        found = present.get(name)
        if found is None:
            left.append(f"deployment {name} (absent)")
        # As `kubectl rollout status`: a pod of the old version still counts as available.
        elif (
            not found.rolled_out
            or found.status.get("replicas", 0) > found.status["updatedReplicas"]
        ):
            left.append(f"deployment {name}")
    pods = api.list(_PODS, labelSelector="job-name") if left else []
    return left + [
        f"job {pod.labels['job-name']} (its pod is Pending: no node has room for it)"
        for pod in map(KubeObject, pods)
        if pod.phase == "Pending" and not pod.spec.get("nodeName")
    ]


def _is_ready(api: Api, reference: str) -> bool:
    """Whether `plural.group/name` exists and is Ready at its newest generation."""
    kind, name = reference.split("/")
    plural, group = kind.split(".", 1)
    item = api.find(f"/apis/{group}/v1/{plural}/{name}")
    return item is not None and KubeObject(item).is_ready


def _queue_refused(api: Api) -> list[str]:
    """Why a Queue is refused, by a dry run, which calls the webhook, too; empty if it is not."""
    try:
        api.post(queues.PATH, _QUEUE, dryRun="All")
    except RefusedError as error:
        return [f"a Queue is refused ({error.message or error.reason})"]
    return []
