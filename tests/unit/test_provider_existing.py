"""The function that tells whether an object is there, over gRPC as the engine asks it."""

import pytest

from kai_fleet.provider import EXISTING
from kai_fleet.provider.values import plain
from tests.unit.canned_api import kubeconfig, serving
from tests.unit.plugin_process import started

PATH = "/apis/node.k8s.io/v1/runtimeclasses/nvidia"


@pytest.fixture(scope="module")
def plugin():
    with started() as plugin:
        yield plugin


@pytest.fixture
def read(plugin):
    with serving() as (api, url):

        def ask(status: int, body: object) -> object:
            api.answers[PATH] = (status, body)
            asked = {"path": PATH, "kubeconfig": kubeconfig(url)}
            return plain(plugin.invoke(EXISTING, asked))

        yield ask


def test_an_object_is_told_by_its_handler_and_labels_alone(read):
    body = {"handler": "nvidia", "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}
    assert read(200, body) == {"there": True, "handler": "nvidia", "labels": {"a": "b"}}


def test_one_without_labels_has_none(read):
    assert read(200, {"metadata": {}}) == {"there": True, "handler": "", "labels": {}}


def test_one_that_is_not_there_is_an_answer(read):
    assert read(404, {}) == {"there": False}


def ask_at(plugin, path, body):
    with serving() as (api, url):
        api.answers[path] = (200, body)
        return plain(plugin.invoke(EXISTING, {"path": path, "kubeconfig": kubeconfig(url)}))


def test_what_kai_brings_is_told_with_what_may_differ(plugin):
    notes = {
        "meta.helm.sh/release-name": "kai",
        "meta.helm.sh/release-namespace": "gpu",
    }
    body = {"value": 50, "metadata": {"annotations": notes}}
    answer = ask_at(plugin, "/apis/scheduling.k8s.io/v1/priorityclasses/train", body)
    assert (answer["value"], answer["release"]) == (50, "gpu/kai")
    queue = {"spec": {"resources": {"gpu": {"quota": -1}}}, "metadata": {}}
    answer = ask_at(plugin, "/apis/scheduling.run.ai/v2/queues/default-queue", queue)
    assert answer["spec"] == queue["spec"]


def test_nodes_are_told_by_labels_and_taints(plugin):
    labels = {"pool": "ml"}
    taint = {"key": "dedicated", "value": "ml", "effect": "NoSchedule", "timeAdded": "x"}
    nodes = {"items": [{"metadata": {"labels": labels}, "spec": {"taints": [taint]}}]}
    del taint["timeAdded"]
    answer = ask_at(plugin, "/api/v1/nodes", nodes)
    assert answer["nodes"] == [{"labels": labels, "taints": [taint]}]


def test_a_refusal_is_no_silence(read):
    assert read(403, {}) == {"problem": "the API answers 403 Forbidden", "away": False}


@pytest.mark.parametrize("content", [kubeconfig("http://127.0.0.1:1"), "nonsense: ["])
def test_a_cluster_that_cannot_be_reached_is_an_answer_too(plugin, content):
    found = plain(plugin.invoke(EXISTING, {"path": PATH, "kubeconfig": content}))
    assert found["away"] is True
