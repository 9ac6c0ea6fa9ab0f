"""The step that ends what a vCluster left in its namespace."""

import pytest

from kai_fleet.cluster.kube.errors import RefusedError, UnreachableError
from kai_fleet.cluster.probes import vcluster

SPACE = "/api/v1/namespaces/team-ml"
SYNCED = "vcluster.loft.sh/managed-by=ml"
INSTALLED = "app in (vcluster,vcluster-etcd),release=ml"
PIECES = [f"{SPACE}/secrets/vc-ml", f"{SPACE}/secrets/ml-certs"]
OURS = {"kai-fleet/team": "ml"}


class Api:
    """A namespace with a pod and a volume of somebody else beside the vCluster's."""

    def __init__(self, labels):
        self.told, self.labels = [], labels

    def get(self, path):
        assert path == SPACE
        if isinstance(self.labels, Exception):
            raise self.labels
        return {"metadata": {"name": "team-ml", "labels": self.labels}}

    def list(self, path, **query):
        kind = path.removeprefix(f"{SPACE}/")
        names = {SYNCED: ["synced"]}
        if kind in ("pods", "persistentvolumeclaims"):
            names |= {INSTALLED: ["installed"], "": ["synced", "installed", "theirs"]}
        return [
            {"metadata": {"name": f"{kind}-{it}"}} for it in names.get(query["labelSelector"], [])
        ]

    def delete(self, path):
        self.told.append(path)
        return False  # it has gone by itself


def ended(monkeypatch, labels=OURS, api=None):
    monkeypatch.setenv("PODS_NAMESPACE", "team-ml")
    monkeypatch.setenv("PODS_VCLUSTER", "ml")
    api = api or Api(labels)
    monkeypatch.setattr(vcluster, "cluster", lambda: api)
    vcluster.clean_up()
    assert [it for it in api.told if it.endswith(("vc-ml", "-certs"))] == PIECES
    return {it.rpartition("/")[2] for it in api.told if it not in PIECES}


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


def test_a_cluster_that_is_unknown_by_now_does_not_either(monkeypatch, capsys):
    monkeypatch.setenv("PODS_NAMESPACE", "team-ml")
    monkeypatch.setenv("PODS_VCLUSTER", "ml")
    monkeypatch.setenv("PROBE_CONTEXT", "gone")
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    vcluster.clean_up()
    assert "(the kubeconfig cannot be used: " in capsys.readouterr().err


@pytest.mark.parametrize("why", [RefusedError(403, "Forbidden"), UnreachableError("no")])
def test_what_hinders_it_does_not_hinder_the_removal(monkeypatch, capsys, why):
    api = Api(OURS)

    def refused(_, **query):
        raise why

    monkeypatch.setattr(api, "list", refused)
    monkeypatch.setattr(vcluster, "cluster", lambda: api)
    monkeypatch.setenv("PODS_NAMESPACE", "team-ml")
    monkeypatch.setenv("PODS_VCLUSTER", "ml")
    vcluster.clean_up()
    assert "pods of team-ml are left to Kubernetes" in capsys.readouterr().err
