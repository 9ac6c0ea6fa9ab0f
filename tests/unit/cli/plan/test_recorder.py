"""The recorder of the offline plan: what it shows of a program, and what it leaves behind."""

import asyncio

import pulumi
import pytest

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


def test_a_plan_after_another_one_knows_nothing_of_that():
    first = [vars(item) for item in recorder.record("lab", LAB)]
    other = recorder.record("other", {**LAB, "teams": {}})
    assert not [item for item in other if "Team" in item.urn]
    assert [vars(item) for item in recorder.record("lab", LAB)] == first
    assert all(item["urn"].startswith("urn:pulumi:lab::kai-fleet::") for item in first)
