"""Types and rules in one report."""

import pytest

from kai_fleet_cli.stack_file import reading
from kai_fleet_policies import validation
from kubectl_fleet.rules.problem import Level

CLUSTER = {"name": "lab", "context": "lab"}


def refused(**raw):
    raw = {"cluster": CLUSTER, "kai": {"version": "v0.16.8"}, **raw}
    return {(p.rule, p.path) for p in validation.validate(raw).refused}


@pytest.mark.parametrize("stack", ["sandbox", "sandbox-host", "dev", "prod"])
def test_no_rule_refuses_a_stack_of_this_repository(stack):
    verdict = validation.validate(reading.read(reading.path_of(stack)))
    assert verdict.refused == []


def test_wrong_types_and_broken_rules_come_in_one_report():
    found = refused(
        gpu={"provider": "oprator"},
        kai={"version": "v0.16.8"},
        queues={"a": {"children": {"b": {"children": {"a": {}}}}}},
        teams={
            "x": {"scheduler": {"mode": "virtul"}},
            "nlp": {"scheduler": {"mode": "host"}, "queue": "nosuch"},
        },
    )
    assert found == {
        ("config", "kai-fleet:gpu.provider"),
        ("config", "kai-fleet:teams.x.scheduler.mode"),
        ("queue-tree", "kai-fleet:queues.a.children.b.children.a"),
        ("workload-leaf-queue", "kai-fleet:teams.nlp.queue"),
    }


def test_a_wrong_amount_brings_no_wrong_sums_along():
    tree = {"a": {"gpu": {"quota": "x"}, "children": {"b": {"gpu": {"quota": 4}}}}}
    assert refused(queues=tree) == {("config", "kai-fleet:queues.a.gpu.quota")}


def test_quotas_above_the_parents_name_the_key():
    tree = {"a": {"gpu": {"quota": 2}, "children": {"b": {"gpu": {"quota": 4}}}}}
    assert [rule for rule, _ in refused(queues=tree)] == ["queue-quota"]


def test_a_warning_does_not_refuse():
    teams = {"ml": {"scheduler": {"mode": "virtual", "version": "v0.7.11"}, "nodePool": {"p": "a"}}}
    verdict = validation.validate({"cluster": CLUSTER, "teams": teams})
    assert verdict.refused == []
    assert {p.level for p in verdict.problems} == {Level.ADVISORY}


def test_the_report_counts_and_lists():
    report = validation.report(
        validation.validate({"cluster": {"name": "lab"}, "tems": {}}).refused
    )
    assert report.startswith("the stack's configuration has 2 mistakes:")
    assert "kai-fleet:tems: key tems: is an unknown key; write teams [config]" in report
