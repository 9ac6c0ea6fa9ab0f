"""What somebody changed by hand is seen by a refresh, and put right by the next update."""

from __future__ import annotations

import os
from dataclasses import dataclass

import pytest

from fleet import engine
from sandbox.directory import Sandbox
from tests.faults.case import STACK
from tests.faults.drifts import DELETIONS, EDITS, Hands
from tests.faults.wanted import SOAK, converge, with_ml

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900 if SOAK else 400)]


@dataclass
class Seen:
    """The resources that a refresh found changed or gone, and what the update left wrong."""

    resources: set[str]
    left: list[str]


def waves(case, reference, drifts):
    hands = Hands.of(case)
    for drift in drifts:
        drift.change(hands)
    before = dict(os.environ)
    try:
        stack = engine.stack(STACK, Sandbox(case.sandbox, ()).env(), case.checkout)
        found = set()

        def note(event):
            done = event.res_outputs_event
            if done is None:
                return
            op = str(getattr(done.metadata.op, "value", done.metadata.op))
            if op in ("update", "delete"):
                found.add(done.metadata.urn.rpartition("::")[2])

        stack.refresh(on_event=note)
    finally:
        os.environ.clear()
        os.environ.update(before)
    case.up()
    return Seen(found, reference.differences(case, "added"))


@pytest.fixture(scope="module")
def edited(case, reference):
    case.edit(with_ml)
    converge(case)
    return waves(case, reference, EDITS)


@pytest.fixture(scope="module")
def deleted(case, reference, edited):
    return waves(case, reference, DELETIONS)


@pytest.mark.parametrize("drift", EDITS, ids=lambda drift: drift.name)
def test_an_edit_is_seen(edited, drift):
    assert any(name.startswith(drift.resource) for name in edited.resources), edited.resources


def test_every_edit_is_put_right(edited):
    assert edited.left == []


@pytest.mark.parametrize("drift", DELETIONS, ids=lambda drift: drift.name)
def test_a_deletion_is_seen(deleted, drift):
    assert any(name.startswith(drift.resource) for name in deleted.resources), deleted.resources


def test_everything_deleted_is_there_again(deleted):
    assert deleted.left == []
