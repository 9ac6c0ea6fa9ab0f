"""Types and rules in one report."""

import pytest

from kai_fleet.names import TEAM
from kai_fleet.ownership.deployed import Deployed
from kai_fleet_cli.plan.offline import plan
from kai_fleet_cli.stack_file.reading import stacks
from kai_fleet_policies.finding import Level, report
from kai_fleet_stack import validation

CLUSTER = {"name": "lab", "context": "lab"}
VIRTUAL = {"mode": "virtual", "version": "v0.16.8"}
OWN_NODES = {"scheduler": VIRTUAL, "nodePool": {"pool": "a"}, "gpus": 2}


def refused(**raw):
    raw = {"cluster": CLUSTER, "kai": {"version": "v0.16.8"}, **raw}
    return {(p.check, p.path) for p in validation.validate(raw).refused}


def removals(raw, *deployed):
    urns = [f"urn:pulumi:s::p::{TEAM}::{name}" for name in deployed]
    deployed = Deployed(urns=frozenset(urns))
    findings = validation.validate(raw, deployed, stack="dev").findings
    return [finding for finding in findings if finding.check == validation.REMOVAL_RULE]


@pytest.mark.parametrize("stack", stacks())
def test_no_rule_refuses_a_stack_of_this_repository_or_warns_of_prod(stack):
    problems = plan(stack).problems
    assert [str(p) for p in problems if p.level is Level.MANDATORY or stack == "prod"] == []


@pytest.mark.parametrize(
    ("image", "refuses"),
    [
        ("kindest/node:v1.34.0@sha256:0123", True),
        ("registry:5000/kindest/node:v1.33.4", False),
        (None, False),
    ],
)
def test_the_version_of_a_kind_cluster_is_that_of_its_image(image, refuses):
    access = {"type": "NodePort", "port": 30000}
    vcluster = {"version": "v0.34.7", "kubernetesVersion": "v1.33.4", "access": access}
    old = OWN_NODES | {"vcluster": vcluster}
    kind = {**({"image": image} if image else {})}
    found = refused(cluster={"name": "lab", "kind": kind}, kai=None, teams={"ml": old})
    rule = ("vcluster-host-kubernetes", "kai-fleet:teams.ml.vcluster.version")
    assert (rule in found) == refuses


def test_quotas_above_the_parents_name_the_key():
    tree = {"a": {"gpu": {"quota": 2}, "children": {"b": {"gpu": {"quota": 4}}}}}
    assert [rule for rule, _ in refused(queues=tree)] == ["queue-quota"]


def test_a_warning_does_not_refuse():
    teams = {"ml": {"scheduler": {"mode": "virtual", "version": "v0.7.11"}, "nodePool": {"p": "a"}}}
    verdict = validation.validate({"cluster": CLUSTER, "teams": teams})
    assert verdict.refused == []
    assert {p.level for p in verdict.problems} == {Level.ADVISORY}


def test_the_report_counts_and_lists():
    text = report(validation.validate({"cluster": {"name": "lab"}, "tems": {}}).refused)
    assert text.startswith("the stack's configuration has 2 mistakes:")
    assert "kai-fleet:tems: key tems: is an unknown key; write teams [config]" in text


def test_with_a_wrong_key_no_rule_is_asked():
    teams = {"nlp": OWN_NODES, "web": OWN_NODES}
    assert {rule for rule, _ in refused(kai=None, teams=teams)} == {"team-node-pools"}
    assert refused(kai=None, teams=teams, colour="red") == {("config", "kai-fleet:colour")}


def test_another_name_of_a_cluster_is_refused():
    def found(**outputs):
        renamed = {"cluster": CLUSTER | {"name": "lab-2"}}
        return validation.validate(renamed, Deployed(outputs=outputs)).refused

    (refusal,) = found(cluster="lab")
    assert str(refusal).startswith("kai-fleet:cluster.name: cluster lab-2: is not lab, the name")
    assert found(cluster="lab-2") == []
    assert found() == [], "a first update"


def test_a_deployed_team_that_cannot_be_read_is_not_removed():
    raw = {"cluster": CLUSTER, "teams": {"ml": {**OWN_NODES, "scheduler": {}}, "nlp": OWN_NODES}}
    assert removals(raw, "ml", "nlp", "web") == []
    raw = {"cluster": CLUSTER, "removed": "web"}
    assert removals(raw, "web") == []
