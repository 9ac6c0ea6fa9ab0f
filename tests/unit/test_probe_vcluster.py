"""The step that waits until a vCluster answers: what it prints, and where it waits no longer."""

import json

import pytest

from kai_fleet.cluster.probes import vcluster
from kai_fleet.cluster.probes.wait import NotReadyError
from tests.unit import vcluster_secrets

HERE = "/api/v1/namespaces/team-ml"
SERVICE = {
    "metadata": {"name": "ml", "namespace": "team-ml"},
    "spec": {"ports": [{"port": 443, "nodePort": 30001}]},
}


class Host:
    """A host with a vCluster whose control plane runs, with or without its Secret."""

    def __init__(self, secret, ready="True"):
        self.secret, self.ready = secret, ready

    def get(self, path):
        assert path == f"{HERE}/services/ml"
        return SERVICE

    def find(self, path):
        return self.secret if path == f"{HERE}/secrets/vc-ml" else None

    def list(self, path, **query):
        if path == "/api/v1/nodes":
            return []
        assert query == {"labelSelector": "app=vcluster,release=ml"}
        conditions = [{"type": "Ready", "status": self.ready}]
        return [{"metadata": {"name": "ml-0"}, "status": {"conditions": conditions}}]


class Inside:
    uid = "0d9f-11"

    @classmethod
    def of_kubeconfig(cls, text, seconds):
        assert "https://10.0.0.5:30001" in text
        return cls()

    def get(self, path):
        assert path == "/api/v1/namespaces/kube-system"
        return {"metadata": {"uid": self.uid}}


@pytest.fixture
def waits(monkeypatch):
    def run(host, uid="0d9f-11", timeout="0.5"):
        for key, value in {
            "NAME": "ml",
            "NAMESPACE": "team-ml",
            "ACCESS": "NodePort",
            "HOST": "10.0.0.5",
            "NODE_POOL": "pool=ml",
            "TIMEOUT": timeout,
        }.items():
            monkeypatch.setenv(f"VCLUSTER_{key}", value)
        monkeypatch.setattr(vcluster, "cluster", lambda: host)
        monkeypatch.setattr(vcluster, "Api", Inside)
        monkeypatch.setattr(Inside, "uid", uid)
        vcluster.wait()

    return run


def good():
    return {"data": vcluster_secrets.data()}


def test_it_prints_the_server_and_which_vcluster_it_is(waits, capsys):
    waits(Host(good()))
    out, err = capsys.readouterr()
    assert json.loads(out) == {"server": "https://10.0.0.5:30001", "uid": "0d9f-11"}
    assert "warning: no Ready node has the labels pool=ml" in err


@pytest.mark.parametrize("uid", ["", "a b", "x" * 65, {"a": "b"}])
def test_an_identity_that_is_none_is_not_printed(waits, capsys, uid):
    with pytest.raises(NotReadyError):
        waits(Host(good()), uid=uid)
    assert capsys.readouterr().out == ""


def test_a_secret_that_somebody_removed_is_not_waited_for(waits, monkeypatch):
    monkeypatch.setattr(vcluster, "_SECRET_SECONDS", 0.0)
    with pytest.raises(NotReadyError) as ended:
        waits(Host(None), timeout="600")
    assert "kubectl -n team-ml rollout restart statefulset ml" in str(ended.value)


def test_while_the_control_plane_starts_it_waits(waits, monkeypatch):
    monkeypatch.setattr(vcluster, "_SECRET_SECONDS", 0.0)
    with pytest.raises(NotReadyError, match=r"not ready after 0 s\. Missing: Secret vc-ml"):
        waits(Host(None, ready="False"), timeout="0.3")


def test_what_somebody_planted_ends_it_at_once(waits):
    document = vcluster_secrets.config()
    document["users"][0]["user"]["tokenFile"] = "/etc/hostname"
    with pytest.raises(NotReadyError, match="Somebody who can write in the namespace of team ml"):
        waits(Host({"data": vcluster_secrets.data(document)}), timeout="600")
