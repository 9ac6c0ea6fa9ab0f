"""The step that ends a team's pods before its namespace goes."""

import pytest

from kai_fleet.probes import vcluster
from kubectl_fleet.kube.errors import RefusedError, UnreachableError

PODS = "/api/v1/namespaces/team-ml/pods"


class Api:
    def __init__(self):
        self.told = []

    def list(self, path):
        assert path == PODS
        return [{"metadata": {"name": name}} for name in ("a", "b")]

    def delete(self, path):
        self.told.append(path)
        return False  # it has gone by itself


@pytest.fixture
def api(monkeypatch):
    monkeypatch.setenv("PODS_NAMESPACE", "team-ml")
    api = Api()
    monkeypatch.setattr(vcluster, "cluster", lambda: api)
    return api


def test_every_pod_is_told_to_end(api):
    vcluster.end_pods()
    assert api.told == [f"{PODS}/a", f"{PODS}/b"]


def test_a_cluster_that_is_unknown_by_now_does_not_either(monkeypatch, capsys):
    monkeypatch.setenv("PODS_NAMESPACE", "team-ml")
    monkeypatch.setenv("PROBE_CONTEXT", "gone")
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    vcluster.end_pods()
    assert "(the kubeconfig cannot be used: " in capsys.readouterr().err


@pytest.mark.parametrize("why", [RefusedError(403, "Forbidden"), UnreachableError("no")])
def test_what_hinders_it_does_not_hinder_the_removal(api, monkeypatch, capsys, why):
    def refused(_):
        raise why

    monkeypatch.setattr(api, "list", refused)
    vcluster.end_pods()
    assert "pods of team-ml are left to Kubernetes" in capsys.readouterr().err
