"""What tenants write into pods, or keep from the operator, hides nothing of what they hold."""

import json

import pytest

from tests.unit import doctor_samples
from tests.unit.test_usage_now import (
    STACK,
    VIRTUAL,
    fleet,  # noqa: F401 - a fixture
    lists,
    numbers,
    pod,
    queue,
)


def test_no_pod_of_a_team_hides_what_it_holds_or_stops_the_count(fleet):  # noqa: F811
    """As a team in mode default may write it on a host without a KAI."""
    odd = {
        "off": {"gpu_fraction": "0.5", "gpu_fraction_num_devices": "-8"},
        "much": {"gpu_memory": "9" * 400},
        "many": {"gpu_fraction": "0.5", "gpu_fraction_num_devices": "9" * 400},
    }
    pods = [
        pod(f"{name}-x-default-x-dev", None, namespace="team-dev", kai=False, **notes)
        for name, notes in odd.items()
    ]
    lists(fleet.host, nodes=[doctor_samples.node("n")], pods=pods)
    found = json.loads(fleet(STACK, "--json").stdout)
    dev = next(team for team in found["teams"] if team["team"] == "dev")
    assert numbers(dev) == [3, 3, 0, 1, 0]


def test_what_a_team_runs_where_its_vcluster_does_not_count_is_counted_on_the_host(fleet):  # noqa: F811
    """Its tenant is administrator there, of kube-system too. The host sees all that it holds."""
    shares = [pod(name, "train", gpus=None, gpu_fraction="0.5") for name in ("half", "other-half")]
    for each in shares:
        each["metadata"]["labels"]["runai-gpu-group"] = "g"
    hidden = pod("miner", None, gpus="2", namespace="kube-system", kai=False)
    own = [pod("whole", "train"), *shares, hidden]
    lists(
        fleet.inside,
        nodes=[doctor_samples.node("n")],
        queues=[queue("top", gpu=4), queue("train", "top", 4)],
        pods=own,
    )
    on_host = [
        pod("whole-x-default-x-ml", None, namespace="team-ml", kai=False),
        pod("half-x-default-x-ml", None, gpus=None, namespace="team-ml", kai=False),
        pod("reserves-x-kai-resource-reservation-x-ml", None, namespace="team-ml", kai=False),
        pod("miner-x-kube-system-x-ml", None, gpus="2", namespace="team-ml", kai=False),
    ]
    lists(fleet.host, nodes=[doctor_samples.node("n")], pods=on_host)
    found = json.loads(fleet(VIRTUAL, "--json").stdout)
    ml = next(team for team in found["teams"] if team["team"] == "ml")
    rows = {row["queue"]: numbers(row) for row in ml["queues"]}
    assert rows == {"train": [2, 2, 0, 2, 0], None: [2, 0, 2, 0, 0]}


@pytest.mark.parametrize("odd", ["nan", "Infinity", 1e308])
def test_amounts_of_queues_that_nobody_could_have_are_told_as_numbers(fleet, odd):  # noqa: F811
    """By a tenant's API server; of those that are numbers also by a team stack's, on the host."""
    queues = [queue("top", gpu=odd), queue("a", "top", odd), queue("b", "top", odd)]
    lists(fleet.inside, nodes=[doctor_samples.node("n")], queues=queues, pods=[pod("p", "a")])
    lists(fleet.host, nodes=[doctor_samples.node("n")], pods=[])
    found = json.loads(fleet(VIRTUAL, "--json").stdout, parse_constant=pytest.fail)
    ml = next(team for team in found["teams"] if team["team"] == "ml")
    assert ml["used"] == 1
