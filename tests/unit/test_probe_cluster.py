"""Which cluster a probe asks, by its environment."""

import re

import pytest
import yaml

from kai_fleet.cluster.kube.errors import RefusedError, UnreachableError
from kai_fleet.cluster.probes import __main__ as fleet_probe
from kai_fleet.cluster.probes import wait
from tests.unit import vcluster_secrets

HOST = "https://host:6443"
INSIDE = {
    "clusters": [{"name": "c", "cluster": {"server": "https://localhost:8443"}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    "current-context": "c",
    "users": [{"name": "u", "user": {"token": "t"}}],
}


def kubeconfig(server: str) -> str:
    return yaml.safe_dump(INSIDE | {"clusters": [{"name": "c", "cluster": {"server": server}}]})


class Host:
    """What the host answers, and what it was asked for."""

    def __init__(self):
        self.answer = {"data": vcluster_secrets.data()}
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
        (RefusedError(404, "Not Found"), "cannot be read: the API answers 404 Not Found"),
        (
            UnreachableError("nobody answers"),
            "cannot be read: the API does not answer: nobody answers",
        ),
    ],
)
def test_a_secret_that_is_of_no_use_is_named(host, monkeypatch, answer, words):
    host.answer = answer
    with pytest.raises(wait.NotReadyError) as said:
        within(monkeypatch)
    assert str(said.value) == (
        f"Secret vc-ml of namespace team-ml {words}. Look with: kubectl -n team-ml get"
        " secrets,statefulsets"
    )


def test_a_secret_that_is_not_vclusters_ends_the_probe_with_what_repairs_it(host, monkeypatch):
    document = vcluster_secrets.config()
    document["users"][0]["user"]["tokenFile"] = "/etc/hostname"
    host.answer = {"data": vcluster_secrets.data(document)}
    with pytest.raises(wait.NotReadyError) as said:
        within(monkeypatch)
    again = "kubectl -n team-ml delete secret vc-ml and kubectl -n team-ml rollout restart"
    assert f"{again} statefulset ml" in str(said.value)
    assert "has in its key config what vCluster does not write" in str(said.value)
    assert "Somebody who can write in the namespace of team ml" in str(said.value)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (KeyError("metadata"), "its API server answers what no Kubernetes does (KeyError)"),
        (UnreachableError("nobody answers"), "the API does not answer: nobody answers"),
        (RefusedError(403, "No", b'{"message": "why"}'), "the API answers 403 No: why"),
    ],
)
def test_a_probe_that_fails_ends_in_a_sentence(monkeypatch, error, sentence):
    def fail():
        raise error

    monkeypatch.setattr(fleet_probe, "PROBES", {"odd": fail})
    monkeypatch.setattr("sys.argv", ["fleet-probe", "odd"])
    with pytest.raises(SystemExit, match=re.escape(sentence)):
        fleet_probe.main()
