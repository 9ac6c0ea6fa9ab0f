"""Asking a cluster: once for each kind, at once; what may not be listed is part of the answer."""

import time

import pytest

from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import UnreachableError
from kai_fleet_cli.waiting.read_cluster import ReadCluster
from kubectl_fleet.my.view import KINDS, read
from tests.unit.canned_api import kubeconfig, serving
from tests.unit.usage_samples import kai, node, pod, queue

PATHS = {kind: path.format("") for kind, path in KINDS.items()}
SAMPLES = {
    "nodes": [node("ml-0")],
    "pods": [pod("a", node="ml-0", gpu_fraction="0.5"), pod("b")],
    "queues": [queue("train", gpu=4)],
    "podgroups": [],
    "deployments": [kai()],
}


def look(api):
    return read(api, ReadCluster("it"), KINDS, "default")


@pytest.fixture
def server():
    with serving() as (handler, url):
        for kind, path in PATHS.items():
            handler.answers[path] = (200, {"items": SAMPLES[kind]})
        yield handler, Api.of_kubeconfig(kubeconfig(url))


def test_one_request_for_each_kind(server):
    handler, api = server
    found = look(api).usage
    assert found.queues["train"].share("gpu").in_use == 0.5
    assert sorted(path for _, path in handler.asked) == sorted(PATHS.values())


def test_all_kinds_are_asked_at_once(server):
    handler, api = server
    handler.delay = 0.0
    look(api)
    handler.delay = 0.3
    began = time.monotonic()
    look(api)
    assert time.monotonic() - began < 2 * handler.delay  # five of them


def test_what_may_not_be_listed_is_said_and_the_rest_is_counted(server):
    handler, api = server
    message = 'nodes is forbidden: User "me" cannot list resource "nodes"'
    handler.answers[PATHS["nodes"]] = (403, {"message": message})
    handler.answers[PATHS["podgroups"]] = (404, {})
    found = look(api)
    assert dict(found.unreadable) == {"nodes": message}
    assert "podgroups" not in found.objects
    assert found.usage.queues["train"].share("gpu").in_use == 0.5


@pytest.mark.parametrize(("status", "said"), [(401, "credentials"), (500, "500")])
def test_a_cluster_that_does_not_answer_is_unreachable(server, status, said):
    handler, api = server
    handler.answers[PATHS["pods"]] = (status, {})
    with pytest.raises(UnreachableError, match=said):
        look(api)
