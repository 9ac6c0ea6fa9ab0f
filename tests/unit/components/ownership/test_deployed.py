"""What a running stack has: asked for once in a run, and empty where nobody answers."""

import json

import pytest
from pulumi.runtime import mocks

from kai_fleet.names import COMMAND, KAI_SCHEDULER, RELEASE, TEAM, VIRTUAL_CLUSTER
from kai_fleet.ownership import deployed
from kai_fleet.ownership.deployed import names_of, of_resources, team_of
from tests.unit.components.component_samples import run_by

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
    assert names_of(state.urns, TEAM) == {"ml"}
    assert state.has(RELEASE, "ml-kai-release")
    assert not state.has(RELEASE, "kai-release")


def test_a_wait_gets_another_number_where_its_release_is_gone():
    assert of_resources(RESOURCES).next_wait_number(KAI_SCHEDULER, "ml-kai") == 2
    assert of_resources(RESOURCES[2:]).next_wait_number(KAI_SCHEDULER, "ml-kai") == 3
    assert of_resources([]).next_wait_number(KAI_SCHEDULER, "ml-kai") == 0


class Engine(mocks.Mocks):
    asked = 0

    def call(self, args):
        self.asked += 1
        return {"outputs": {urn: {"type": kind, "outputs": item} for urn, kind, item in RESOURCES}}

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


def test_a_state_that_cannot_be_read_is_not_an_empty_one(monkeypatch):
    def busy(token, arguments):
        raise RuntimeError("busy")

    monkeypatch.setattr(deployed, "invoke", busy)
    state, _ = read(Engine())
    assert not state.readable


VCLUSTER_OF = f"{STACK}{TEAM}${VIRTUAL_CLUSTER}$"


@pytest.mark.parametrize(
    ("tag", "printed", "runs"),
    [
        ("v1.36.3", {"uid": "1"}, "v1.36.3"),
        ("", {"uid": "1"}, "v1.36.0"),
        # An update that failed: its values are in the state, and what they asked for never ran.
        ("v1.26.3", {"uid": "1", "kubernetes": "v1.36.3"}, "v1.36.3"),
        ("v1.35.0", None, "v1.35.0"),
    ],
)
def test_the_kubernetes_of_a_vcluster_is_the_one_that_was_last_up(tag, printed, runs):
    values = {"controlPlane": {"distro": {"k8s": {"image": {"tag": tag}}}}}
    release = {"version": "0.36.1", "values": values if tag else {}}
    wait = {"triggers": [], "stdout": json.dumps(printed) if printed else ""}
    state = of_resources(
        [
            (f"{VCLUSTER_OF}{RELEASE}::ml-release", RELEASE, release),
            (f"{VCLUSTER_OF}{COMMAND}::ml-ready", COMMAND, wait),
        ]
    )
    assert state.kubernetes_in("ml") == runs
    assert state.kubernetes_in("dev") is None


FEIGNED = f"x::{TEAM}::ghost"


@pytest.mark.parametrize("kind", [TEAM, f"{TEAM}$kubernetes:core/v1:ConfigMap", RELEASE])
def test_a_name_feigns_no_team_and_no_release(kind):
    urn = f"{STACK}{kind}::{FEIGNED}"
    state = of_resources([(urn, kind.rpartition("$")[2], {"version": "v1"})])
    assert names_of(state.urns, TEAM) == ({FEIGNED} if kind == TEAM else set())
    assert not state.has(TEAM, "ghost")
    assert state.has(kind.rpartition("$")[2], FEIGNED)
    assert {key.rpartition("$")[2] for key in state.versions} <= {FEIGNED}


def test_a_resource_is_of_the_team_above_it_whatever_its_name():
    team, part = f"{STACK}{TEAM}::ml", f"{STACK}{TEAM}$kubernetes:core/v1:ConfigMap::{FEIGNED}"
    assert team_of(part, {part: team}) == "ml"
    assert team_of(f"{STACK}kubernetes:core/v1:ConfigMap::{FEIGNED}", {}) == ""
