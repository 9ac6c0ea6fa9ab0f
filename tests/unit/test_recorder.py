"""The recorder of the offline plan stands on names of Pulumi's SDK that it does not promise.

Each is tried here by itself: after an upgrade of the SDK, the test that fails names what changed.
"""

import asyncio
import threading
import traceback

import pulumi
import pytest
from pulumi.runtime import mocks, rpc
from pulumi.runtime import settings as runtime_settings
from pulumi.runtime.proto import resource_pb2

from kai_fleet.provider import values
from kai_fleet_cli.plan import recorder

QUEUE = {"gpu": {"quota": 1}, "cpu": {"quota": "unlimited"}, "memory": {"quota": "unlimited"}}
LAB = {
    "cluster": {"name": "lab", "context": "lab"},
    "teams": {
        "ml": {
            "scheduler": {"mode": "virtual", "version": "v0.16.8"},
            "nodePool": {"pool": "ml"},
            "gpus": 1,
            "queues": {"default": QUEUE},
        }
    },
}


def test_mock_monitor_takes_mocks_and_has_the_calls_that_the_recorder_answers():
    monitor = mocks.MockMonitor(recorder._Echo())
    assert callable(monitor.Invoke)
    assert callable(monitor.RegisterResource)
    assert callable(monitor.ReadResource)


def test_register_resource_request_has_the_fields_that_a_plan_shows():
    fields = set(resource_pb2.RegisterResourceRequest.DESCRIPTOR.fields_by_name)
    assert {"type", "name", "parent", "provider", "object"} <= fields
    assert "properties" in resource_pb2.ReadResourceRequest.DESCRIPTOR.fields_by_name
    assert "urn" in resource_pb2.RegisterResourceResponse.DESCRIPTOR.fields_by_name


def test_special_sig_key_marks_a_secret_and_unknown_is_a_text():
    assert rpc._special_sig_key == values.SIGNATURE
    assert rpc._special_secret_sig == values.SECRET_MARK
    assert isinstance(rpc.UNKNOWN, str)


def test_secrets_are_masked_and_unknown_values_are_marked(monkeypatch):
    class Thing(pulumi.CustomResource):
        def __init__(self, name, props):
            super().__init__("a:b:Thing", name, props)

    def declares(*_, **__):
        first = Thing("first", {"password": pulumi.Output.secret("hidden"), "count": 1.0})
        Thing("second", {"of": first.id})

    monkeypatch.setattr("runpy.run_path", declares)
    first, second = recorder.record("lab", LAB)
    assert first.inputs == {"password": recorder.SECRET, "count": 1}
    assert second.inputs == {"of": recorder.UNKNOWN}


def test_outputs_are_what_is_waited_for():
    never = asyncio.new_event_loop().create_future()
    runtime_settings.SETTINGS.outputs.add(never)
    assert recorder.record("lab", LAB), "it waited for another loop's output"
    assert never not in runtime_settings.SETTINGS.outputs


def test_what_is_declared_is_registered_without_threads(monkeypatch):
    class Thing(pulumi.ComponentResource):
        def __init__(self, name):
            super().__init__("a:b:Thing", name)

    where, noted = [], recorder._Recorder._note

    def note(self, request, inputs):
        where.append(threading.current_thread())
        return noted(self, request, inputs)

    def declares():
        for number in range(100):
            Thing(f"thing-{number}")

    monkeypatch.setattr(recorder._Recorder, "_note", note)
    assert len(recorder.record("lab", {}, program=declares)) == 100
    assert set(where) == {threading.current_thread()}


def test_a_plan_after_one_that_failed_ends():
    def failing():
        pulumi.ComponentResource("a:b:Thing", "thing")
        raise pulumi.RunError("no")

    with pytest.raises(pulumi.RunError, match="no"):
        recorder.record("lab", {}, program=failing)
    assert recorder.record("lab", LAB)


def test_the_event_loop_before_a_plan_is_there_after_it():
    before = asyncio.new_event_loop()  # another test may have left none
    asyncio.set_event_loop(before)
    try:
        assert recorder.record("lab", LAB)
        assert asyncio.get_event_loop_policy().get_event_loop() is before
    finally:
        before.close()
        asyncio.set_event_loop(asyncio.new_event_loop())


def test_tracebacklimit_ends_what_the_sdk_notes_of_each_resource(monkeypatch):
    asked = []
    extract = traceback.extract_stack

    def noted(*args, **kwargs):
        asked.append(len(found := extract(*args, **kwargs)))
        return found

    monkeypatch.setattr(traceback, "extract_stack", noted)
    assert recorder.record("lab", LAB)
    assert asked
    assert [depth for depth in asked if depth > 1][1:] == []  # one is asyncio's own


def test_a_plan_after_another_one_knows_nothing_of_that():
    first = [it.record() for it in recorder.record("lab", LAB)]
    other = recorder.record("other", {**LAB, "teams": {}})
    assert not [it for it in other if "Team" in it.urn]
    assert [it.record() for it in recorder.record("lab", LAB)] == first
    assert all(it["urn"].startswith("urn:pulumi:lab::kai-fleet::") for it in first)


def test_what_goes_wrong_in_the_program_is_raised(monkeypatch):
    def failing(*_, **__):
        raise pulumi.RunError("no")

    monkeypatch.setattr("runpy.run_path", failing)
    with pytest.raises(pulumi.RunError, match="no"):
        recorder.record("lab", LAB)
