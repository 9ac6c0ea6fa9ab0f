"""What somebody changed by hand is seen by a refresh, and put right by the next update."""

import json
import re
from dataclasses import dataclass

import pytest

from tests.faults import dumps
from tests.faults.desired import Reference, converge, with_ml
from tests.faults.drifts import DELETIONS, EDITS, Hands

pytestmark = [pytest.mark.faults, pytest.mark.timeout(400)]

DRIFTS = (*EDITS, *DELETIONS)


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
        subjects = [
            f"{item['kind']} {item['name']}" for item in self.doctor if item["check"] == check
        ]
        return any(re.search(rf"\b{re.escape(name)}\b", subject) for subject in subjects)


def waves(case, before, drifts):
    hands = Hands.of(case)
    for drift in drifts:
        drift.change(hands)
    observed = case.typed("pulumi refresh --preview-only --json --stack faults")
    assert observed.code == 0, observed.reported
    steps = json.loads(observed.reported[observed.reported.index("{\n") :])["steps"]
    found = [
        step["urn"].rpartition("::")[2] for step in steps if step["op"] in ("update", "delete")
    ]
    doctor = case.fleet("doctor", "--json")
    assert doctor.code == 1, doctor.reported
    findings = [
        finding for finding in json.loads(doctor.reported)["findings"] if finding["level"] != "ok"
    ]
    message = [
        finding
        for finding in findings
        if ".venv/bin/fleet up --refresh --stack faults" in finding["fix"]
    ]
    assert len(converge(case, ("up", "--refresh"))) == 1, "what the doctor printed, and no more"
    return Seen(set(found), message, before.differences(case, "added"))


@pytest.fixture(scope="module")
def added(case):
    """The clusters with `ml` in them, before anybody touches these: the others need not be made."""
    case.edit(with_ml)
    converge(case)
    found = Reference()
    found.host["added"] = dumps.dump(case.host)
    found.inside["added"] = dumps.dump(case.inside("ml"))
    return found


@pytest.fixture(scope="module")
def seen(case, added):
    """Every change at once."""
    return waves(case, added, DRIFTS)


@pytest.mark.parametrize("drift", DRIFTS, ids=lambda drift: drift.name)
def test_a_deletion_or_an_edit_is_seen(seen, drift):
    assert any(name.startswith(drift.resource) for name in seen.resources), seen.resources


@pytest.mark.parametrize(
    "drift", [item for item in DRIFTS if item.doctor], ids=lambda drift: drift.name
)
def test_the_doctor_sees_a_deletion(seen, drift):
    assert seen.tells(drift), seen.doctor


def test_everything_is_there_again_as_it_was(seen):
    assert seen.left == []
