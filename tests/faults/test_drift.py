"""What somebody changed by hand is seen by a refresh, and put right by the next update."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import pytest

from tests.faults.drifts import EDITS, INSIDE, OUTSIDE, Hands
from tests.faults.wanted import SOAK, converge, with_ml

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900 if SOAK else 400)]


@dataclass
class Seen:
    """The resources that a refresh found changed or gone, what the doctor said, and what the update
    left wrong.
    """

    resources: set[str]
    doctor: list[dict[str, str]]
    left: list[str]

    def tells(self, drift):
        """Whether the doctor names the thing, and the command that mends it."""
        check, name = drift.doctor
        subjects = [it["subject"] for it in self.doctor if it["check"] == check]
        return any(re.search(rf"\b{re.escape(name)}\b", subject) for subject in subjects)


def waves(case, reference, drifts):
    hands = Hands.of(case)
    for drift in drifts:
        drift.change(hands)
    looked = case.fleet("drift")
    assert looked.code == 3, looked.said
    assert "fleet up --refresh --stack faults" in looked.last, looked.said
    found = re.findall(r"^\w+ (\S+): (?:gone|changed)$", looked.said, re.M)
    doctor = case.fleet("doctor", "--json")
    assert doctor.code == 1, doctor.said
    findings = [it for it in json.loads(doctor.said)["findings"] if it["health"] != "ok"]
    told = [it for it in findings if ".venv/bin/fleet up --refresh --stack faults" in it["fix"]]
    mended = case.fleet("up", "--refresh")
    assert mended.code == 0, mended.said
    return Seen(set(found), told, reference.differences(case, "added"))


@pytest.fixture(scope="module")
def edited(case, reference):
    case.edit(with_ml)
    converge(case)
    return waves(case, reference, EDITS)


@pytest.fixture(scope="module")
def deleted_inside(case, reference, edited):
    return waves(case, reference, INSIDE)


@pytest.fixture(scope="module")
def deleted_outside(case, reference, deleted_inside):
    return waves(case, reference, OUTSIDE)


@pytest.mark.parametrize("drift", EDITS, ids=lambda drift: drift.name)
def test_an_edit_is_seen(edited, drift):
    assert any(name.startswith(drift.resource) for name in edited.resources), edited.resources


def test_every_edit_is_put_right(edited):
    assert edited.left == []


@pytest.mark.parametrize("drift", INSIDE, ids=lambda drift: drift.name)
def test_a_deletion_inside_a_vcluster_is_seen(deleted_inside, drift):
    seen = deleted_inside.resources
    assert any(name.startswith(drift.resource) for name in seen), seen


def test_everything_deleted_inside_is_there_again(deleted_inside):
    assert deleted_inside.left == []


@pytest.mark.parametrize("drift", [it for it in INSIDE if it.doctor], ids=lambda drift: drift.name)
def test_the_doctor_sees_a_deletion_inside_a_vcluster(deleted_inside, drift):
    assert deleted_inside.tells(drift), deleted_inside.doctor


@pytest.mark.parametrize("drift", [it for it in OUTSIDE if it.doctor], ids=lambda drift: drift.name)
def test_the_doctor_sees_a_deletion(deleted_outside, drift):
    assert deleted_outside.tells(drift), deleted_outside.doctor


@pytest.mark.parametrize("drift", OUTSIDE, ids=lambda drift: drift.name)
def test_a_deletion_is_seen(deleted_outside, drift):
    seen = deleted_outside.resources
    assert any(name.startswith(drift.resource) for name in seen), seen


def test_everything_deleted_is_there_again(deleted_outside):
    assert deleted_outside.left == []
