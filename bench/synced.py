"""The pods that a real vCluster has on its host, which the sandbox's does not bring there.

A removal ends them too, and Kubernetes takes its time over a namespace with pods in it.
"""

import json
from functools import partial

from bench.shell import kubectl, until
from kubectl_fleet.releases import KAI
from sandbox.lifecycle import Sandbox
from sandbox.nodes.fake_nodes import POOL_LABEL


def synced(sandbox: Sandbox, namespace: str, pool: str, version: str) -> None:
    """Have those of a team with this KAI and nothing else: one per deployment, and its DNS."""
    names = ["coredns", *KAI[version].deployments]
    items = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-x-inside", "namespace": namespace},
            "spec": {
                "nodeSelector": {POOL_LABEL: pool},
                "containers": [{"name": "main", "image": "synced"}],
            },
        }
        for name in names
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    kubectl(sandbox, "create", "-f", "-", stdin=text)
    until(partial(_all_have_nodes, sandbox, namespace))


def _all_have_nodes(sandbox: Sandbox, namespace: str) -> bool:
    pods = kubectl(sandbox, "-n", namespace, "get", "pods", "-o", "json")["items"]
    return all(pod["spec"].get("nodeName") for pod in pods)
