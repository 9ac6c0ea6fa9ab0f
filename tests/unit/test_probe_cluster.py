"""Which cluster a probe asks, by its environment."""

from __future__ import annotations

import base64

import pytest
import yaml

from kai_fleet.components.probes import wait
from kai_fleet.kube.errors import Refused, Unreachable

HOST = "https://host:6443"
INSIDE = {
    "clusters": [{"name": "c", "cluster": {"server": "https://localhost:8443"}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    "current-context": "c",
    "users": [{"name": "u", "user": {"token": "t"}}],
}
DATA = {"config": base64.b64encode(yaml.safe_dump(INSIDE).encode()).decode()}


def kubeconfig(server: str) -> str:
    return yaml.safe_dump(INSIDE | {"clusters": [{"name": "c", "cluster": {"server": server}}]})


class Host:
    """What the host answers, and what it was asked for."""

    def __init__(self):
        self.answer = {"data": DATA}
        self.paths = []

    def get(self, api, path):
        self.paths.append((api.host, path))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def host(monkeypatch):
    host = Host()
    monkeypatch.setattr(wait.Api, "get", lambda api, path: host.get(api, path))
    monkeypatch.setenv("PROBE_KUBECONFIG", kubeconfig(HOST))
    return host


def within(monkeypatch):
    monkeypatch.setenv("PROBE_SECRET", "team-ml/vc-ml")
    monkeypatch.setenv("PROBE_SERVER", "https://1.2.3.4:31000")
    return wait.cluster()


def test_without_a_secret_it_is_the_kubeconfigs_own(host):
    assert wait.cluster().host == HOST
    assert host.paths == []


def test_with_one_it_is_the_vcluster_at_the_address_that_is_given(host, monkeypatch):
    assert within(monkeypatch).host == "https://1.2.3.4:31000"
    assert host.paths == [(HOST, "/api/v1/namespaces/team-ml/secrets/vc-ml")]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Refused(404, "Not Found"), "cannot be read: the API answers 404 Not Found"),
        (Unreachable("nobody answers"), "cannot be read: the API does not answer: nobody answers"),
        ({}, "has no key 'config'"),
        ({"data": {"config": "?"}}, "holds no kubeconfig at its key 'config'"),
    ],
)
def test_a_secret_that_is_of_no_use_is_named(host, monkeypatch, answer, words):
    host.answer = answer
    with pytest.raises(wait.NotReady) as said:
        within(monkeypatch)
    assert str(said.value) == (
        f"Secret vc-ml of namespace team-ml, the kubeconfig of the vCluster, {words}. Look with:"
        " kubectl -n team-ml get secrets,statefulsets"
    )
