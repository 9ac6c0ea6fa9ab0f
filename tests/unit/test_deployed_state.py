"""What a run goes by that an earlier one left: when a wait has to be made again."""

import pytest

from kai_fleet.state.deployed_state import DeployedState


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
