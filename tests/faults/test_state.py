"""The stack's state and its lock: two runs at once, a lock left over, a file cut short."""

import json

import pytest

from tests.faults.desired import converge, with_ml, without_ml

pytestmark = [pytest.mark.slow, pytest.mark.faults, pytest.mark.timeout(300)]


def repaired_by_what_it_prints(case, reference, words):
    """An update is refused with these words; what it prints to run leaves all as declared."""
    refused = case.fleet("up")
    assert refused.code == 1
    assert words in refused.last
    assert "Traceback" not in refused.reported
    converge(case)
    assert reference.differences(case, "added") == []
    assert "Nothing changed" in case.up().reported


def test_two_updates_at_once(case, reference, foreign):
    """The second one says who has the lock; the first does not notice."""
    case.edit(without_ml)
    converge(case)
    case.edit(with_ml)  # so much to do that the second comes in between
    first = case.start("up")
    first.wait_for("Namespace ml-namespace created")
    second = case.fleet("up")
    if "ended in the middle of" in second.last:  # the first is in the middle of a step
        assert "If it still runs, wait for it" in second.last
        second = case.fleet("up", "--refresh")
    ran = first.end()
    if "Nothing changed" in ran.reported:
        pytest.fail("the first update had nothing to do, so the two never met")
    assert ran.code == 0, ran.reported
    assert second.code == 1
    assert "another run holds the stack's lock (process" in second.last, second.reported
    assert "wait for it. If it was killed, run: pulumi cancel" in second.last
    assert reference.differences(case, "added") == []


def test_a_state_file_that_is_cut_short(case, reference, foreign):
    case.edit(with_ml)
    case.up()
    case.up()
    whole = case.state.read_text()
    case.state.write_text(whole[: len(whole) // 3])
    repaired_by_what_it_prints(case, reference, "cannot be read")


def test_a_state_that_names_what_is_gone_is_repaired_by_the_printed_command(
    case, reference, foreign
):
    """With --continue-on-error the engine deletes what a resource of a failed team depends on."""
    case.edit(with_ml)
    case.up()
    content = json.loads(case.state.read_text())
    latest = content["checkpoint"]["latest"]
    kept = [item for item in latest["resources"] if not item["urn"].endswith("Command::ml-pods")]
    assert len(kept) == len(latest["resources"]) - 1
    latest["resources"] = kept
    case.state.write_text(json.dumps(content))
    repaired_by_what_it_prints(case, reference, "pulumi state repair --yes --stack")


def test_attributes_that_a_kill_left_empty_are_no_broken_state(case, reference, foreign):
    """The backend writes that small file in place; the state beside it is whole."""
    case.edit(with_ml)
    case.up()
    beside = case.state.with_name(f"{case.state.name}.attrs")
    assert beside.stat().st_size, "this CLI keeps no attributes beside a state"
    beside.write_bytes(b"")
    repaired_by_what_it_prints(case, reference, "-name '*.attrs' -empty -delete")
