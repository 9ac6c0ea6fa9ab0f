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
    reported: list[str] = []
    assert lifecycle.up(reported.append) == sandbox
    assert pids(sandbox) == before
    assert reported[-1] == "the control plane is up already"
    assert lifecycle.find() == sandbox


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
    reported: list[str] = []
    lifecycle.up(reported.append)
    after = pids(sandbox)
    assert "kube-apiserver" in reported[-1]
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
