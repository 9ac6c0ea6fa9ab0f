"""vcluster-node-pool: a control plane is on no other team's nodes."""

from kai_fleet_policies.validation import validate


def told(of_all=None, **own):
    teams = {
        name: {
            "scheduler": {"mode": "virtual", "version": "v0.16.8"},
            "nodePool": {"pool": name},
            "vcluster": own.get(name, {}),
        }
        for name in "abc"
    }
    raw = {"cluster": {"name": "p", "context": "p"}, "vcluster": of_all or {}, "teams": teams}
    problems = [p for p in validate(raw).problems if p.check == "vcluster-node-pool"]
    return {p.path: (p.subject, p.message) for p in problems}


def test_nodes_of_another_team_are_told_once_where_they_are_written():
    assert told({"nodePool": {"pool": "a"}}) == {
        "kai-fleet:vcluster.nodePool": (
            "vClusters b and c",
            "would run on {pool: a}, the nodes of team a; write the labels of nodes of no team, or"
            " drop the key: then the team's own nodes run it",
        )
    }
    ((path, (subject, message)),) = told(b={"nodePool": {"pool": "c", "zone": "1"}}).items()
    assert path == "kai-fleet:teams.b.vcluster.nodePool" and subject == "vCluster b"
    assert "would run on {pool: c, zone: 1}, the nodes of team c" in message


def test_nodes_of_no_team_and_its_own_pass():
    assert told() == {}
    assert told({"nodePool": {"pool": "platform"}}) == {}
    assert told(a={"nodePool": {"pool": "a"}}) == {}
    assert told({"nodePool": {"zone": "1"}}) == {}  # a node of a team may be among them, or not
