"""A vCluster of the sandbox: a Kubernetes API of its own for a release of the chart."""

import base64
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import yaml

from sandbox.lifecycle import Sandbox
from tests.engine.sandbox_commands import keys, kubectl, pids, run, until

pytestmark = pytest.mark.engine


@pytest.fixture
def team(sandbox: Sandbox) -> Iterator[str]:
    """The namespace of a vCluster `blue` for the pool ml, made from the chart with Helm."""
    values = {
        "controlPlane": {
            "service": {"spec": {"type": "NodePort"}},
            "distro": {"k8s": {"scheduler": {"enabled": True}}},
            "proxy": {"extraSANs": ["blue.team-blue.svc"]},
        },
        "sync": {
            "fromHost": {
                "nodes": {"enabled": True, "selector": {"labels": {"kai-fleet/pool": "ml"}}},
                "runtimeClasses": {"enabled": True},
            }
        },
    }
    kubectl(
        sandbox,
        "apply",
        "-f",
        "-",
        stdin="{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: nvidia}, "
        "handler: nvidia}",
    )
    run(
        sandbox,
        *("helm", "install", "blue", str(sandbox.directory / "charts" / "vcluster-0.36.1.tgz")),
        *("--namespace", "team-blue", "--create-namespace", "--values", "-"),
        stdin=yaml.safe_dump(values),
    )
    yield "team-blue"
    kubectl(sandbox, "delete", "namespace", "team-blue", "--ignore-not-found", "--timeout=60s")
    kubectl(sandbox, "delete", "runtimeclass", "nvidia")


def inner_kubeconfig(sandbox: Sandbox, namespace: str, path: Path) -> Path:
    """The kubeconfig of the Secret, pointed at the node port as the program does."""
    secret = until(
        lambda: (
            kubectl(sandbox, "-n", namespace, "get", "secret", "-l", "app=vcluster", "-o", "json")
            and [
                item
                for item in kubectl(sandbox, "-n", namespace, "get", "secrets", "-o", "json")[
                    "items"
                ]
                if item["metadata"]["name"] == "vc-blue"
            ]
        )
    )[0]
    config = yaml.safe_load(base64.b64decode(secret["data"]["config"]))
    assert config["clusters"][0]["cluster"]["server"] == "https://localhost:8443"
    assert set(secret["data"]) >= {"certificate-authority", "client-certificate", "client-key"}
    service = kubectl(sandbox, "-n", namespace, "get", "service", "blue", "-o", "json")
    port = service["spec"]["ports"][0]["nodePort"]
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    path.write_text(yaml.safe_dump(config))
    return path


def test_a_vcluster_from_its_chart(sandbox: Sandbox, team: str, tmp_path: Path) -> None:
    inner = {"KUBECONFIG": str(inner_kubeconfig(sandbox, team, tmp_path / "kubeconfig"))}
    # The Secret is there only when the API answers, so the first request must succeed.
    assert "ok" in kubectl(sandbox, "get", "--raw", "/readyz", **inner)

    def nodes() -> set[str]:
        items = kubectl(sandbox, "get", "nodes", "-o", "json", **inner)["items"]
        return {item["metadata"]["name"] for item in items}

    until(lambda: nodes() == {"ml-1", "ml-2"})
    assert "nvidia" in until(lambda: kubectl(sandbox, "get", "runtimeclass", **inner))
    kubectl(sandbox, "create", "deployment", "web", "--image=none", **inner)
    kubectl(sandbox, "wait", "deploy/web", "--for=condition=Available", "--timeout=60s", **inner)
    kubectl(sandbox, "-n", team, "wait", "pod/blue-0", "--for=condition=Ready", "--timeout=60s")
    # A label that the host's node gets reaches the vCluster.
    kubectl(sandbox, "label", "node", "ml-1", "zone=a")
    until(lambda: "ml-1" in kubectl(sandbox, "get", "nodes", "-l", "zone=a", **inner))
    kubectl(sandbox, "label", "node", "ml-1", "zone-")

    processes = [name for name in pids(sandbox) if name.startswith("vcluster-team-blue.blue-")]
    assert len(processes) == 4
    assert keys(sandbox, "/vclusters/team-blue.blue") > 0

    # A dead API server of a vCluster comes back by itself, with what it held.
    psutil.Process(pids(sandbox)["vcluster-team-blue.blue-kube-apiserver"]).kill()
    until(
        lambda: (
            "web"
            in subprocess.run(
                ["kubectl", "get", "deploy"],
                env={**os.environ, **sandbox.env(), **inner},
                capture_output=True,
                text=True,
                check=False,
            ).stdout
        )
    )

    run(sandbox, "helm", "uninstall", "blue", "--namespace", team, "--wait")
    until(lambda: not [name for name in pids(sandbox) if name.startswith("vcluster-")])
    until(lambda: keys(sandbox, "/vclusters/team-blue.blue") == 0)
    secrets = kubectl(sandbox, "-n", team, "get", "secrets", "-o", "json")["items"]
    assert "vc-config-blue" not in {item["metadata"]["name"] for item in secrets}
    assert not list((sandbox.directory / "vclusters").iterdir())
