"""`run vcluster`: wait for a vCluster, then print its API's address.

Ready means: its Service has an address, its Secret is written, and its API answers there.
"""

from __future__ import annotations

import os

import yaml
from kubernetes import client, config

from components.kubeconfig import decoded, pointed_at
from components.probes.wait import cluster, reported, say, until_ready


@reported
def main() -> None:
    """Print `https://…` on stdout, everything else on stderr."""
    name, namespace = os.environ["VCLUSTER_NAME"], os.environ["VCLUSTER_NAMESPACE"]
    core = client.CoreV1Api(cluster())
    address = ""

    def missing() -> list[str]:
        nonlocal address
        found = _address(core.read_namespaced_service(name, namespace))
        if found is None:
            return [f"an address for Service {name} of type {os.environ['VCLUSTER_ACCESS']}"]
        address = f"https://{found}"
        secrets = core.list_namespaced_secret(
            namespace, field_selector=f"metadata.name=vc-{name}"
        ).items
        if not secrets:
            return [f"Secret vc-{name}", *_without_node(core, name, namespace)]
        return _not_answering(pointed_at(decoded(secrets[0].data), address), address)

    until_ready(
        f"vCluster {name}",
        missing,
        float(os.environ["VCLUSTER_TIMEOUT"]),
        f"kubectl -n {namespace} get pods and kubectl -n {namespace} logs {name}-0",
    )
    _say_if_no_node(core, name)
    print(address)


def _without_node(core: client.CoreV1Api, name: str, namespace: str) -> list[str]:
    """Why the control plane's pods have no node, in the scheduler's words."""
    pods = core.list_namespaced_pod(namespace, label_selector=f"app=vcluster,release={name}").items
    return [
        f"pod {pod.metadata.name} has no node ({condition.message})"
        for pod in pods
        for condition in pod.status.conditions or []
        if condition.type == "PodScheduled" and condition.status == "False"
    ]


def _say_if_no_node(core: client.CoreV1Api, name: str) -> None:
    """A pool without a Ready node is no error, it may scale from zero; but it is said (V16)."""
    pool = os.environ.get("VCLUSTER_NODE_POOL")
    if not pool:
        return
    ready = [
        node
        for node in core.list_node(label_selector=pool).items
        for condition in node.status.conditions or []
        if condition.type == "Ready" and condition.status == "True"
    ]
    if not ready:
        say(
            f"warning: no Ready node has the labels {pool}: every pod of {name}, its DNS among"
            " them, stays Pending until one comes"
        )


def _address(service: client.V1Service) -> str | None:
    """`host:port` from where Pulumi runs, by the Service's type; None while it has none."""
    host = os.environ.get("VCLUSTER_HOST") or None
    port = service.spec.ports[0]
    match os.environ["VCLUSTER_ACCESS"]:
        case "NodePort":
            return f"{host}:{port.node_port}" if port.node_port else None
        case "LoadBalancer":
            entries = service.status.load_balancer.ingress or []
            given = next((entry.hostname or entry.ip for entry in entries), None)
            return f"{host or given}:{port.port}" if given else None
    return f"{service.metadata.name}.{service.metadata.namespace}.svc:{port.port}"


def _not_answering(kubeconfig: str, address: str) -> list[str]:
    with config.new_client_from_config_dict(yaml.safe_load(kubeconfig)) as api:
        client.CoreV1Api(api).list_namespace(limit=1, _request_timeout=5)
    return []


if __name__ == "__main__":
    main()
