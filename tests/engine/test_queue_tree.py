"""A tree of queues in a real API server, with KAI's own CRD: made, changed by hand, removed."""

from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.queues import TREE, Queues
from kai_fleet_cli.stack_file import reading
from kai_fleet_stack.declared import clusters_of
from kai_fleet_stack.settings.loading import load
from tests.engine.product import api, queues, take_queues

pytestmark = pytest.mark.engine

KIND = ("scheduling.run.ai", "v2", "queues")


def spec(quota: float, parent: str | None = None) -> dict[str, Any]:
    shares = {"quota": quota, "limit": -1, "overQuotaWeight": 1}
    resources = {resource: dict(shares) for resource in ("cpu", "memory", "gpu")}
    return {"resources": resources, **({"parentQueue": parent} if parent else {})}


WANTED = {"top": spec(4), "left": spec(2, "top"), "right": spec(2, "top"), "leaf": spec(1, "left")}


@pytest.fixture(scope="module")
def cluster(sandbox, facts):
    """The host, where the CRD is that of KAI's charts."""
    host = api(sandbox.kubeconfig.read_text())
    take_queues(host, facts / "kai" / "queues.yaml")
    return host


@pytest.fixture(scope="module")
def connection(sandbox):
    return Api.of_kubeconfig(sandbox.kubeconfig.read_text())


@pytest.fixture
def tree(cluster, connection):
    tree = Queues(connection, "test-tree")
    yield tree
    tree.remove()


def specs(cluster) -> dict[str, Any]:
    return {
        name: item["spec"]
        for name, item in queues(cluster).items()
        if item["metadata"].get("labels", {}).get(TREE) == "test-tree"
    }


def versions(cluster) -> dict[str, str]:
    return {name: entry["metadata"]["resourceVersion"] for name, entry in queues(cluster).items()}


def test_it_is_made_as_wanted_and_then_only_what_changes_is_touched(tree, cluster):
    tree.make(WANTED)
    assert specs(cluster) == WANTED
    before = versions(cluster)
    tree.make(WANTED)
    assert versions(cluster) == before
    tree.make({**WANTED, "right": spec(1, "top")})
    assert {name for name, entry in versions(cluster).items() if entry != before[name]} == {"right"}


def test_what_was_done_by_hand_is_put_right(tree, cluster):
    tree.make(WANTED)
    objects = client.CustomObjectsApi(cluster)
    by_hand = {"spec": {"priority": 7, "resources": {"gpu": {"quota": 99}}}}
    objects.patch_cluster_custom_object(*KIND, "left", by_hand)
    objects.patch_cluster_custom_object(*KIND, "right", {"metadata": {"labels": {"kept": "yes"}}})
    objects.delete_cluster_custom_object(*KIND, "leaf")
    seen = {name: item["spec"] for name, item in tree.live().items()}
    assert seen["left"]["priority"] == 7
    assert "leaf" not in seen
    tree.make(WANTED)
    assert specs(cluster) == WANTED
    assert queues(cluster)["right"]["metadata"]["labels"]["kept"] == "yes"


def test_what_a_killed_run_made_is_found_again(tree, cluster, connection):
    # It wrote nothing down; meanwhile the queue `left` and its leaf were taken out of the file.
    Queues(connection, "test-tree").make(WANTED)
    before = versions(cluster)
    desired = {name: WANTED[name] for name in ("top", "right")}
    tree.make(desired)
    assert specs(cluster) == desired
    after = versions(cluster)
    assert {name: after[name] for name in desired} == {name: before[name] for name in desired}


def test_anothers_queue_is_neither_taken_nor_removed(tree, cluster, connection):
    other = Queues(connection, "other-tree")
    other.make({"left": spec(1)})
    client.CustomObjectsApi(cluster).create_cluster_custom_object(
        *KIND, {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "mine"}}
    )
    before = versions(cluster)
    failed = dict(tree.make(WANTED | {"mine": spec(1)}))
    assert failed.keys() == {"left", "leaf", "mine"}
    assert "queue left is in the cluster already and belongs to" in failed["left"]
    assert failed["left"] in failed["leaf"]
    assert "label queue mine --overwrite kai-fleet/tree=test-tree" in failed["mine"]
    assert set(specs(cluster)) == {"top", "right"}, "the others are made"
    tree.remove()
    assert versions(cluster) == before
    other.remove()


def test_a_queue_that_a_tenant_labels_is_not_the_trees(cluster, connection):
    tree = Queues(connection, "test-tree", tenants=("lab",))
    theirs = {"metadata": {"name": "lab-x", "labels": {TREE: "test-tree"}}, "spec": spec(1)}
    kind = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue"}
    objects = client.CustomObjectsApi(cluster)
    objects.create_cluster_custom_object(*KIND, {**kind, **theirs})
    try:
        assert tree.make(WANTED) == []
        assert "lab-x" in queues(cluster)
        assert set(tree.live()) == set(WANTED)
        tree.remove()
        assert set(specs(cluster)) == {"lab-x"}
    finally:
        objects.delete_cluster_custom_object(*KIND, "lab-x")


def test_labels_of_a_shard_are_put_back(tree, cluster):
    pool = {"kai.scheduler/node-pool": "h100"}
    tree.make(WANTED, labels={"top": pool})
    objects = client.CustomObjectsApi(cluster)
    by_hand = {"metadata": {"labels": {"kai.scheduler/node-pool": "a100", "mine": "yes"}}}
    objects.patch_cluster_custom_object(*KIND, "top", by_hand)
    tree.make(WANTED, labels={"top": pool})
    labels = queues(cluster)["top"]["metadata"]["labels"]
    assert labels == {**pool, "mine": "yes", TREE: "test-tree"}


def test_a_refused_queue_is_named_and_the_others_are_there(tree, cluster):
    wrong = {**WANTED, "right": {**spec(1, "top"), "priority": "high"}}
    ((name, why),) = tree.make(wrong)
    assert name == "right" and "priority" in why
    assert set(specs(cluster)) == {"top", "left", "leaf"}


def stored(objects: client.CustomObjectsApi, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """What the server would store; a field that it does not know is an error."""
    body = {"apiVersion": "/".join(KIND[:2]), "kind": "Queue", "metadata": {"name": name}}
    strict = {"dry_run": "All", "field_validation": "Strict"}
    found = objects.create_cluster_custom_object(*KIND, {**body, "spec": spec}, **strict)
    return dict(found["spec"])


@pytest.mark.parametrize("stack", ["prod", "sandbox", "sandbox-host"])
def test_every_declared_queue_is_valid_and_kept_whole(cluster, stack):
    """Strictly: a field that the CRD does not have would be dropped without a word."""
    objects = client.CustomObjectsApi(cluster)
    with pytest.raises(ApiException, match=r"unknown field .{0,2}spec\.parent"):
        stored(objects, "wrong", {"resources": {}, "parent": "default"})
    settings = load(reading.read(reading.path_of(stack))).settings
    assert settings is not None
    for each in clusters_of(settings):
        for name, spec in each.queue_specs.items():
            assert stored(objects, f"declared-{name}", spec) == spec
