"""`fleet-probe vcluster`: wait for a vCluster, then print its API's address.

Ready means: its Service has an address, its Secret is written, and its API answers there.
"""

import os
from contextlib import closing

from kai_fleet.cluster.address import address_of
from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError, explain, of_secret
from kai_fleet.probes.wait import NotReadyError, cluster, control_plane_kind, say, until_ready
from kubectl_fleet.kube.api import Api
from kubectl_fleet.kube.text import plain
from kubectl_fleet.live.objects import KubeObject


def wait() -> None:
    """Print `https://…` on stdout, everything else on stderr."""
    name, namespace = os.environ["VCLUSTER_NAME"], os.environ["VCLUSTER_NAMESPACE"]
    access, host = os.environ["VCLUSTER_ACCESS"], os.environ.get("VCLUSTER_HOST") or None
    api, here = cluster(), f"/api/v1/namespaces/{namespace}"
    address = ""

    def missing() -> list[str]:
        nonlocal address
        place = address_of(api.get(f"{here}/services/{name}"), access, host)
        if place is None:
            return [f"an address for Service {name} of type {access}"]
        address = f"https://{place}"
        secret = api.find(f"{here}/secrets/vc-{name}")
        if secret is None:
            return [f"Secret vc-{name}", *_without_node(api, name, namespace)]
        try:
            return _not_answering(of_secret(secret.get("data") or {}, address, name))
        except TenantKubeconfigError as error:
            if error.foreign:
                workload = control_plane_kind(api, name, namespace)
                raise NotReadyError(explain(name, namespace, error, workload)) from None
            return [f"the way in in Secret vc-{name}, which {error}"]

    until_ready(
        f"vCluster {name}",
        missing,
        float(os.environ["VCLUSTER_TIMEOUT"]),
        f"kubectl -n {namespace} get pods and kubectl -n {namespace} logs -l"
        f" app=vcluster,release={name}",
    )
    _warn_if_no_node(api, name)
    print(address)


def _without_node(api: Api, name: str, namespace: str) -> list[str]:
    """Why the control plane's pods have no node, in the scheduler's words."""
    path, labels = f"/api/v1/namespaces/{namespace}/pods", f"app=vcluster,release={name}"
    pods = map(KubeObject, api.list(path, labelSelector=labels))
    return [
        f"pod {pod.name} has no node ({plain(condition.get('message'), 300)})"
        for pod in pods
        if (condition := pod.condition("PodScheduled")).get("status") == "False"
    ]


def _warn_if_no_node(api: Api, name: str) -> None:
    """Warn of a pool without a Ready node. It is no error: it may scale from zero (V16)."""
    pool = os.environ.get("VCLUSTER_NODE_POOL")
    if not pool:
        return
    nodes = api.list("/api/v1/nodes", labelSelector=pool)
    if not any(KubeObject(node).is_true("Ready") for node in nodes):
        say(
            f"warning: no Ready node has the labels {pool}: every pod of {name}, its DNS among"
            " them, stays Pending until one comes"
        )


def _not_answering(kubeconfig: str) -> list[str]:
    with closing(Api.of_kubeconfig(kubeconfig, seconds=5.0)) as api:
        api.get("/api/v1/namespaces", limit="1")
    return []
