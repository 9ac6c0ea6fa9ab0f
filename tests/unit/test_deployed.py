"""What a running stack has: asked for once in a run, and empty where nobody answers."""

import pytest
from pulumi.runtime import mocks

from kai_fleet import deployed
from kai_fleet.deployed import of_resources
from kai_fleet.names import COMMAND, KAI_SCHEDULER, RELEASE, TEAM
from tests.unit.component_samples import run_by

STACK = "urn:pulumi:lab::kai-fleet::"
BELOW = f"{STACK}{TEAM}${KAI_SCHEDULER}$"
RESOURCES = [
    (f"{STACK}{TEAM}::ml", TEAM, {}),
    (f"{BELOW}{RELEASE}::ml-kai-release", RELEASE, {"version": "v0.16.8", "values": {}}),
    (
        f"{BELOW}{COMMAND}::ml-kai-ready",
        COMMAND,
        {"triggers": ["id", "2"], "stdout": "", "environment": {}},
    ),
]


def test_a_resource_is_known_by_the_component_above_it():
    state = of_resources(RESOURCES)
    assert state.versions == {f"{KAI_SCHEDULER}$ml-kai-release": "v0.16.8"}
    assert state.teams == {"ml"}
    assert state.has(RELEASE, "ml-kai-release")
    assert not state.has(RELEASE, "kai-release")


def test_a_wait_gets_another_number_where_its_release_is_gone():
    assert of_resources(RESOURCES).again(KAI_SCHEDULER, "ml-kai") == 2
    assert of_resources(RESOURCES[2:]).again(KAI_SCHEDULER, "ml-kai") == 3
    assert of_resources([]).again(KAI_SCHEDULER, "ml-kai") == 0


class Engine(mocks.Mocks):
    asked = 0

    def call(self, args):
        self.asked += 1
        return {"outputs": {urn: {"type": kind, "outputs": it} for urn, kind, it in RESOURCES}}

    def new_resource(self, args):
        return None, {}


def read(engine):
    return run_by(engine, lambda: [deployed.read(), deployed.read()])


def test_it_is_asked_for_once_in_a_run_and_anew_in_the_next():
    first, other = Engine(), Engine()
    state, again = read(first)
    assert state.versions and state is again
    assert first.asked == 1
    read(other)
    assert other.asked == 1


@pytest.mark.parametrize(("failures", "readable"), [(1, True), (2, False)])
def test_a_state_that_cannot_be_read_is_tried_twice(monkeypatch, failures, readable):
    engine, invoke, asked = Engine(), deployed.invoke, []

    def busy(token, arguments):
        asked.append(arguments["stackName"])
        if len(asked) <= failures:
            raise RuntimeError("busy")
        return invoke(token, arguments)

    monkeypatch.setattr(deployed, "invoke", busy)
    state, _ = read(engine)
    assert asked == ["organization/kai-fleet/lab"] * 2
    assert state.readable == bool(state.versions) == readable
