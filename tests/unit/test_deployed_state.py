"""What a run goes by that an earlier one left: when a wait has to be made again."""

from types import SimpleNamespace

import pytest

from kai_fleet.fleet.deployed_state import (
    COMMAND,
    KAI_SCHEDULER,
    NAMESPACE,
    RELEASE,
    TEAM,
    VIRTUAL_CLUSTER,
    DeployedState,
    deployed_state,
    deployed_state_of,
    named,
    read_deployed_state,
)
from tests.unit.event_loop import finish

RELEASE_OF_ML = named(VIRTUAL_CLUSTER, "ml-release")
WAIT = named(VIRTUAL_CLUSTER, "ml-ready")


@pytest.mark.parametrize(
    ("deployed", "more"),
    [
        (DeployedState(), []),
        (DeployedState({RELEASE_OF_ML: "0.36.1"}, {WAIT: ["team-ml/ml"]}), []),
        (DeployedState({}, {WAIT: ["team-ml/ml"]}), ["1"]),
        (DeployedState({RELEASE_OF_ML: "0.36.1"}, {WAIT: ["team-ml/ml", "1"]}), ["1"]),
        (DeployedState({}, {WAIT: ["team-ml/ml", "1"]}), ["2"]),
    ],
    ids=["first", "usual", "uninstalled", "as before", "uninstalled again"],
)
def test_a_release_made_anew_is_waited_for_again(deployed, more):
    assert deployed.again(VIRTUAL_CLUSTER, "ml") == more


@pytest.mark.parametrize("reading", [read_deployed_state, lambda: finish(deployed_state())])
def test_a_read_that_fails_once_is_made_again(monkeypatch, reading):
    urn = "urn:pulumi:lab::kai-fleet::kai-fleet:index:Team::ml"
    answers = [OSError("reset"), {"outputs": {urn: {"type": TEAM, "outputs": {}}}}]

    def answer(*_):
        now = answers.pop(0)
        if isinstance(now, Exception):
            raise now
        return now

    async def later(*_):
        return answer()

    module = "kai_fleet.fleet.deployed_state."
    monkeypatch.setattr("pulumi.get_stack", lambda: "me/kai-fleet/lab")
    monkeypatch.setattr(f"{module}invoke", lambda *_: SimpleNamespace(value=answer()))
    monkeypatch.setattr(f"{module}invoke_async", later)
    state = reading()
    assert state.readable and state.teams == {"ml"}


def test_a_team_called_as_another_ones_kai_is_not_taken_for_it():
    """Team `ml` has a KAI, `ml-kai`; team `ml-kai` has a vCluster."""
    of_stack = "urn:pulumi:lab::kai-fleet::"
    of_kai = f"{of_stack}{TEAM}${KAI_SCHEDULER}$"
    state = deployed_state_of(
        [
            (f"{of_kai}{RELEASE}::ml-kai-release", RELEASE, {"version": "v0.16.8"}),
            (f"{of_kai}{COMMAND}::ml-kai-ready", COMMAND, {"triggers": ["kai-scheduler/kai", "2"]}),
            (f"{of_kai}{NAMESPACE}::ml-kai-namespace", NAMESPACE, {}),
            (
                f"{of_stack}{TEAM}${VIRTUAL_CLUSTER}${RELEASE}::ml-kai-release",
                RELEASE,
                {"version": "0.36.1"},
            ),
            (
                f"{of_stack}{TEAM}${VIRTUAL_CLUSTER}${COMMAND}::ml-kai-ready",
                COMMAND,
                {"triggers": ["x"]},
            ),
        ]
    )
    assert state.versions[named(KAI_SCHEDULER, "ml-kai-release")] == "v0.16.8"
    assert state.versions[named(VIRTUAL_CLUSTER, "ml-kai-release")] == "0.36.1"
    assert state.again(KAI_SCHEDULER, "ml-kai") == ["2"]
    assert state.again(VIRTUAL_CLUSTER, "ml-kai") == []
