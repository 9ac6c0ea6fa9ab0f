"""The doctor on a stack of the sandbox: green when it is well, else the cause of what is broken."""

import pytest
import urllib3
from kubernetes import client

from kai_fleet_cli.doctor.checks import leftovers
from kai_fleet_cli.doctor.diagnosis import diagnose
from kai_fleet_policies.finding import Level
from tests.engine import broken_things as things
from tests.engine.sandbox_commands import until

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]


def ill():
    """What is broken, and what tenants did wrong."""
    levels = (Level.MANDATORY, Level.INFO)
    return [finding for finding in diagnose("sandbox").findings if finding.level in levels]


def finds(check, *words):
    """Until the doctor has a finding of a check that has all the words; others it may have too."""

    def found():
        ill_ones = [str(f.record()) for f in ill() if f.check == check and f.fix]
        return any(all(word in each for word in words) for each in ill_ones)

    assert until(found, 15)


@pytest.fixture(autouse=True)
def repaired(ml):
    """Every test takes back what it broke, so the next one starts from a healthy stack."""
    yield
    assert until(lambda: not ill(), 30)


def test_a_good_stack_is_healthy_and_nothing_is_written(ml, monkeypatch):
    verbs = []
    real = urllib3.PoolManager.request

    def noted(self, method, url, **more):
        verbs.append((method, url))
        return real(self, method, url, **more)

    monkeypatch.setattr(urllib3.PoolManager, "request", noted)
    found = diagnose("sandbox")
    assert [f for f in found.findings if f.level is Level.MANDATORY] == []
    assert int(found.exit_code) == 0
    well = {f.check for f in found.findings if f.level is Level.OK}
    assert well >= {"nodes", "vcluster", "kai-parts", "isolation", "queues", "pending"}
    assert {verb for verb, _ in verbs} == {"GET"}
    assert len(verbs) > 30


def test_what_is_broken_at_once_is_told_each_by_its_cause(ml, host, monkeypatch):
    """Every cause by itself: tests/unit/cli/doctor/checks."""
    monkeypatch.setattr(leftovers, "STUCK_SECONDS", 0.0)
    core, inside = client.CoreV1Api(host), client.CoreV1Api(ml)
    nodes = core.list_node(label_selector="kai-fleet/pool=ml").items
    inside.create_namespace({"metadata": {"name": "stuck"}})
    holds = {"metadata": {"name": "holds", "finalizers": ["kai-fleet/test"]}}
    inside.create_namespaced_config_map("stuck", holds)
    inside.delete_namespace("stuck")
    taken = things.kai_pod("holds", "serve", gpus="4", node=nodes[0].metadata.name)
    own = {"kai.scheduler/gpu-fraction": "0.5"}
    pods = (
        taken,
        things.kai_pod("lost", "nosuch"),
        things.kai_pod("alike", "train", annotations=own),
        things.kai_pod("waits", "serve", gpus="1"),
        things.kai_pod("large", "serve", gpus="5"),
    )
    back = {"parentQueue": "default"}
    try:
        with things.pods(ml, *pods):
            finds("leftovers", "stuck", "kai-fleet/test")
            finds("workload-leaf-queue", "default/lost", "queue nosuch is not there")
            finds("workload-known-keys", "default/alike", "write the annotation gpu-fraction")
            finds("pending", "default/waits", "queue serve holds 4 of at most 4")
            finds("pending", "default/large", "queue serve may hold at most 4 GPUs: it never runs")
            with things.changed(ml, things.QUEUES, "serve", {"parentQueue": "nosuch"}, back):
                finds("queues", "serve", "its parent nosuch is not there")
            for node in nodes:
                core.patch_node(node.metadata.name, {"spec": {"unschedulable": True}})
            finds("nodes", "is cordoned", "uncordon")
    finally:
        inside.patch_namespaced_config_map("holds", "stuck", {"metadata": {"finalizers": None}})
        for node in nodes:
            core.patch_node(node.metadata.name, {"spec": {"unschedulable": None}})
