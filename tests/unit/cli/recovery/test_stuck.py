"""A run that the engine would never end is ended, once everything else is done."""

import signal
import subprocess
import time

import psutil
import pytest
from pulumi import automation

from kai_fleet_cli.engine import operation, stuck
from kai_fleet_cli.engine.report import Report
from kai_fleet_cli.recovery import held_up, resume
from kai_fleet_cli.recovery.resume import Signals
from kai_fleet_cli.recovery.state import State

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
        with stuck.run_ended(report, Signals()):
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


def test_the_next_engine_of_a_command_can_be_ended_too(monkeypatch):
    sent = []

    class Engine:
        def send_signal(self, number):
            sent.append(number)

    monkeypatch.setattr(resume, "_engines", lambda: [Engine()])
    signals = Signals()
    signals.end_engine()
    signals.note("^C received; cancelling. If you would like to terminate immediately, press ^C")
    signals.end_engine()
    assert len(sent) == 1, "a second signal would drop its state"
    signals.begin_engine()
    signals.end_engine()
    assert len(sent) == 2


def test_an_engine_that_ended_by_itself_keeps_no_other_from_its_signal(monkeypatch):
    # A shell that runs these tests in the background ignores it, which processes inherit.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    ran = [subprocess.Popen(["sleep", "10"]) for _ in range(2)]
    signal.signal(signal.SIGINT, before)
    engines = [psutil.Process(each.pid) for each in ran]
    ran[0].kill()
    ran[0].wait()
    monkeypatch.setattr(resume, "_engines", lambda: engines)
    Signals().end_engine()
    assert ran[1].wait(10) == -signal.SIGINT


def test_what_failed_is_known_with_what_it_is_deleted_with(monkeypatch):
    """The second run leaves out all that is in the same vCluster, by that."""
    vcluster = "urn:pulumi:prod::kai-fleet::kai-fleet:index:Team$kai-fleet:index:VirtualCluster"
    identity = f"{vcluster}$command:local:Command::ml-identity"
    in_state = {"urn": URN, "type": "x", "deletedWith": identity}
    beside = {
        "urn": OTHER,
        "type": "y",
        "provider": f"{vcluster}$pulumi:providers:kubernetes::ml::id",
    }
    known = State({URN: in_state, OTHER: {**beside, "deletedWith": identity}})
    run = operation.Operation(None, "again", Signals(), None)
    for each in STAYS:
        run.report.note(each)
    assert held_up.with_same_vclusters({URN: "no"}, run.tree_of(known).resources) == {URN, OTHER}


def test_a_vcluster_of_an_older_version_is_read_once_an_update_has_written_it_anew():
    vcluster = "urn:pulumi:prod::kai-fleet::kai-fleet:index:Team$kai-fleet:index:VirtualCluster::ml"
    identity = f"{vcluster.rpartition('::')[0]}$command:local:Command::ml-identity"
    resource = {"urn": identity, "parent": vcluster, "inputs": {"triggers": ["0d9f"]}}
    assert State({identity: resource}).vclusters == {}
    environment = {"VCLUSTER_NAMESPACE": "team-ml", "VCLUSTER_SERVER": "https://localhost"}
    resource["inputs"]["environment"] = environment
    assert State({identity: resource}).vclusters["ml"].namespace == "team-ml"
