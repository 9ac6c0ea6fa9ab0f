"""Which stacks a sandbox lets in: one platform, and the team stacks on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet import stack_file
from fleet.environment import OCCUPANT, NotPossible, for_stack
from sandbox import lifecycle
from sandbox.lifecycle import Sandbox

PLATFORM = """\
config:
  kai-fleet:cluster: {name: lab, context: kai-fleet-sandbox}
  kai-fleet:vcluster: {access: {type: ClusterIP}}
  kai-fleet:teamStacks: {vision: {nodePool: {pool: vision}, gpus: 4}}
"""
TEAM = """\
config:
  kai-fleet:platform: {stack: lab}
  kai-fleet:team: {name: NAME, scheduler: {mode: default}, nodePool: {pool: vision}, gpus: 4}
"""


@pytest.fixture
def sandbox(tmp_path, monkeypatch) -> Path:
    """A sandbox's folder; the stack files lab, lab-vision, lab-audio and other are beside it."""
    files = {
        "lab": PLATFORM,
        "other": PLATFORM,
        "lab-vision": TEAM.replace("NAME", "vision"),
        "lab-audio": TEAM.replace("NAME", "audio"),
    }
    for name, text in files.items():
        (tmp_path / f"Pulumi.{name}.yaml").write_text(text)
    monkeypatch.setattr(stack_file, "ROOT", tmp_path)
    running = Sandbox(tmp_path, ())
    monkeypatch.setattr(lifecycle, "up", lambda say: running)
    monkeypatch.setattr(lifecycle, "find", lambda: running)
    return tmp_path


def refusal(stack):
    with pytest.raises(NotPossible) as refused:
        for_stack(stack, print)
    return str(refused.value)


def test_team_stacks_go_where_their_platform_is(sandbox):
    for_stack("lab", print)
    assert for_stack("lab-vision", print).occupant is None
    assert (sandbox / OCCUPANT).read_text() == "lab"


def test_a_team_stack_that_goes_leaves_the_place_to_its_platform(sandbox):
    for_stack("lab", print)
    for_stack("lab-vision", print).vacate()
    assert (sandbox / OCCUPANT).exists()
    for_stack("lab", print).vacate()
    assert not (sandbox / OCCUPANT).exists()


def test_a_team_stack_without_its_platform_says_what_to_run(sandbox):
    assert refusal("lab-vision").endswith("first: make up STACK=lab")
    for_stack("other", print)
    assert refusal("lab-vision").endswith("first: make down, then make up STACK=lab")


def test_a_team_stack_alone_starts_no_sandbox(sandbox, monkeypatch):
    monkeypatch.setattr(lifecycle, "find", lambda: None)
    monkeypatch.setattr(lifecycle, "up", lambda say: pytest.fail("started"))
    assert refusal("lab-vision").endswith("first: make up STACK=lab")


def test_another_platform_is_refused(sandbox):
    for_stack("lab", print)
    assert "the sandbox runs stack lab" in refusal("other")


def test_what_is_not_granted_is_refused_before_anything_starts_but_can_be_removed(sandbox):
    for_stack("lab", print)
    assert "is not granted by stack lab" in refusal("lab-audio")
    for_stack("lab-audio", print, judged=False)
