"""The steps around a vCluster: waiting until it answers, and ending what it left."""

import json

import pytest

from kai_fleet.cluster.kube.errors import RefusedError, UnreachableError
from kai_fleet.cluster.probes import vcluster
from kai_fleet.cluster.probes.wait import HostFailedError, NotReadyError
from tests.unit import vcluster_secrets

HERE = "/api/v1/namespaces/team-ml"
SERVICE = {
    "metadata": {"name": "ml", "namespace": "team-ml"},
    "spec": {"ports": [{"port": 443, "nodePort": 30001}]},
}


class Host:
    """A host with a vCluster whose control plane runs, with or without its Secret."""

    def __init__(self, secret, ready="True", service=SERVICE):
        self.secret, self.ready, self.service = secret, ready, service

    def find(self, path):
        if path == f"{HERE}/services/ml":
            if isinstance(self.service, Exception):
                raise self.service
            return self.service
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


def test_a_release_that_somebody_uninstalled_is_not_waited_for(waits, monkeypatch):
    monkeypatch.setattr(vcluster, "_HOST_SECONDS", 0.0)
    with pytest.raises(NotReadyError, match="Service ml of namespace team-ml is gone"):
        waits(Host(good(), service=None), timeout="600")


@pytest.mark.parametrize(
    "why", [UnreachableError("no answer"), RefusedError(504, "Gateway Timeout")]
)
def test_a_host_that_does_not_answer_ends_the_wait_for_all_teams(waits, monkeypatch, why):
    monkeypatch.setattr(vcluster, "_HOST_SECONDS", 0.0)
    with pytest.raises(HostFailedError, match="the host's API server failed for 0 s: the API"):
        waits(Host(good(), service=why), timeout="600")


def test_while_the_control_plane_starts_it_waits(waits, monkeypatch):
    monkeypatch.setattr(vcluster, "_SECRET_SECONDS", 0.0)
    with pytest.raises(NotReadyError, match=r"not ready after 0 s\. Missing: Secret vc-ml"):
        waits(Host(None, ready="False"), timeout="0.3")


def test_what_somebody_planted_ends_it_at_once(waits):
    document = vcluster_secrets.config()
    document["users"][0]["user"]["tokenFile"] = "/etc/hostname"
    with pytest.raises(NotReadyError, match="Somebody who can write in the namespace of team ml"):
        waits(Host({"data": vcluster_secrets.data(document)}), timeout="600")


SYNCED = "vcluster.loft.sh/managed-by=ml"
INSTALLED = "app in (vcluster,vcluster-etcd),release=ml"
PIECES = [f"{HERE}/secrets/vc-ml", f"{HERE}/secrets/ml-certs"]
OURS = {"kai-fleet/team": "ml"}


class Namespace:
    """A namespace with a pod and a volume of somebody else beside the vCluster's."""

    def __init__(self, labels):
        self.message, self.labels = [], labels

    def get(self, path):
        assert path == HERE
        if isinstance(self.labels, Exception):
            raise self.labels
        return {"metadata": {"name": "team-ml", "labels": self.labels}}

    def list(self, path, **query):
        kind = path.removeprefix(f"{HERE}/")
        names = {SYNCED: ["synced"]}
        if kind in ("pods", "persistentvolumeclaims"):
            names |= {INSTALLED: ["installed"], "": ["synced", "installed", "theirs"]}
        return [
            {"metadata": {"name": f"{kind}-{item}"}}
            for item in names.get(query["labelSelector"], [])
        ]

    def delete(self, path):
        self.message.append(path)
        return False  # it has gone by itself


def ended(monkeypatch, labels=OURS, api=None):
    monkeypatch.setenv("PODS_NAMESPACE", "team-ml")
    monkeypatch.setenv("PODS_VCLUSTER", "ml")
    api = api or Namespace(labels)
    monkeypatch.setattr(vcluster, "cluster", lambda: api)
    vcluster.clean_up()
    assert [item for item in api.message if item.endswith(("vc-ml", "-certs"))] == PIECES
    return {item.rpartition("/")[2] for item in api.message if item not in PIECES}


SYNCED_OBJECTS = {"services-synced", "configmaps-synced", "secrets-synced"}
OF_VCLUSTER = SYNCED_OBJECTS | {
    f"{kind}-{of}" for kind in ("pods", "persistentvolumeclaims") for of in ("synced", "installed")
}


def test_every_pod_and_volume_of_a_teams_own_namespace_is_told_to_end(monkeypatch):
    theirs = {"pods-theirs", "persistentvolumeclaims-theirs"}
    assert ended(monkeypatch) == OF_VCLUSTER | theirs


@pytest.mark.parametrize(
    "labels",
    [
        {**OURS, "kai-fleet/namespace": "used"},
        {"kai-fleet/team": "other"},
        {},
        RefusedError(403, "Forbidden"),
    ],
)
def test_in_a_namespace_of_others_their_pods_and_volumes_stay(monkeypatch, labels):
    assert ended(monkeypatch, labels) == OF_VCLUSTER


@pytest.mark.parametrize("why", [RefusedError(403, "Forbidden"), UnreachableError("no")])
def test_what_hinders_it_does_not_hinder_the_removal(monkeypatch, capsys, why):
    api = Namespace(OURS)

    def refused(_, **query):
        raise why

    monkeypatch.setattr(api, "list", refused)
    monkeypatch.setattr(vcluster, "cluster", lambda: api)
    monkeypatch.setenv("PODS_NAMESPACE", "team-ml")
    monkeypatch.setenv("PODS_VCLUSTER", "ml")
    vcluster.clean_up()
    assert "pods of team-ml are left to Kubernetes" in capsys.readouterr().err
