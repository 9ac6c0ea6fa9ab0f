"""The stack's state and its lock: two runs at once, a lock left over, a file cut short."""

import pytest
from kubernetes import client

from sandbox.directory import read_state
from sandbox.tools.path_tools import numbers
from sandbox.tools.table import KUBERNETES_PROVIDER
from tests.faults import dumps
from tests.faults.case import client_of
from tests.faults.wanted import SOAK, converge, with_ml, without_ml

pytestmark = [pytest.mark.slow, pytest.mark.faults, pytest.mark.timeout(900 if SOAK else 300)]


def test_two_updates_at_once(case, reference, foreign):
    """The second one says who has the lock; the first does not notice."""
    case.edit(without_ml)
    converge(case)
    case.edit(with_ml)  # so much to do that the second comes in between
    first = case.start("up")
    first.wait_for("Namespace ml-namespace created")
    second = case.fleet("up")
    ran = first.end()
    if "Nothing changed" in ran.said:
        pytest.fail("the first update had nothing to do, so the two never met")
    assert ran.code == 0, ran.said
    assert second.code == 1
    assert "another run holds the stack's lock (process" in second.last, second.said
    assert "wait for it. If it was killed, run: pulumi cancel" in second.last
    assert reference.differences(case, "added") == []


def test_a_state_file_that_is_cut_short(case, reference, foreign):
    case.edit(with_ml)
    case.up()
    case.up()
    whole = case.state.read_text()
    case.state.write_text(whole[: len(whole) // 3])
    refused = case.fleet("up")
    assert refused.code == 1
    assert "cannot be read" in refused.last
    assert "Traceback" not in refused.said

    converge(case)
    assert reference.differences(case, "added") == []
    again = case.fleet("up")
    assert "Nothing changed" in again.said


def test_attributes_that_a_kill_left_empty_are_no_broken_state(case, reference, foreign):
    """The backend writes that small file in place; the state beside it is whole."""
    case.edit(with_ml)
    case.up()
    beside = case.state.with_name(f"{case.state.name}.attrs")
    assert beside.stat().st_size, "this CLI keeps no attributes beside a state"
    beside.write_bytes(b"")
    refused = case.fleet("up")
    assert refused.code == 1
    assert "-name '*.attrs' -empty -delete" in refused.last
    converge(case)
    assert "Nothing changed" in case.up().said
    assert reference.differences(case, "added") == []


def test_an_object_of_somebody_else_is_not_taken(case, reference, foreign):
    """The namespace that a team needs is there already: refused, and left as it is."""
    state = read_state(case.sandbox)
    assert state is not None
    if numbers(state.tools[KUBERNETES_PROVIDER]["version"]) < (4, 29):
        pytest.skip(
            "Pulumi's Kubernetes plugin refuses it from v4.29 on, the one here takes it over"
        )
    path = "/api/v1/namespaces/team-nlp"
    with client_of(case.host) as api:
        core = client.CoreV1Api(api)
        core.create_namespace({"metadata": {"name": "team-nlp", "labels": {"a": "b"}}})
        before = dumps.versions(case.host, [path])
        team = {
            "scheduler": {"mode": "default"},
            "nodePool": {"kai-fleet/pool": "nlp"},
            "gpus": 1,
        }
        case.edit(lambda found: found["kai-fleet:teams"].update(nlp=team))
        try:
            for _ in range(2):
                refused = case.fleet("up")
                assert refused.code == 1
                assert "this stack did not make it" in refused.last, refused.said
                assert dumps.versions(case.host, [path]) == before
        finally:
            case.edit(lambda found: found["kai-fleet:teams"].pop("nlp"))
            core.delete_namespace("team-nlp")
    converge(case)
