"""A cluster that goes away, is full, or refuses, while an update runs on it."""

import re
import signal
import time

import psutil
import pytest
from kubernetes import client

from sandbox.control_plane.etcd import Etcd
from sandbox.control_plane.ports import Ports
from sandbox.directory import read_state
from tests.faults.case import client_of
from tests.faults.desired import BEGUN, converge, switched, with_ml, without_ml

pytestmark = [pytest.mark.slow, pytest.mark.faults, pytest.mark.timeout(600)]


def test_the_api_server_is_killed_and_comes_back(case, reference, foreign):
    case.edit(without_ml)
    converge(case)
    case.edit(with_ml)
    running = case.start("up")
    running.wait_for("Namespace ml-namespace created")
    case.part("kube-apiserver").kill()
    case.sandbox_up()
    # What Kubernetes' quota controller misses meanwhile it takes up again after 5 minutes.
    ran = running.end(360)
    assert "Traceback" not in ran.reported
    if ran.code != 0:
        assert "run the same command again" in ran.last, ran.reported
    reported = converge(case)
    assert reference.differences(case, "added") == [], "\n".join([ran.reported, *reported])


def test_etcd_is_full(case, reference, foreign):
    """An update's writes are refused, until somebody takes the alarm off.

    From its first write on: where only KAI's operator has anything left to write, nobody tells
    the update, and it waits for KAI as long as for any other reason.
    """
    case.edit(with_ml)
    converge(case)
    case.edit(switched)
    running = case.start("up")
    running.wait_for(BEGUN)
    _alarm(case, "ACTIVATE")
    try:
        full = running.end()
    finally:
        _alarm(case, "DEACTIVATE")
    assert full.code == 1
    assert "Traceback" not in full.reported
    assert "is full" in full.last, full.reported
    converge(case)
    assert reference.differences(case, "switched") == []


def test_etcds_disk_is_full(case, reference, foreign):
    """None of etcd's files takes another byte: it ends, and nobody can read or write anything."""
    case.edit(with_ml)
    converge(case)
    case.edit(switched)
    running = case.start("up")
    running.wait_for(BEGUN)
    case.part("etcd").rlimit(psutil.RLIMIT_FSIZE, (0, 0))
    try:
        full = running.end()
    finally:
        case.sandbox_up()  # there is room again, and it is started
    assert full.code == 1
    assert "Traceback" not in full.reported
    assert re.search("etcd behind it is away|API of its vCluster does not", full.last), (
        full.reported
    )
    converge(case)
    assert reference.differences(case, "switched") == []


def test_a_vclusters_api_vanishes(case, reference, foreign):
    case.edit(with_ml)
    case.up()
    supervisor = case.part("supervisor")
    supervisor.send_signal(signal.SIGSTOP)
    try:
        case.part("vcluster-team-ml.ml-kube-apiserver").kill()
        case.edit(switched)
        gone = case.fleet("up")
        assert gone.code == 1
        assert "the API of its vCluster does not answer" in gone.last, gone.reported
        assert "Traceback" not in gone.reported
    finally:
        supervisor.send_signal(signal.SIGCONT)
    with client_of(case.inside("ml")) as api:
        _until(lambda: client.CoreV1Api(api).list_namespace(limit=1, _request_timeout=5))
    converge(case)
    assert reference.differences(case, "switched") == []


def _until(answered):
    """Ask until there is an answer."""
    until = time.monotonic() + 60
    while True:
        try:
            return answered()
        except Exception:
            assert time.monotonic() < until
            time.sleep(0.5)


def _alarm(case, action):
    """Set etcd's alarm for a full disk, or take it off: with it, etcd refuses every write."""
    state = read_state(case.sandbox)
    etcd = Etcd(case.sandbox, Ports(state.base_port))
    gateway = etcd.client()
    status = gateway.post("/v3/maintenance/status", {})
    body = {"action": action, "memberID": status["header"]["member_id"], "alarm": "NOSPACE"}
    gateway.post("/v3/maintenance/alarm", body)
