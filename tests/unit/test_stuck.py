"""A run that the engine would never end is ended, once everything else is done."""

import time

import pytest
from pulumi import automation

from kai_fleet_cli.engine import stuck
from kai_fleet_cli.engine.report import Report
from kai_fleet_cli.recovery.resume import Signals

URN = "urn:pulumi:prod::kai-fleet::kubernetes:helm.sh/v3:Release::ml-kai-release"
OTHER = "urn:pulumi:prod::kai-fleet::kubernetes:core/v1:Secret::nlp"


@pytest.fixture
def ends(monkeypatch):
    """Whether such events have a run ended in a second."""
    monkeypatch.setattr(stuck, "_QUIET_SECONDS", 0.2)
    monkeypatch.setattr(stuck, "_LOOK_SECONDS", 0.02)
    told = []
    monkeypatch.setattr(Signals, "end_engine", lambda signals: told.append(signals))

    def run(*events):
        report = Report()
        for each in events:
            report.note(each)
        with stuck.ended(report, Signals()):
            time.sleep(1)
        return len(told) == 1

    return run


def event(kind, urn, op):
    old = {"urn": urn, "type": "x", "id": "x", "parent": "", "provider": "", "custom": True}
    step = {"op": op, "urn": urn, "type": "x", "provider": "", "old": old}
    content = {"metadata": step, "status": 1, "steps": 1}
    return automation.EngineEvent.from_json({"sequence": 1, "timestamp": 0, kind: content})


def begun(urn, op):
    return event("resourcePreEvent", urn, op)


def failed(urn, op):
    return event("resOpFailedEvent", urn, op)


def done(urn, op):
    return event("resOutputsEvent", urn, op)


STAYS = (begun(URN, "delete-replaced"), failed(URN, "delete-replaced"))


def test_a_deletion_that_failed_before_the_replacement_ends_it(ends):
    assert ends(*STAYS)


def test_it_is_not_ended_while_another_step_goes_on(ends):
    assert not ends(*STAYS, begun(OTHER, "update"))


def test_what_is_done_and_what_only_stands_for_a_replacement_is_no_step(ends):
    assert ends(*STAYS, begun(OTHER, "update"), done(OTHER, "update"), begun(OTHER, "replace"))


@pytest.mark.parametrize("op", ["update", "create", "create-replacement", "delete"])
def test_what_the_engine_answers_for_itself_ends_nothing(ends, op):
    assert not ends(begun(URN, op), failed(URN, op))
