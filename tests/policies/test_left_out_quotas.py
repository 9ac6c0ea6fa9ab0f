"""A quota that is left out was 0 before version 0.2: the preview says what it becomes."""

import json

import pulumi
import pytest

from kai_fleet.provider import QUEUES
from kai_fleet.provider.values import packed
from kai_fleet.settings import load
from kai_fleet.state.deployed_state import deployed_state_of
from kai_fleet_policies.stack import left_out_quotas
from tests.unit.test_unnamed_removals import settings as first_of_the_program

URN = "urn:pulumi:prod::kai-fleet::kai-fleet:index:Team$kai-fleet:index:Queues::ml-queues"
POOL = {"scheduler": {"mode": "virtual", "version": "v0.16.8"}, "nodePool": {"pool": "a"}}


def share(quota):
    return {"quota": quota, "limit": -1, "overQuotaWeight": 1}


def spec(cpu, memory, gpu):
    return {"resources": {"cpu": share(cpu), "memory": share(memory), "gpu": share(gpu)}}


def deployed(**specs):
    return deployed_state_of([(URN, QUEUES, {"queues": packed(specs)})])


def team(tree):
    return {"ml": {**POOL, "gpus": 8, "queues": tree}}


def said(tree, past):
    raw = {"cluster": {"name": "prod", "context": "prod"}, "teams": team(tree)}
    return [str(p) for p in left_out_quotas.problems(load(raw).settings, past.queues)]


TREE = {"default": {"children": {"train": {"gpu": 6}, "serve": {"gpu": 2, "cpu": 0}}}}
OLD = deployed(default=spec(0, 0, 0), train=spec(0, 0, 6), serve=spec(0, 0, 2))


def test_what_was_0_and_is_left_out_is_said_with_what_it_becomes():
    (text,) = said(TREE, OLD)
    assert text == (
        "kai-fleet:teams.ml.queues: quotas of team ml: that are left out were 0 until now:"
        " cpu becomes unlimited (default, train); memory becomes unlimited (default, train, serve);"
        " gpu becomes 8 (default). Write 0 where 0 is meant, before the update [quota-left-out]"
    )


@pytest.mark.parametrize(
    ("tree", "past"),
    [
        (TREE, deployed()),  # a first update
        (TREE, deployed(default=spec(-1, -1, 8), train=spec(-1, -1, 6), serve=spec(0, -1, 2))),
        ({"default": {"cpu": 0, "memory": 0, "gpu": 0}}, deployed(default=spec(0, 0, 0))),
        ({"default": {"cpu": 4, "memory": "1G", "gpu": 8}}, deployed(default=spec(0, 0, 0))),
        ({"default": {"children": {"a": {"gpu": 8}}}}, deployed(default=None, a={"resources": 1})),
    ],
    ids=["new", "made already", "zeros are written", "numbers are written", "odd state"],
)
def test_nothing_is_said_where_nothing_changes_its_meaning(tree, past):
    assert said(tree, past) == []


def test_many_queues_are_counted():
    leaves = {f"q{number}": {"gpu": 0} for number in range(9)}
    (text,) = said(leaves, deployed(**{name: spec(0, 0, 0) for name in leaves}))
    assert "cpu becomes unlimited (q0, q1, q2, q3, q4 and 4 more)" in text


def test_the_program_warns_and_goes_on(monkeypatch):
    warned = []
    monkeypatch.setattr(pulumi.log, "warn", warned.append)
    assert first_of_the_program(monkeypatch, OLD, teams=json.loads(json.dumps(team(TREE))))
    assert [text for text in warned if "[quota-left-out]" in text] == said(TREE, OLD)
