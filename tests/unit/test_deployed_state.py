"""What a run goes by that an earlier one left: when a wait has to be made again."""

from types import SimpleNamespace

import pytest

from kai_fleet.fleet.deployed_state import TEAM, DeployedState, deployed_state, read_deployed_state
from tests.unit.event_loop import finish


@pytest.mark.parametrize(
    ("deployed", "more"),
    [
        (DeployedState(), []),
        (DeployedState({"ml-release": "0.36.1"}, {"ml-ready": ["team-ml/ml"]}), []),
        (DeployedState({}, {"ml-ready": ["team-ml/ml"]}), ["1"]),
        (DeployedState({"ml-release": "0.36.1"}, {"ml-ready": ["team-ml/ml", "1"]}), ["1"]),
        (DeployedState({}, {"ml-ready": ["team-ml/ml", "1"]}), ["2"]),
    ],
    ids=["first", "usual", "uninstalled", "as before", "uninstalled again"],
)
def test_a_release_made_anew_is_waited_for_again(deployed, more):
    assert deployed.again("ml-ready", "ml-release") == more


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
