"""A team's namespace goes once no vCluster is in it, and says what to do while one is.

That the engine then leaves everything: tests/engine/test_team_stacks.py.
"""

import pytest

from kai_fleet.kube.errors import UnreachableError
from kai_fleet.probes import __main__ as fleet_probe
from kai_fleet.probes import former


class Cluster:
    def __init__(self, *answers, refusal=None, deployments=()):
        self.answers, self.refusal = list(answers), refusal
        self.deleted, self.deployments = [], deployments

    def list(self, path, **query):
        place, _, kind = path.rpartition("/")
        assert (place, query) == (
            "/apis/apps/v1/namespaces/team-nlp",
            {"labelSelector": "app=vcluster"},
        )
        if kind == "deployments":
            return self.deployments
        assert kind == "statefulsets"
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(found, Exception):
            raise found
        return found

    def delete(self, path):
        self.deleted.append(path)
        if self.refusal:
            raise self.refusal


def probe(monkeypatch, *answers, refusal=None):
    found = answers[0] if isinstance(answers[0], Cluster) else Cluster(*answers, refusal=refusal)
    monkeypatch.setenv("VACANT_NAMESPACE", "team-nlp")
    monkeypatch.setattr(former, "cluster", lambda: found)
    monkeypatch.setattr(former, "_VACANT_SECONDS", 1.0)
    monkeypatch.setattr("sys.argv", ["fleet-probe", "vacant"])
    fleet_probe.main()
    return found.deleted


def stateful_set(**more):
    return {"metadata": {"name": "nlp", **more}}


def test_an_empty_one_begins_to_end(monkeypatch):
    assert probe(monkeypatch, []) == ["/api/v1/namespaces/team-nlp"]


def test_what_may_not_be_deleted_here_is_left_to_the_engine(monkeypatch, capsys):
    probe(monkeypatch, [], refusal=UnreachableError("no answer"))
    assert "warning: namespace team-nlp is left to the engine" in capsys.readouterr().err


def test_a_vcluster_that_is_being_deleted_does_not_count(monkeypatch):
    probe(monkeypatch, [stateful_set(deletionTimestamp="now")])


def test_one_that_is_gone_in_a_moment_is_waited_for(monkeypatch):
    probe(monkeypatch, [stateful_set()], [])


@pytest.mark.parametrize("kept", [True, False])
def test_one_that_runs_holds_it_with_what_to_do(kept, monkeypatch, capsys):
    """Also one that keeps its state elsewhere, which is a Deployment."""
    cluster = Cluster([stateful_set()]) if kept else Cluster([], deployments=[stateful_set()])
    with pytest.raises(SystemExit) as ended:
        probe(monkeypatch, cluster)
    assert ended.value.code == 1
    assert cluster.deleted == []
    said = "".join(capsys.readouterr())
    assert "namespace team-nlp holds the vCluster nlp, so it stays: destroy the stack of" in said
    assert "or put kai-fleet:teamStacks.nlp back" in said


def test_where_nobody_can_look_it_stays(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        probe(monkeypatch, UnreachableError("no answer"))
    assert "namespace team-nlp cannot be looked at" in "".join(capsys.readouterr())


def test_one_that_others_made_stays(monkeypatch):
    monkeypatch.setenv("VACANT_NAMESPACE_STAYS", "yes")
    assert probe(monkeypatch, []) == []
