"""`run kai wait|clean-up`: around one KAI release.

wait: every deployment of that version is rolled out, its objects say Ready, and a Queue is
accepted. clean-up: remove what uninstalling that version would leave in the way.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from components.probes.wait import NotReady, cluster, reported, say, until_ready

NAMESPACE = "kai-scheduler"
# What the operator's objects belong to. The chart keeps its shard when it is uninstalled, and
# any operator makes a scheduler from it, also one whose chart brings its own.
_OWNERS = (("configs", "kai-config"), ("schedulingshards", "default"))
_QUEUE = ("scheduling.run.ai", "v2", "queues")


def wait(api: client.ApiClient) -> None:
    """Return when KAI works; a fraction pod made earlier would stay Pending for good (K16)."""
    version = os.environ["KAI_VERSION"]
    deployments = _listed("KAI_DEPLOYMENTS")
    conditions = _listed("KAI_CONDITIONS")

    def missing() -> list[str]:
        return (
            _deployments(api, deployments)
            or [f"{name} (not Ready)" for name in conditions if not _is_ready(api, name)]
            or _queue_refused(api)
        )

    until_ready(
        f"KAI {version}",
        missing,
        float(os.environ["KAI_TIMEOUT"]),
        f"kubectl -n {NAMESPACE} get pods,jobs and kubectl -n {NAMESPACE} get events",
    )


def clean_up(api: client.ApiClient) -> None:
    """Delete `kai-config` and the chart's shard, and wait until what they own is gone (K10).

    Otherwise uninstalling leaves Fail-policy webhooks without a server, and no pod can be made
    in the whole cluster; and the shard's scheduler, which would run beside the next version's.
    """
    if os.environ.get("KAI_CONFIG") != "remove":
        return
    for plural, name in _OWNERS:
        _delete(api, plural, name)
    until_ready(
        "the removal of what KAI's operator made",
        lambda: [*_kai_webhooks(api), *_operands(api)],
        60,
        f"kubectl -n {NAMESPACE} get deployments and"
        " kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
    )


def _delete(api: client.ApiClient, plural: str, name: str) -> None:
    try:
        client.CustomObjectsApi(api).delete_cluster_custom_object(
            "kai.scheduler", "v1", plural, name
        )
        say(f"deleted {plural}.kai.scheduler/{name}")
    except ApiException as why:
        if why.status != 404:
            raise NotReady(
                f"{plural}.kai.scheduler/{name} cannot be deleted: {why.reason}"
            ) from None


def _operands(api: client.ApiClient) -> list[str]:
    """The deployments that go with their owner, not with the Helm release."""
    found = client.AppsV1Api(api).list_namespaced_deployment(NAMESPACE).items
    return [
        f"deployment {item.metadata.name}"
        for item in found
        for owner in item.metadata.owner_references or []
        if owner.api_version.startswith("kai.scheduler/") and owner.name in dict(_OWNERS).values()
    ]


def _listed(variable: str) -> list[str]:
    return [name for name in os.environ.get(variable, "").split(",") if name]


def _deployments(api: client.ApiClient, names: list[str]) -> list[str]:
    """Those that are absent or not rolled out, each with the reason of a pod that hangs."""
    found = {
        item.metadata.name: item
        for item in client.AppsV1Api(api).list_namespaced_deployment(NAMESPACE).items
    }
    left = []
    for name in names:
        if name not in found:
            left.append(f"deployment {name} (absent)")
        elif not _rolled_out(found[name]):
            left.append(f"deployment {name}")
    return left + (_pending_jobs(api) if left else [])


def _rolled_out(item: Any) -> bool:
    """As `kubectl rollout status` judges: a pod of the old version still counts as available."""
    wanted = 1 if item.spec.replicas is None else item.spec.replicas
    status = item.status
    return (
        (status.observed_generation or 0) >= item.metadata.generation
        and (status.updated_replicas or 0) >= wanted
        and (status.replicas or 0) <= (status.updated_replicas or 0)
        and (status.available_replicas or 0) >= wanted
    )


def _pending_jobs(api: client.ApiClient) -> list[str]:
    """Hook jobs whose pod has no node: helm hangs on them until its timeout (K19)."""
    pods = client.CoreV1Api(api).list_namespaced_pod(NAMESPACE, label_selector="job-name")
    return [
        f"job {pod.metadata.labels['job-name']} (its pod is Pending: no node has room for it)"
        for pod in pods.items
        if pod.status.phase == "Pending" and not pod.spec.node_name
    ]


def _is_ready(api: client.ApiClient, what: str) -> bool:
    """Whether there is `plural.group/name` and its operator calls it Ready as it now is.

    After an upgrade the condition may still be about what was wanted before.
    """
    kind, name = what.split("/")
    plural, group = kind.split(".", 1)
    try:
        item: dict[str, Any] = client.CustomObjectsApi(api).get_cluster_custom_object(
            group, "v1", plural, name
        )
    except ApiException as why:
        if why.status == 404:
            return False
        raise
    generation = item["metadata"].get("generation")
    return any(
        c.get("type") == "Ready"
        and c.get("status") == "True"
        and c.get("observedGeneration", generation) == generation
        for c in item.get("status", {}).get("conditions", [])
    )


def _queue_refused(api: client.ApiClient) -> list[str]:
    """Ask for a Queue without making one: a dry run passes the webhook like the real thing."""
    body = {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"generateName": "kai-fleet-probe-"},
        "spec": {"resources": {}},
    }
    try:
        client.CustomObjectsApi(api).create_cluster_custom_object(*_QUEUE, body, dry_run="All")
    except ApiException as why:
        return [f"a Queue is refused ({why.reason or why.status})"]
    return []


def _kai_webhooks(api: client.ApiClient) -> list[str]:
    admission = client.AdmissionregistrationV1Api(api)
    webhooks = [
        *admission.list_validating_webhook_configuration().items,
        *admission.list_mutating_webhook_configuration().items,
    ]
    return [
        f"webhook {item.metadata.name}"
        for item in webhooks
        for hook in item.webhooks or []
        if hook.client_config.service and hook.client_config.service.namespace == NAMESPACE
    ]


@reported
def main() -> None:
    """The verb on the command line."""
    {"wait": wait, "clean-up": clean_up}[sys.argv[1]](cluster())


if __name__ == "__main__":
    main()
