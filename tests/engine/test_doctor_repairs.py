"""Each command that the doctor prints is run as it stands, and its finding is gone."""

import contextlib

import pytest
import yaml
from kubernetes import client

from kai_fleet_cli.doctor.checks import bounds, gpu
from kai_fleet_cli.engine.environment import SANDBOX_CONTEXT
from kai_usage.quantities import parse_quantity
from tests.engine import broken_things as things
from tests.engine.doctor_repairs import (
    LOOK,
    OF_KUBECONFIGS,
    REPAIR,
    Repair,
    eventually,
    shape,
)
from tests.unit.cli.doctor.doctor_cases import CASES, lab_of

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

HOST = f"--context {SANDBOX_CONTEXT}"


@pytest.fixture
def other_ever_after(place):
    """The stack is not as it was made: no other module uses it."""
    place.tenant = None


@pytest.fixture(scope="module")
def repair(product, one_team):
    return Repair(one_team)


@pytest.mark.slow
def test_a_kai_that_is_not_wanted_and_one_that_is_not_there(product, ml, repair):
    """One with a Config and a shard goes by one command; the stack's update brings the other."""

    def to(scheduler):
        def edit(config):
            config["kai-fleet:teams"]["ml"]["scheduler"] = scheduler
            if scheduler["mode"] == "default":
                edit.queues = config["kai-fleet:teams"]["ml"].pop("queues")
            else:
                config["kai-fleet:teams"]["ml"]["queues"] = edit.queues

        edit.queues = queues
        return edit

    queues = yaml.safe_load(product.file.read_text())["config"]["kai-fleet:teams"]["ml"]["queues"]
    product.edit(to({"mode": "virtual", "version": "v0.14.7"}))
    product.up()
    product.edit(to({"mode": "default"}))
    try:
        repair("leftovers", "the stack declares none")
    finally:
        product.edit(to({"mode": "virtual", "version": "v0.9.3"}))
    repair("kai-parts", "is not installed")


def test_a_part_of_kai_that_somebody_deleted(ml, repair):
    """One of the chart's: what the operator makes, it makes again by itself."""
    client.AppsV1Api(ml).delete_namespaced_deployment("kai-operator", "kai-scheduler")
    repair("kai-parts", "Deployment kai-operator is not there")
    off = {"spec": {"admission": {"gpuSharing": False}}}
    config = client.CustomObjectsApi(ml)
    config.patch_cluster_custom_object(*things.CONFIGS, "kai-config", off)
    repair("gpu-sharing", "somebody switched it off")


def test_a_scheduler_and_a_vcluster_that_are_scaled_to_0(ml, host, repair):
    none = {"spec": {"replicas": 0}}
    apps = client.AppsV1Api(ml)
    apps.patch_namespaced_deployment("binder", "kai-scheduler", none)
    repair("kai-parts", "Deployment binder is scaled to 0")
    client.AppsV1Api(host).patch_namespaced_stateful_set("ml", "team-ml", none)
    repair("vcluster", "vCluster ml is scaled to 0")


def test_queues_that_nobody_declared(ml, repair):
    objects = client.CustomObjectsApi(ml)
    for name, parent in (("default-queue", None), ("mine", "default"), ("below", "mine")):
        objects.create_cluster_custom_object(*things.QUEUES, things.queue(name, parent))
    repair("queues", "KAI's chart made it")
    limit = {"spec": {"resources": {"gpu": {"limit": 1}}}}
    objects.patch_cluster_custom_object(*things.QUEUES, "below", limit)
    with things.pods(ml, things.kai_pod("asks", "below", gpus="2")):
        repair("pending", "queue below may hold at most 1 GPU: it never runs")
    repair("queues", "somebody made it by hand")


def test_a_queue_that_a_finalizer_keeps(ml, repair):
    objects = client.CustomObjectsApi(ml)
    kept = things.queue("kept", None)
    kept["metadata"]["finalizers"] = ["example.com/kept"]
    objects.create_cluster_custom_object(*things.QUEUES, kept)
    objects.delete_cluster_custom_object(*things.QUEUES, "kept")
    repair("queues", "stays until its finalizers are gone: example.com/kept")


def test_a_queue_that_the_file_had(ml, repair):
    """An update that was killed left it: its tree has the label, and the state does not."""
    left = things.queue("left", None)
    left["metadata"]["labels"] = {"kai-fleet/tree": "ml-queues"}
    client.CustomObjectsApi(ml).create_cluster_custom_object(*things.QUEUES, left)
    repair("queues", "is left over from this stack")


@pytest.mark.slow
def test_what_old_releases_and_removed_teams_left(ml, host, repair):
    shard = {
        "apiVersion": "kai.scheduler/v1",
        "kind": "SchedulingShard",
        "metadata": {"name": "default"},
        "spec": {},
    }
    client.CustomObjectsApi(ml).create_cluster_custom_object(*things.SHARDS, shard)
    repair("leftovers", "a newer KAI left it")
    client.AdmissionregistrationV1Api(ml).create_validating_webhook_configuration(
        things.dead_webhook("left-behind")
    )
    repair("webhooks", "left-behind")
    client.AdmissionregistrationV1Api(ml).create_mutating_webhook_configuration(
        things.dead_webhook("left-behind-too")
    )
    repair("webhooks", "left-behind-too")
    release = {
        "meta.helm.sh/release-name": "old",
        "meta.helm.sh/release-namespace": "team-old",
    }
    client.RbacAuthorizationV1Api(host).create_cluster_role(
        {"metadata": {"name": "vc-old-v-team-old", "annotations": release}, "rules": []}
    )
    repair("leftovers", "ClusterRole vc-old-v-team-old")
    policy = {"metadata": {"name": "open"}, "spec": {"podSelector": {}, "ingress": [{}]}}
    client.NetworkingV1Api(host).create_namespaced_network_policy("team-ml", policy)
    repair("isolation", "NetworkPolicy team-ml/open")


@pytest.mark.parametrize("name", ["team-old", "theirs"])
def test_the_namespace_of_a_team_of_another_program_is_named_without_a_command(host, repair, name):
    core = client.CoreV1Api(host)
    used = {} if name == "team-old" else {"kai-fleet/namespace": "used"}
    labels = {"kai-fleet/team": "old", **used}
    core.create_namespace({"metadata": {"name": name, "labels": labels}})
    try:
        (finding,) = repair.found("leftovers", f"namespace {name}")
        assert "`kubectl" not in finding.message
    finally:
        with contextlib.suppress(client.ApiException):
            core.delete_namespace(name)


def test_a_kai_of_another_program_on_the_host_is_named_without_a_command(host, repair):
    core = client.CoreV1Api(host)
    core.create_namespace({"metadata": {"name": "kai-scheduler"}})
    try:
        left = things.deployment("kai-operator")
        client.AppsV1Api(host).create_namespaced_deployment("kai-scheduler", left)
        (finding,) = repair.found("leftovers", "the stack declares none there")
        assert "`kubectl" not in finding.message
    finally:
        core.delete_namespace("kai-scheduler")


def test_a_scheduler_whose_shard_is_gone(ml, repair):
    left = things.deployment("kai-scheduler-old")
    client.AppsV1Api(ml).create_namespaced_deployment("kai-scheduler", left)
    repair("leftovers", "its SchedulingShard is gone")


def test_pods_that_have_to_be_made_again(ml, repair, monkeypatch):
    monkeypatch.setattr(gpu, "PATIENCE_SECONDS", 0.0)
    node = client.CoreV1Api(ml).list_node().items[0].metadata.name
    bound = {"conditions": [{"type": "PodBound", "status": "True", "reason": "Bound"}]}
    notes, group = {"gpu-fraction": "0.5"}, {"runai-gpu-group": "g-1"}
    waits = [things.kai_pod(f"waits-{n}", "train") for n in range(3)]
    with things.pods(ml, *waits) as write:
        for n in range(3):
            write(f"waits-{n}", bound)
        eventually(
            lambda: repair.found("false-success", "waits-0, default/waits-1 and default/waits-2")
        )
        repair("false-success", "default/waits-0")
    shares = things.kai_pod("shares", "train", annotations=notes, labels=group, node=node)
    alone = things.kai_pod("alone", "train", annotations=notes, node=node)
    with things.pods(ml, shares, alone):
        repair("reservation", "GPU group g-1")
        repair("gpu-sharing", "default/alone")
    stuck = things.kai_pod("gpu-reservation-x", None, labels={"runai-gpu-group": "g"})
    with things.pods(ml, stuck, namespace="kai-resource-reservation"):
        repair("reservation", "gpu-reservation-x")


def test_tokens_of_pods_that_never_ran(host, repair, monkeypatch):
    """Those of a pod that is there stay, and so does every other Secret."""
    core = client.CoreV1Api(host)
    counted = core.read_namespaced_resource_quota("objects", "team-ml").status
    used, hard = (parse_quantity(item["secrets"]) for item in (counted.used, counted.hard))
    monkeypatch.setattr(bounds, "NEARLY_FULL", float((used + 3) / hard))
    pod = core.read_namespaced_pod("ml-0", "team-ml").metadata.uid
    service = core.read_namespaced_service("ml", "team-ml").metadata.uid
    of_pod = {"apiVersion": "v1", "kind": "Pod", "name": "ml-0", "uid": pod}
    of_service = {"apiVersion": "v1", "kind": "Service", "name": "ml", "uid": service}
    mark = {"vcluster.loft.sh/skip-backsync": "true"}
    left = {f"gone-{n}-sa-token-x-default-x-ml": (mark, [of_service]) for n in range(4)}
    # In mode host they have no owner. A tenant may write any text there.
    tricky = {"vcluster.loft.sh/skip-backsync": "true\nvc-config-ml true"}
    left["gone-sa-token-x-default-x-ml"] = (tricky, [])
    kept = {"runs-sa-token-x-a-x-ml": (mark, [of_pod]), "own-x-a-x-ml": ({}, [of_service])}
    for name, (notes, owners) in (left | kept).items():
        about = {"name": name, "annotations": notes, "ownerReferences": owners}
        core.create_namespaced_secret("team-ml", {"metadata": about})
    try:
        repair("isolation", "Secrets of namespace team-ml")
        there = {item.metadata.name for item in core.list_namespaced_secret("team-ml").items}
        assert (there & set(left), there & set(kept)) == (set(), set(kept))
        assert {"vc-ml", "vc-config-ml"} <= there
    finally:
        for name in left | kept:
            with contextlib.suppress(client.ApiException):
                core.delete_namespaced_secret(name, "team-ml")


@contextlib.contextmanager
def without_label(host, label):
    core = client.CoreV1Api(host)
    nodes = core.list_node(label_selector="kai-fleet/pool=ml").items
    for node in nodes:
        core.patch_node(node.metadata.name, {"metadata": {"labels": {label: None}}})
    try:
        yield nodes[0].metadata.name
    finally:
        for node in nodes:
            back = {"metadata": {"labels": {label: node.metadata.labels[label]}}}
            core.patch_node(node.metadata.name, back)


def test_nodes_without_their_labels(host, repair):
    with without_label(host, "nvidia.com/gpu.memory"):
        repair("nodes", "no label nvidia.com/gpu.memory", MiB="81920")
    with without_label(host, "kai-fleet/pool") as node:
        repair("nodes", "no node with these labels", node=node)


def looks():
    """Every command of the doctor's that only looks, as the samples of the unit tests have it."""
    found = set()
    for case in CASES:
        found |= {command for finding in lab_of(case).ill() for command in finding.commands}
    return sorted(command for command in found if shape(command) in LOOK)


def test_what_only_looks_can_be_run(ml, repair):
    """What it names need not be there."""
    asked = [*looks(), "pulumi refresh --preview-only --stack sandbox"]
    assert len(asked) > 5
    for command in asked:
        inside = "--kubeconfig ml.kubeconfig"
        here = command.replace("--kubeconfig ml ", f"{inside} ")
        done = repair.run(here if inside in here else here.replace("kubectl", f"kubectl {HOST}", 1))
        reported = done.stderr.lower()
        assert done.returncode == 0 or "not found" in reported or " logs " in command, done


@pytest.mark.slow
def test_a_vcluster_whose_statefulset_somebody_deleted(other_ever_after, host, repair):
    """After the others: a vCluster of the sandbox is a new one then, as it has no volume."""
    client.AppsV1Api(host).delete_namespaced_stateful_set("ml", "team-ml")
    repair("vcluster", "its statefulset is not there")


@pytest.mark.slow
def test_every_command_that_is_known_was_run(repair):
    """Last in this file: what the others ran."""
    assert repair.ran >= REPAIR - OF_KUBECONFIGS
    assert repair.ran <= REPAIR | LOOK
