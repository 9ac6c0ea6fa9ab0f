"""The removal of a team with a stack of its own, killed: two engines run then, one state each."""

from typing import Any

import pytest

from tests.faults import dumps
from tests.faults.case import CONFIG, STACK
from tests.faults.wanted import converge, without_ml

pytestmark = [pytest.mark.slow, pytest.mark.faults, pytest.mark.timeout(600)]

OWN = f"{STACK}-solo"
SHARE = {"nodePool": {"kai-fleet/pool": "vision"}, "gpus": 2}
REMOVE = ("team", "remove", "solo", "--yes")
TEAM = {
    "kai-fleet:platform": {"stack": STACK},
    "kai-fleet:team": {"name": "solo", "scheduler": {"mode": "default"}, **SHARE},
}


def granted(config: Any) -> None:
    """A team with a stack of its own, beside `dev`."""
    without_ml(config)
    config["kai-fleet:teamStacks"] = {"solo": SHARE}


@pytest.fixture
def file(case, reference):
    """The stack file of a team that is there."""
    file = case.checkout / f"Pulumi.{OWN}.yaml"
    case.edit(granted)
    converge(case)
    case.write(TEAM, file)
    converge(case, stack=OWN)
    yield file
    case.write(CONFIG)
    file.unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("words", "who", "wanted_again"),
    [
        ("Release solo-release deleting", "engine", False),
        ("Namespace solo-namespace deleting", "all", False),
        ("host-team-stacks-solo-binding deleted", "all", True),
    ],
)
def test_killed_while_it_goes(case, reference, foreign, file, words, who, wanted_again):
    there = dumps.dump(case.host)
    running = case.start(*REMOVE)
    running.wait_for(words)
    running.kill(who)
    ran = running.end()
    assert "Traceback" not in ran.said
    assert ran.code != 0
    if not wanted_again:
        said = converge(case, REMOVE)
        assert not file.exists()
        left = dumps.differences(reference.host["removed"], dumps.dump(case.host))
    else:
        case.edit(granted)
        case.write(TEAM, file)
        said = converge(case) + converge(case, stack=OWN)
        left = dumps.differences(there, dumps.dump(case.host))
        assert "Nothing changed" in case.fleet("up", stack=OWN).said
    assert left == [], f"{who} killed at {words}: {left}\n{ran.said}{''.join(said)}"
    assert "Nothing changed" in case.up().said
    if wanted_again:
        assert case.fleet(*REMOVE).code == 0
