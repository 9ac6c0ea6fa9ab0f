"""The queue trees of a vCluster whose API server lists what its tenant likes."""

import time

import pytest

from kai_fleet.cluster import queues
from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.queues import ClusterAwayError, Queues
from tests.unit.components.cluster.canned_api import kubeconfig, serving

PATH = "/apis/scheduling.run.ai/v2/queues"


def listed(name, spec):
    labels = {"kai-fleet/tree": "ml-queues"}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def ring(length):
    return {f"q{n}": {"parentQueue": f"q{(n + 1) % length}"} for n in range(length)}


SPECS = {
    "a ring": ring(3),
    "a queue that is its own parent": {"a": {"parentQueue": "a"}},
    "queues below a ring": ring(2) | {"below": {"parentQueue": "q0"}},
    "a ring beside a tree": ring(2) | {"top": {}, "leaf": {"parentQueue": "top"}},
    "parents that are none": {"a": {"parentQueue": {"x": 1}}, "b": {"parentQueue": [1]}, "c": {}},
    "specs that are none": {"a": 3, "b": [], "c": "x"},
}


@pytest.fixture
def api():
    with serving() as (api, url):
        api.tree = lambda **limits: Queues(
            Api.of_kubeconfig(kubeconfig(url)), "ml-queues", "lab/ml", **limits
        )
        yield api


def deleted(api):
    return [path.rpartition("/")[2] for verb, path in api.asked if verb == "DELETE"]


@pytest.mark.parametrize("what", SPECS)
def test_whatever_hangs_in_the_tree_is_deleted(api, what):
    items = [listed(name, spec) for name, spec in SPECS[what].items()]
    api.answers[PATH] = (200, {"items": [*items, {}, {"metadata": {"name": [1]}}, *items]})
    api.otherwise = (200, {})
    api.tree().make({})
    assert sorted(deleted(api)) == sorted(SPECS[what])
    order = deleted(api)
    if "leaf" in order:
        assert order.index("leaf") < order.index("top")


@pytest.mark.parametrize("owners", [[3], {"kind": "x"}, [{"kind": "a\nb"}], "x"], ids=str)
def test_an_owner_that_is_none_is_one_line(api, owners):
    item = listed("a", {})
    item["metadata"]["ownerReferences"] = owners
    api.answers[PATH] = (200, {"items": [item]})
    ((name, why),) = api.tree().make({"a": {}})
    assert name == "a" and "\n" not in why


def test_a_declared_queue_below_itself_ends(api):
    api.answers[PATH], api.otherwise = (200, {"items": []}), (200, {})
    assert api.tree().make({"a": {"parentQueue": "a"}}) == []


def test_a_server_that_hangs_is_given_up_when_it_has_not_listed_its_queues(api, monkeypatch):
    monkeypatch.setattr(queues, "_LIST_SECONDS", 1.0)
    monkeypatch.setattr(queues, "_RESTART_SECONDS", 0.5)
    api.answers[PATH], api.delay = (200, {"items": []}), 20
    begun = time.monotonic()
    with pytest.raises(ClusterAwayError, match="did not answer everything within 1 s"):
        api.tree().make({})
    assert time.monotonic() - begun < 10


def test_more_than_can_be_deleted_in_the_time_ends_in_time(api):
    items = [listed(f"q{n}", {}) for n in range(2000)]
    api.answers[PATH], api.otherwise = (200, {"items": items}), (200, {})
    api.delay = 0.1
    begun = time.monotonic()
    *_, (about, why) = api.tree(total_seconds=2.0).make({})
    assert about == "", "the whole tree fails, also one that teams share"
    assert "it did not answer everything within 2 s" in why
    assert time.monotonic() - begun < 12
