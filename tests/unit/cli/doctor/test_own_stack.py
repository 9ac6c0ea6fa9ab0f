"""What the doctor says in a team's own stack, whose host another stack declares."""

from typing import Any

import pytest

from kai_fleet_cli.doctor.checks.pods import waiting
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, TeamState
from kai_fleet_stack.declared import host_of
from tests.unit.cli.doctor.doctor_samples import NOW, Lab, in_host_mode, pod, space
from tests.unit.stack.stack_arguments import team_stack

PLATFORM = {
    "cluster": {"name": "prod", "context": "prod"},
    "kai": {"version": "v0.16.8"},
    "queues": {"top": {"gpu": 8, "children": {"all": {"gpu": 4}}}},
}
OF_PLATFORM = "have gpu.limit of {} raised in the platform's stack file"


def queue(name: str, parent: str | None, limit: int) -> dict[str, Any]:
    spec = {"resources": {"gpu": {"quota": 0, "limit": limit}}, "parentQueue": parent}
    return {**space(name), "spec": spec}


def fix_of_wait(mode: str, limits: dict[str, int], named: str = "leaf") -> str:
    """How to end the wait of a pod for 3 GPUs, in a tree of one branch with these limits."""
    tree = {"gpu": {"quota": 1, "limit": 2}}
    kai = {"version": "v0.16.8"} if mode == "virtual" else {}
    own = {"scheduler": {"mode": mode, **kai}, "queues": {"leaf": tree}}
    if mode == "virtual":
        own["queues"] = {"own": {"gpu": {"quota": 2, "limit": 2}, "children": {"leaf": tree}}}
    granted = {"gpus": 2, **({"parentQueue": "all"} if mode == "host" else {})}
    loaded = team_stack(PLATFORM, grant=granted, **own)
    assert loaded.settings is not None, loaded.mistakes
    host = host_of(loaded.settings)
    (team,) = host.teams
    queues = []
    above = None
    for name, limit in limits.items():
        queues.append(queue(name, above, limit))
        above = name
    item = pod("w", named, limits={"nvidia.com/gpu": "3"})
    lab = in_host_mode() if mode == "host" else Lab()
    own_objects = {"podgroups": [], **lab.ml, "pods": [item], "queues": queues}
    inside = Cluster("nlp", team.inside, own_objects, now=NOW)
    outside = Cluster("host", host, {"podgroups": [], **lab.host, "queues": queues}, now=NOW)
    snapshot = Snapshot(loaded.settings, outside, {"nlp": TeamState(team, inside)})
    (found,) = waiting(inside, snapshot)
    return "".join(map(str, found.fix))


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        ({"strange": 2, "all": -1, "leaf": -1}, "strange"),  # the platform has moved it
        ({"top": 2, "all": -1, "leaf": -1}, "top"),
        ({"top": -1, "all": 2, "leaf": -1}, "all"),
    ],
)
def test_a_limit_of_the_hosts_queues_is_raised_in_the_platforms_stack(limits, name):
    fix = fix_of_wait("host", limits)
    assert fix.endswith(OF_PLATFORM.format(name))
    assert "kai-fleet:team" not in fix


def test_a_limit_of_the_teams_own_queue_on_the_host_is_raised_at_its_own():
    fix = fix_of_wait("host", {"top": -1, "all": -1, "leaf": 2})
    assert fix.endswith("raise gpu.limit of leaf at kai-fleet:team.queues")


def test_gpus_of_the_team_are_raised_where_the_platform_grants_them():
    fix = fix_of_wait("virtual", {"own": 2, "leaf": -1})
    assert fix.endswith("raise kai-fleet:teamStacks.nlp.gpus in the platform's stack file")
