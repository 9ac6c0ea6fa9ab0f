"""Before a refresh: the records of the stack's vClusters, and of no other release."""

import pytest

from kai_fleet.releases.helm_record import Forged
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import live_cluster
from kai_fleet_cli.recovery.state import RELEASE, ExportedState

HOST = "urn:pulumi:lab::kai-fleet::pulumi:providers:kubernetes::host"
OF = "urn:pulumi:lab::kai-fleet::kai-fleet:index:{}$" + f"{RELEASE}::{{}}-release"


def release(team, part="VirtualCluster"):
    return {
        "urn": OF.format(part, team),
        "type": RELEASE,
        "inputs": {"namespace": f"team-{team}", "name": team},
        "provider": f"{HOST}::id",
    }


def believed(monkeypatch, forged):
    asked = []

    class Cluster:
        def __init__(self, *_):
            """Nothing to open."""

        def forged(self, namespace, name):
            asked.append(name)
            return forged.get(name, [])

    monkeypatch.setattr(live_cluster, "LiveCluster", Cluster)
    host = {"urn": HOST, "type": "pulumi:providers:kubernetes", "inputs": {}}
    resources = [host, release("ml"), release("nlp"), release("kai", "KaiScheduler")]
    live_cluster.check_records(ExportedState({"resources": resources}), None, lambda _: None)
    return asked


def test_every_vcluster_is_looked_at_and_no_kai(monkeypatch):
    assert believed(monkeypatch, {}) == ["ml", "nlp"]


def test_all_that_are_wrong_are_named_at_once(monkeypatch):
    forged = {name: [Forged(f"{name}-x", "has a hook, Job x")] for name in ("ml", "nlp")}
    with pytest.raises(UserError) as why:
        believed(monkeypatch, forged)
    for name in ("ml", "nlp"):
        assert f"kubectl -n team-{name} delete secret {name}-x" in str(why.value)
