"""The control plane of the sandbox, with its real parts."""

from pathlib import Path

import psutil
import pytest

from sandbox import lifecycle
from sandbox.lifecycle import Sandbox
from tests.engine.sandbox_commands import kubectl, marked, pids, until

pytestmark = pytest.mark.engine

HOST_PARTS = {
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
    "supervisor",
}


def test_a_second_up_starts_nothing(sandbox: Sandbox) -> None:
    lifecycle.up(print)  # tests that run a copy of the project had its own parts started
    before = pids(sandbox)
    assert set(before) >= HOST_PARTS
    said: list[str] = []
    assert lifecycle.up(said.append) == sandbox
    assert pids(sandbox) == before
    assert said[-1] == "the control plane is up already"
    assert lifecycle.find() == sandbox


def test_nodes_have_gpus_by_pool(sandbox: Sandbox) -> None:
    nodes = kubectl(sandbox, "get", "nodes", "-o", "json")["items"]
    gpus: dict[str, int] = {}
    for node in nodes:
        pool = node["metadata"]["labels"]["kai-fleet/pool"]
        gpu = node["status"]["allocatable"].get("nvidia.com/gpu", "0")
        gpus[pool] = gpus.get(pool, 0) + int(gpu)
        ready = [c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready"]
        assert ready == ["True"]
    assert gpus == {
        "system": 0,
        "ml": 16,
        "research": 16,
        "dev": 4,
        "vision": 8,
        "nlp": 8,
        "slices": 0,
    }


WORKLOADS = """
apiVersion: v1
kind: Namespace
metadata: {name: workloads}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: server, namespace: workloads}
spec:
  replicas: 2
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec:
      terminationGracePeriodSeconds: 0
      nodeSelector: {kai-fleet/pool: dev}
      initContainers: [{name: first, image: none}]
      containers: [{name: server, image: none, resources: {limits: {nvidia.com/gpu: 2}}}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: workloads}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: train, image: none}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: workloads}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""


def test_workloads_run_and_their_namespace_goes(sandbox: Sandbox) -> None:
    kubectl(sandbox, "apply", "-f", "-", stdin=WORKLOADS)
    here = ("-n", "workloads")
    kubectl(sandbox, *here, "wait", "deploy/server", "--for=condition=Available", "--timeout=60s")
    kubectl(sandbox, *here, "wait", "job/train", "--for=condition=Complete", "--timeout=60s")
    kubectl(sandbox, *here, "wait", "pvc/data", "--for=jsonpath={.status.phase}=Bound")
    # The pool's only node has four GPUs: a third replica finds none.
    kubectl(sandbox, *here, "scale", "deploy/server", "--replicas=3")
    until(
        lambda: [
            pod
            for pod in kubectl(sandbox, *here, "get", "pods", "-l", "app=server", "-o", "json")[
                "items"
            ]
            if any(
                "Insufficient nvidia.com/gpu" in condition.get("message", "")
                for condition in pod["status"].get("conditions", [])
            )
        ]
    )
    volume = kubectl(sandbox, *here, "get", "pvc/data", "-o", "json")["spec"]["volumeName"]
    kubectl(sandbox, "delete", "namespace", "workloads", "--timeout=60s")
    until(lambda: volume not in kubectl(sandbox, "get", "pv"))


STATEFUL_SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: late, namespace: default, labels: {app: vcluster}}
spec:
  replicas: 0
  selector: {matchLabels: {app: late}}
  template:
    metadata: {labels: {app: late}}
    spec: {containers: [{name: syncer, image: none}]}
"""


def test_up_restarts_what_died_and_the_supervisor_outlives_it(sandbox: Sandbox) -> None:
    before = pids(sandbox)
    psutil.Process(before["kube-apiserver"]).kill()
    said: list[str] = []
    lifecycle.up(said.append)
    after = pids(sandbox)
    assert "kube-apiserver" in said[-1]
    assert set(after) == set(before)
    assert after["supervisor"] == before["supervisor"]
    kubectl(sandbox, "apply", "-f", "-", stdin=STATEFUL_SET)
    log = sandbox.directory / "logs" / "supervisor.log"
    until(lambda: "vCluster default/late: starting" in log.read_text())
    kubectl(sandbox, "delete", "statefulset", "late")
    until(lambda: "vCluster default/late: removed" in log.read_text())


def test_down_leaves_nothing(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "second"
    monkeypatch.setenv("KAI_FLEET_SANDBOX", str(mine))
    second = lifecycle.up(print)  # beside the first: each has ports of its own
    assert len(marked(mine)) == len(HOST_PARTS)
    psutil.Process(pids(second)["etcd"]).kill()  # half dead, it must go all the same
    lifecycle.down(print)
    assert marked(mine) == []
    assert not mine.exists()
    assert lifecycle.find() is None
    lifecycle.down(print)  # again: nothing to do, nothing wrong
    assert set(pids(sandbox)) >= HOST_PARTS
