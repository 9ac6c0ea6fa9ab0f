"""Quotas that a stack file leaves out: what the Queue objects get."""

from pathlib import Path

import pytest

from kai_fleet_cli.plan.offline import plan
from kai_fleet_cli.stack_file.reading import path_of
from kai_fleet_stack.declared import clusters_of
from kai_fleet_stack.settings.loading import load

IN_FULL = Path(__file__).parents[1] / "golden" / "prod-in-full.yaml"
CLUSTER = {"name": "prod", "context": "prod"}


def quotas(tree, gpus=None, resource="gpu"):
    """Each queue's quota; of a team's tree where there are `gpus`, else of the host's."""
    raw = {"cluster": CLUSTER}
    if gpus is None:
        loaded = load({**raw, "kai": {"version": "v0.16.8"}, "queues": tree})
    else:
        team = {
            "scheduler": {"mode": "virtual", "version": "v0.16.8"},
            "nodePool": {"pool": "a"},
            "gpus": gpus,
            "queues": tree,
        }
        loaded = load({**raw, "teams": {"ml": team}})
    assert loaded.mistakes == ()
    specs = clusters_of(loaded.settings)[0 if gpus is None else 1].queue_specs
    return {name: spec["resources"][resource]["quota"] for name, spec in specs.items()}


def test_a_number_alone_is_a_quota():
    tree = {"a": {"gpu": 12, "cpu": "500m", "memory": "1G"}}
    assert quotas(tree) == {"a": 12}
    assert quotas(tree, resource="cpu") == {"a": 500}
    assert quotas(tree, resource="memory") == {"a": 1000}


def test_the_file_of_production_is_short_and_plans_what_it_would_in_full():
    lines = path_of("prod").read_text().splitlines()
    assert len([line for line in lines if line.strip() and not line.strip().startswith("#")]) <= 45
    short, whole = plan("prod"), plan("prod", IN_FULL)
    assert short.resources
    assert short.json() == whole.json()


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ({"queues": {"a": {"gpu": 1}}}, "need a KAI on the host"),
        (
            {"teams": {"ml": {"scheduler": {"mode": "host"}, "queue": "a"}}},
            "need a KAI on the host",
        ),
    ],
)
def test_host_queues_without_a_kai_on_the_host_are_refused(raw, why):
    (mistake,) = load({"cluster": CLUSTER, **raw}).mistakes
    assert mistake.path == "kai-fleet:kai"
    assert why in mistake.message and "write {version: v0.16.9}" in mistake.message
