"""The doctor on a stack of the sandbox: green when it is well, else the cause of what is broken."""

import contextlib
import time
from dataclasses import replace

import pytest
import urllib3
import yaml
from kubernetes import client

from kai_fleet.finding import Level
from kai_fleet_cli.doctor.checks import leftovers
from kai_fleet_cli.doctor.diagnosis import diagnose
from tests.engine import broken_things as things

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]


def ill():
    return [finding for finding in diagnose("sandbox").findings if finding.level is Level.MANDATORY]


def says(check, *words, level=Level.MANDATORY):
    """The doctor's findings of a check that has all the words; it may need a moment to show."""
    ends = time.monotonic() + 15
    while True:
        found = [finding for finding in diagnose("sandbox").findings if finding.level is level]
        said = [f for f in found if f.check == check and all(w in str(f.record()) for w in words)]
        if said or time.monotonic() > ends:
            assert said, "\n".join(str(f.record()) for f in found)
            assert all(finding.fix for finding in said)
            return
        time.sleep(0.5)


@pytest.fixture(autouse=True)
def repaired(ml):
    """Every test takes back what it broke, so the next one starts from a healthy stack."""
    yield
    ends = time.monotonic() + 30
    while (left := ill()) and time.monotonic() < ends:
        time.sleep(0.5)
    assert left == []


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


def test_it_needs_no_more_than_get_and_list(ml, host, one_team):
    """By a user of the host who may do nothing else."""
    core, rbac = client.CoreV1Api(host), client.RbacAuthorizationV1Api(host)
    name = "kai-fleet-doctor-test"
    role = {
        "metadata": {"name": name},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}],
    }
    binding = {
        "metadata": {"name": name},
        "roleRef": {"kind": "ClusterRole", "name": name, "apiGroup": "rbac.authorization.k8s.io"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    from kai_fleet.kube.api import Api
    from kai_fleet.kube.errors import RefusedError
    from kai_fleet_cli.doctor.read import of_stack, read_clusters

    core.create_namespaced_service_account("default", {"metadata": {"name": name}})
    rbac.create_cluster_role(role)
    rbac.create_cluster_role_binding(binding)
    try:
        token = core.create_namespaced_service_account_token(
            name, "default", {"spec": {"expirationSeconds": 600}}
        ).status.token
        document = yaml.safe_load(one_team.sandbox.kubeconfig.read_text())
        for user in document["users"]:
            user["user"] = {"token": token}
        limited = yaml.safe_dump(document)
        with pytest.raises(RefusedError):  # it is that user who asks
            Api.of_kubeconfig(limited).post(
                "/api/v1/namespaces", {"metadata": {"name": "kai-fleet-doctor-test"}}
            )
        source = replace(of_stack("sandbox"), host=lambda: Api.of_kubeconfig(limited))
        look = read_clusters(source)
        assert dict(look.host.unreadable) == {}
        assert look.teams["ml"].inside is not None
    finally:
        rbac.delete_cluster_role_binding(name)
        rbac.delete_cluster_role(name)
        core.delete_namespaced_service_account(name, "default")


def test_a_queue_below_nothing(ml):
    back = {"parentQueue": "default"}
    with things.changed(ml, things.QUEUES, "serve", {"parentQueue": "nosuch"}, back):
        says("queues", "serve", "its parent nosuch is not there")


def test_an_api_that_is_not_reached(product):
    def to(host):
        def edit(config):
            config["kai-fleet:vcluster"]["access"]["host"] = host

        return edit

    product.edit(to("127.0.0.9"))
    try:
        says("vcluster", "its API: ", "logs ml-0")
        assert int(diagnose("sandbox").exit_code) == 1
    finally:
        product.edit(to("127.0.0.1"))


@contextlib.contextmanager
def cordoned(host, pool):
    core = client.CoreV1Api(host)
    names = [n.metadata.name for n in core.list_node(label_selector=pool).items]
    for name in names:
        core.patch_node(name, {"spec": {"unschedulable": True}})
    try:
        yield
    finally:
        for name in names:
            core.patch_node(name, {"spec": {"unschedulable": None}})


def test_no_node_of_the_pool_takes_pods(host):
    with cordoned(host, "kai-fleet/pool=ml"):
        says("nodes", "kai-fleet/pool=ml", "none of the 2 nodes with these labels is Ready")


def test_no_gpus(host):
    core = client.CoreV1Api(host)
    nodes = core.list_node(label_selector="kai-fleet/pool=ml").items
    for node in nodes:
        core.patch_node_status(
            node.metadata.name, {"status": {"allocatable": {"nvidia.com/gpu": "0"}}}
        )
    try:
        says("nodes", "kai-fleet/pool=ml", "advertise no nvidia.com/gpu")
    finally:
        for node in nodes:
            amount = node.status.allocatable["nvidia.com/gpu"]
            core.patch_node_status(
                node.metadata.name, {"status": {"allocatable": {"nvidia.com/gpu": amount}}}
            )


def test_a_namespace_that_does_not_go(ml, monkeypatch):
    monkeypatch.setattr(leftovers, "STUCK", 0.0)
    core = client.CoreV1Api(ml)
    core.create_namespace({"metadata": {"name": "stuck"}})
    core.create_namespaced_config_map(
        "stuck", {"metadata": {"name": "holds", "finalizers": ["kai-fleet/test"]}}
    )
    core.delete_namespace("stuck")
    try:
        says("leftovers", "stuck", "kai-fleet/test")
    finally:
        core.patch_namespaced_config_map("holds", "stuck", {"metadata": {"finalizers": None}})


@pytest.mark.parametrize(
    ("pod", "check", "words"),
    [
        (things.kai_pod("p", "nosuch"), "workload-leaf-queue", "names queue nosuch"),
        (things.kai_pod("p", "default"), "workload-leaf-queue", "which has children"),
        (things.kai_pod("p", None), "workload-leaf-queue", "names no queue"),
        (
            things.kai_pod("p", "train", annotations={"kai.scheduler/gpu-fraction": "0.5"}),
            "workload-known-keys",
            "write the annotation gpu-fraction",
        ),
        (
            things.kai_pod("p", "serve", gpus="5"),
            "pending",
            "queue serve may hold at most 4: it never runs",
        ),
    ],
    ids=["absent", "parent", "no queue", "look-alike", "over the limit"],
)
def test_a_pod_that_waits(ml, pod, check, words):
    with things.pods(ml, pod):
        says(check, "default/p", words)


def test_a_full_queue(ml):
    node = client.CoreV1Api(ml).list_node().items[0].metadata.name
    holds = things.kai_pod("holds", "serve", gpus="4", node=node)
    with things.pods(ml, holds, things.kai_pod("waits", "serve", gpus="1")):
        says("pending", "default/waits", "queue serve holds 4 of at most 4")
