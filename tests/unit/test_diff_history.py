"""Edits of a stack file against a commit of real git history."""

import pytest

from kai_fleet_cli.diff.base import BaseState, planning
from kai_fleet_cli.diff.report import DiffReport
from kai_fleet_cli.plan import offline
from tests.unit.golden import history
from tests.unit.golden.history import GOOD, git

VISION = """\
    vision:
      scheduler: {mode: virtual, version: v0.14.7}
      nodePool: {pool: vision}
      gpus: 2
      queues: {all: {cpu: {quota: 1}, memory: {quota: 1G}, gpu: {quota: 2}}}
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    yield from history.made(
        tmp_path_factory.mktemp("scratch"), tmp_path_factory.mktemp("repository")
    )


@pytest.fixture(scope="module")
def good(repository):
    """The plan at `good`, made once by the code there."""
    with planning(repository.project, "good", "lab") as run:
        base = run.base()
    assert base.state is BaseState.PLANNED
    assert base.commit == git(repository.top, "rev-parse", "good")
    return base


@pytest.fixture
def edited(repository, good, tmp_path):
    """The report for another text of the stack file, against `good`."""

    def report(text):
        file = tmp_path / "Pulumi.lab.yaml"
        file.write_text(text)
        found = DiffReport("lab", good, offline.plan("lab", file))
        return found, [str(sentence) for sentence in found.sentences]

    return report


def test_a_version_switch(edited):
    found, (sentence,) = edited(GOOD.replace("v0.7.11", "v0.9.3"))
    assert found.exit_code == 3
    assert sentence.startswith("research: KAI v0.7.11 → v0.9.3, replaced, its 3 queues are re-decl")
    assert "the new chart has kai-operator" in sentence
    assert found.untouched == ["ml"]
    assert "research-kai-release" in {change.name for change in found.difference.replaced}


def test_a_quota_change(edited):
    found, (sentence,) = edited(
        GOOD.replace("gpu: {quota: 3}", "gpu: {quota: 2, limit: 3}").replace(
            "cpu: {quota: 2}, ", ""
        )
    )
    assert sentence == (
        "research: queue alpha: gpu quota 3 → 2, gpu limit unlimited → 3; queue beta: cpu quota"
        " 2 → 0"
    )
    assert not found.difference.replaced


def test_a_team_added(edited):
    found, (sentence,) = edited(GOOD + VISION)
    assert sentence == (
        "vision: new team in mode virtual with KAI v0.14.7, vCluster v0.36.1 on nodes pool=vision,"
        " 2 GPUs, 1 queue"
    )
    assert {change.team for change in found.difference.created} == {"vision"}
    assert found.untouched == ["ml", "research"]


def test_a_team_removed(edited):
    found, (sentence,) = edited(GOOD[: GOOD.index("    research:")])
    assert sentence == (
        "research: removed: its vCluster, its KAI v0.7.11, 3 queues, and the namespace"
        " team-research with every pod and volume in it, once it is named (kai-fleet:removed)"
    )
    assert {change.team for change in found.difference.deleted} == {"research"}


def test_the_guards_of_a_switched_team_are_no_news(edited):
    """They know its queues, and from v0.15 that a PodGroup may have them."""
    _, (sentence,) = edited(GOOD.replace("v0.7.11", "v0.16.8"))
    assert sentence.startswith("research: KAI v0.7.11 → v0.16.8")
    assert "ValidatingAdmissionPolicy" not in sentence


def test_a_queue_renamed(edited):
    found, (sentence,) = edited(GOOD.replace("beta:", "gamma:"))
    assert sentence.startswith("research: queue beta becomes gamma (KAI has no renames")
    assert [change.name for change in found.difference.created] == ["research-queues-gamma"]
    assert [change.name for change in found.difference.deleted] == ["research-queues-beta"]


def test_the_mode_changed(edited):
    other = GOOD.replace(
        "scheduler: {mode: virtual, version: v0.16.8}", "scheduler: {mode: default}"
    )
    queues = other[other.index("      queues:") : other.index("    research:")]
    found, (sentence,) = edited(other.replace(queues, "", 1))
    assert sentence.startswith("ml: mode virtual → default; KAI v0.16.8 is removed, with 1 queue")
    assert found.untouched == ["research"]


def test_only_a_secret_was_encrypted_anew(edited, good):
    found, sentences = edited(GOOD)
    again = DiffReport("lab", good, found.now, {"other:token": "v1:HIDDEN-TWO"})
    assert (sentences, again.difference.same, again.exit_code) == ([], True, 3)
