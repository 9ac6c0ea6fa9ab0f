"""Each command that the doctor prints is run as it stands, and its finding is gone."""

import base64
import contextlib
import gzip
import json

import pytest
import yaml
from kai_fleet_cli.doctor.examine import commands
from kubernetes import client

from kai_fleet.quantities import parse_quantity
from kai_fleet_cli.doctor.checks import isolation
from kai_fleet_cli.doctor.checks.kai import gpu_sharing
from kai_fleet_cli.engine.environment import SANDBOX_CONTEXT
from kai_fleet_cli.stack_file import reading
from tests.engine import broken_things as things
from tests.engine.doctor_mends import (
    LOOK,
    MEND,
    OF_CERTIFICATES,
    OF_KUBECONFIGS,
    Mending,
    eventually,
    shape,
)
from tests.unit.doctor_cluster_cases import CLUSTERS, SHARDS
from tests.unit.doctor_pod_cases import PODS
from tests.unit.doctor_samples import Lab

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

HOST = f"--context {SANDBOX_CONTEXT}"


@pytest.fixture(scope="module")
def product(one_team):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "ROOT", one_team.folder)
        yield one_team.product


@pytest.fixture(scope="module")
def ml(product, one_team):
    return one_team.inside()


@pytest.fixture(scope="module")
def host(ml, one_team):
    return one_team.host()


@pytest.fixture
def other_ever_after(place):
    """The stack is not as it was made: no other module uses it."""
    place.tenant = None


@pytest.fixture(scope="module")
def mend(product, one_team):
    return Mending(one_team)


@pytest.mark.slow
def test_one_update_puts_everything_right_that_the_stack_declares(ml, host, mend):
    core = client.CoreV1Api(host)
    level = "pod-security.kubernetes.io/enforce"
    core.patch_namespace("team-ml", {"metadata": {"labels": {level: None}}})
    core.delete_namespaced_resource_quota("objects", "team-ml")
    core.patch_namespaced_resource_quota(
        "gpus", "team-ml", {"spec": {"hard": {"requests.nvidia.com/gpu": "99"}}}
    )
    client.NetworkingV1Api(host).delete_namespaced_network_policy("kai-fleet-pods", "team-ml")
    guards = client.AdmissionregistrationV1Api(host)
    guards.delete_validating_admission_policy_binding("kai-fleet-nodes-ml")
    client.NodeV1Api(host).delete_runtime_class("nvidia")
    inside = client.AdmissionregistrationV1Api(ml)
    inside.delete_validating_admission_policy_binding("kai-fleet-queues-ml")
    queues = client.CustomObjectsApi(ml)
    queues.delete_cluster_custom_object(*things.QUEUES, "serve")
    limit = {"spec": {"resources": {"gpu": {"limit": 1}}}}
    queues.patch_cluster_custom_object(*things.QUEUES, "train", limit)
    wanted = (
        ("isolation", "namespace team-ml"),
        ("isolation", "ResourceQuota objects"),
        ("gpu-quota", "lets the team have 99 GPUs"),
        ("isolation", "NetworkPolicy kai-fleet-pods"),
        ("isolation", "ValidatingAdmissionPolicyBinding kai-fleet-nodes-ml"),
        ("runtime-class", "RuntimeClass nvidia"),
        ("guard", "ValidatingAdmissionPolicyBinding kai-fleet-queues-ml"),
        ("queues", "queue serve"),
        ("queues", "queue train"),
    )
    assert [words for check, words in wanted if not mend.found(check, words)] == []
    said = [one for check, words in wanted for one in mend.found(check, words)]
    update = {command for one in said for command in commands(one.fix)}
    assert update == {".venv/bin/fleet up --refresh --stack sandbox"}
    mend("queues", "queue serve")
    assert [words for check, words in wanted if mend.found(check, words)] == []


@pytest.mark.slow
def test_a_kai_that_is_not_wanted_and_one_that_is_not_there(product, ml, mend):
    """The release goes by its own command, and comes back by the update of the stack."""

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
    product.edit(to({"mode": "default"}))
    try:
        mend("leftovers", "the stack wants none")
    finally:
        product.edit(to({"mode": "virtual", "version": "v0.9.3"}))
    mend("kai-parts", "it is not installed")


def test_a_part_of_kai_that_somebody_deleted(ml, mend):
    """One of the chart's: what the operator makes, it makes again by itself."""
    client.AppsV1Api(ml).delete_namespaced_deployment("kai-operator", "kai-scheduler")
    mend("kai-parts", "deployments kai-operator")
    off = {"spec": {"admission": {"gpuSharing": False}}}
    config = client.CustomObjectsApi(ml)
    config.patch_cluster_custom_object(*things.CONFIGS, "kai-config", off)
    mend("gpu-sharing", "it is off")


@pytest.mark.slow
def test_another_version_than_the_file_says(product, ml, mend):
    def to(version):
        def edit(config):
            config["kai-fleet:teams"]["ml"]["scheduler"]["version"] = version

        return edit

    for version in ("v0.9.8", "v0.9.3"):
        product.edit(to(version))
        mend("kai-version", f"KAI {version}")


def test_a_scheduler_and_a_vcluster_that_are_scaled_to_0(ml, host, mend):
    none = {"spec": {"replicas": 0}}
    apps = client.AppsV1Api(ml)
    apps.patch_namespaced_deployment("scheduler", "kai-scheduler", none)
    mend("kai-parts", "deployment scheduler")
    client.AppsV1Api(host).patch_namespaced_stateful_set("ml", "team-ml", none)
    mend("vcluster", "it is scaled to 0")


def test_a_record_of_helm_that_helm_did_not_write(host, mend):
    """The newest one, beside Helm's own; and Helm's own, so that none is left but the new one."""
    core, space = client.CoreV1Api(host), "team-ml"

    def own():
        found = core.list_namespaced_secret(space, label_selector="owner=helm,name=ml").items
        return max(found, key=lambda it: int(it.metadata.labels["version"]))

    held = own()
    record = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(held.data["release"]))))
    (node, *_) = [it.metadata.name for it in core.list_node().items]
    record["manifest"] += f"---\napiVersion: v1\nkind: Node\nmetadata: {{name: {node}}}\n"
    packed = base64.b64encode(gzip.compress(json.dumps(record | {"version": 99}).encode()))
    labels = held.metadata.labels | {"version": "99"}
    body = {"metadata": {"name": "innocent", "labels": labels}, "type": "Opaque"}
    data = {"release": base64.b64encode(packed).decode()}
    core.create_namespaced_secret(space, body | {"data": data})
    mend("helm-record", f"Secret innocent names Node {node}")
    core.patch_namespaced_secret(held.metadata.name, space, {"data": data})
    mend("helm-record", f"Secret {held.metadata.name} names Node {node}")
    assert own().data != data
    assert core.read_node(node)


def test_queues_that_nobody_declared(ml, mend):
    objects = client.CustomObjectsApi(ml)
    for name, parent in (("default-queue", None), ("mine", "default"), ("below", "mine")):
        objects.create_cluster_custom_object(*things.QUEUES, things.queue(name, parent))
    mend("queues", "KAI's chart made them")
    limit = {"spec": {"resources": {"gpu": {"limit": 1}}}}
    objects.patch_cluster_custom_object(*things.QUEUES, "below", limit)
    with things.pods(ml, things.kai_pod("asks", "below", gpus="2")):
        mend("pending", "queue below may hold at most 1: it never runs")
    mend("queues", "somebody made them by hand")


@pytest.mark.slow
def test_what_old_releases_and_removed_teams_left(ml, host, mend):
    shard = {
        "apiVersion": "kai.scheduler/v1",
        "kind": "SchedulingShard",
        "metadata": {"name": "default"},
        "spec": {},
    }
    client.CustomObjectsApi(ml).create_cluster_custom_object(*things.SHARDS, shard)
    mend("leftovers", "two versions schedule the same pods")
    client.AdmissionregistrationV1Api(ml).create_validating_webhook_configuration(
        things.dead_webhook("left-behind")
    )
    mend("webhooks", "left-behind")
    dead = things.dead_webhook("left-behind-too")
    client.AdmissionregistrationV1Api(ml).create_mutating_webhook_configuration(
        {
            "metadata": {"name": "left-behind-too"},
            "webhooks": ml.sanitize_for_serialization(dead.webhooks),
        }
    )
    mend("webhooks", "left-behind-too")
    client.RbacAuthorizationV1Api(host).create_cluster_role(
        {"metadata": {"name": "vc-old-v-team-old"}, "rules": []}
    )
    mend("leftovers", "ClusterRole vc-old-v-team-old")
    policy = {"metadata": {"name": "open"}, "spec": {"podSelector": {}, "ingress": [{}]}}
    client.NetworkingV1Api(host).create_namespaced_network_policy("team-ml", policy)
    mend("isolation", "NetworkPolicy open")


@pytest.mark.parametrize("name", ["team-old", "theirs"])
def test_the_namespace_of_a_team_that_the_file_does_not_have(host, mend, name):
    core = client.CoreV1Api(host)
    used = {} if name == "team-old" else {"kai-fleet/namespace": "used"}
    labels = {"kai-fleet/team": "old", **used}
    core.create_namespace({"metadata": {"name": name, "labels": labels}})
    try:
        mend("leftovers", f"namespace {name}")
    finally:
        with contextlib.suppress(client.ApiException):
            core.delete_namespace(name)


def test_a_kai_on_the_host_that_nobody_wants(host, mend):
    core = client.CoreV1Api(host)
    core.create_namespace({"metadata": {"name": "kai-scheduler"}})
    try:
        left = things.deployment("kai-operator")
        client.AppsV1Api(host).create_namespaced_deployment("kai-scheduler", left)
        mend("leftovers", "the stack wants none")
    finally:
        core.delete_namespace("kai-scheduler")


def test_pods_that_have_to_be_made_again(ml, mend, monkeypatch):
    monkeypatch.setattr(gpu_sharing, "_PATIENCE", 0.0)
    node = client.CoreV1Api(ml).list_node().items[0].metadata.name
    bound = {"conditions": [{"type": "PodBound", "status": "True", "reason": "Bound"}]}
    notes, group = {"gpu-fraction": "0.5"}, {"runai-gpu-group": "g-1"}
    waits = [things.kai_pod(f"waits-{n}", "train") for n in range(3)]
    with things.pods(ml, *waits) as write:
        for n in range(3):
            write(f"waits-{n}", bound)
        eventually(lambda: any(len(f.things) == 3 for f in mend.found("false-success", "pods")))
        mend("false-success", "3 pods in namespace default")
    shares = things.kai_pod("shares", "train", annotations=notes, labels=group, node=node)
    alone = things.kai_pod("alone", "train", annotations=notes, node=node)
    with things.pods(ml, shares, alone):
        mend("reservation", "GPU group g-1")
        mend("gpu-sharing", "pod alone")
    stuck = things.kai_pod("gpu-reservation-x", None, labels={"runai-gpu-group": "g"})
    with things.pods(ml, stuck, namespace="kai-resource-reservation"):
        mend("reservation", "reservation pod gpu-reservation-x")


def test_tokens_of_pods_that_never_ran(host, mend, monkeypatch):
    """Those of a pod that is there stay, and so does every other Secret."""
    core = client.CoreV1Api(host)
    counted = core.read_namespaced_resource_quota("objects", "team-ml").status
    used, hard = (parse_quantity(it["secrets"]) for it in (counted.used, counted.hard))
    monkeypatch.setattr(isolation, "_NEARLY", (used + 3) / hard)
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
        mend("isolation", "Secrets in namespace team-ml")
        there = {it.metadata.name for it in core.list_namespaced_secret("team-ml").items}
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


def test_nodes_without_their_labels(host, mend):
    with without_label(host, "nvidia.com/gpu.memory"):
        mend("nodes", "no label nvidia.com/gpu.memory", MiB="81920")
    with without_label(host, "kai-fleet/pool") as node:
        mend("nodes", "no node has these labels", node=node)


def looks():
    """Every command of the doctor's that only looks, as the samples of the unit tests have it."""
    found = set()
    for spoil, *_ in (CLUSTERS | PODS | SHARDS).values():
        lab = Lab()
        spoil(lab)
        found |= {command for finding in lab.ill() for command in commands(finding.fix)}
    return sorted(command for command in found if shape(command) in LOOK)


def test_what_only_looks_can_be_run(ml, mend):
    """What it names need not be there."""
    asked = looks()
    assert len(asked) > 5
    for command in asked:
        inside = "--kubeconfig ml.kubeconfig"
        here = command.replace("--kubeconfig ml ", f"{inside} ")
        done = mend.run(here if inside in here else here.replace("kubectl", f"kubectl {HOST}", 1))
        said = done.stderr.lower()
        assert done.returncode == 0 or "not found" in said or " logs " in command, done


@pytest.mark.slow
def test_a_vcluster_whose_statefulset_somebody_deleted(other_ever_after, host, mend):
    """After the others: a vCluster of the sandbox is a new one then, as it has no volume."""
    client.AppsV1Api(host).delete_namespaced_stateful_set("ml", "team-ml")
    mend("vcluster", "StatefulSet ml is not there")


@pytest.mark.slow
def test_every_command_that_is_known_was_run(mend):
    """Last in this file: what the others ran."""
    assert mend.ran >= MEND - OF_CERTIFICATES - OF_KUBECONFIGS
    assert mend.ran <= MEND | LOOK
