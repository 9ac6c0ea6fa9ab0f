"""A larger size in the stack file: the volumes of a vCluster's store grow, and its pods stay.

Its control planes have a PriorityClass, which the guard of pods admits for them.
"""

import pytest
from kubernetes import client

from tests.engine.product import Product, project

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

CLASS = "sandbox"
PRIORITY_CLASS = {"metadata": {"name": "control-planes"}, "value": 1000}
NAMES = {"dev": "dev-etcd", "ml": "ml"}  # by team: the StatefulSet of its store
CLAIMS = {
    "dev": {f"data-dev-etcd-{number}" for number in range(3)},
    "ml": {"data-ml-0"},
}


def two_teams(config):
    teams = config["kai-fleet:teams"]
    del teams["research"]
    config.pop("kai-fleet:teamStacks")
    teams["ml"]["scheduler"] = {"mode": "default"}
    del teams["ml"]["queues"]
    config["kai-fleet:vcluster"] |= {"size": "1Gi", "priorityClassName": "control-planes"}
    teams["dev"]["vcluster"] = {"store": {"type": "etcd", "replicas": 3}}


def larger(config):
    config["kai-fleet:vcluster"]["size"] = "2Gi"


class Stores:
    """What the host has of the stores of both teams."""

    def __init__(self, host):
        self.apps, self.core = client.AppsV1Api(host), client.CoreV1Api(host)

    def stateful_set(self, team):
        return self.apps.read_namespaced_stateful_set(NAMES[team], f"team-{team}")

    def template(self, team):
        (claim,) = self.stateful_set(team).spec.volume_claim_templates
        return claim.spec.resources.requests["storage"]

    def requested(self, team):
        claims = self.core.list_namespaced_persistent_volume_claim(f"team-{team}").items
        return {claim.metadata.name: claim.spec.resources.requests["storage"] for claim in claims}

    def etcds(self):
        """The UIDs of the pods of the etcd, each with that of its owner."""
        pods = self.core.list_namespaced_pod("team-dev", label_selector="app=vcluster-etcd").items
        return {pod.metadata.uid: pod.metadata.owner_references[0].uid for pod in pods}

    def priorities(self, team):
        """Those of the pods of the control plane and of its etcd."""
        labels = f"app in (vcluster,vcluster-etcd),release={team}"
        pods = self.core.list_namespaced_pod(f"team-{team}", label_selector=labels).items
        return [pod.spec.priority for pod in pods]


@pytest.fixture
def priority_class(host):
    api = client.SchedulingV1Api(host)
    api.create_priority_class(PRIORITY_CLASS)
    yield
    api.delete_priority_class("control-planes")


@pytest.fixture
def may_expand(host):
    """A function that lets the volumes of the default class grow, until the test ends."""
    classes = client.StorageV1Api(host)

    def allow(value=True):
        classes.patch_storage_class(CLASS, {"allowVolumeExpansion": value})

    yield allow
    allow(None)


def test_a_larger_size_grows_the_volumes_of_a_store(
    sandbox, host, may_expand, priority_class, tmp_path
):
    product = Product.of("sandbox", sandbox, project(tmp_path / "project"))
    product.edit(two_teams)
    product.up()
    stores = Stores(host)
    before = {team: stores.stateful_set(team).metadata.uid for team in NAMES}
    etcds = stores.etcds()
    assert len(etcds) == 3
    assert stores.priorities("ml") == [1000]
    assert stores.priorities("dev") == [1000] * 4
    product.edit(larger)

    with pytest.raises(Exception, match="does not grow to 2Gi") as refused:
        product.up()
    assert "Write the size before at vcluster.size" in str(refused.value)
    for team, names in CLAIMS.items():
        assert stores.stateful_set(team).metadata.uid == before[team]
        assert stores.requested(team) == dict.fromkeys(names, "1Gi")

    may_expand()
    product.up()
    for team, names in CLAIMS.items():
        assert stores.requested(team) == dict.fromkeys(names, "2Gi")
        assert stores.template(team) == "2Gi"
        assert stores.stateful_set(team).metadata.uid != before[team]
    owner = stores.stateful_set("dev").metadata.uid
    assert stores.etcds() == dict.fromkeys(etcds, owner), "the same pods, and the new owner"
    assert product.up().changed == {}
