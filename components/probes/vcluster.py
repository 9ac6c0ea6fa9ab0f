"""`python -m components.probes.vcluster`: wait for a vCluster, then print its API's address.

Ready means: its Service has an address, its Secret is written, and its API answers there.
"""

from __future__ import annotations

import os

import yaml
from kubernetes import client, config

from components.kubeconfig import decoded, pointed_at
from components.probes.wait import cluster, run, until_ready


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
            return [f"Secret vc-{name}"]
        return _not_answering(pointed_at(decoded(secrets[0].data), address), address)

    until_ready(
        f"vCluster {name}",
        missing,
        float(os.environ["VCLUSTER_TIMEOUT"]),
        f"kubectl -n {namespace} get pods and kubectl -n {namespace} logs {name}-0",
    )
    print(address)


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
    run(main)
