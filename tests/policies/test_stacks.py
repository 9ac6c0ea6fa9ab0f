"""What the rules say of this repository's own stacks, and how short they are."""

import copy

import pytest
import yaml

from kai_fleet.finding import Level
from kai_fleet_cli.plan.offline import plan
from kai_fleet_cli.stack_file.reading import path_of, stacks


@pytest.mark.parametrize("stack", stacks())
def test_no_rule_refuses_a_stack_of_this_repository(stack):
    assert [str(p) for p in plan(stack).problems if p.level is Level.MANDATORY] == []


def test_no_rule_has_anything_to_say_about_prod():
    assert [str(p) for p in plan("prod").problems] == []


def written_out(queue, gpu):
    """A queue with every quota that a short file leaves out."""
    children = queue.pop("children", {})
    given = queue.get("gpu", {})
    given = {"quota": given} if isinstance(given, int) else given
    below = {name: written_out(child, None) for name, child in children.items()}
    own = sum(child["gpu"]["quota"] for child in below.values()) if below else 0
    quota = own if gpu is None else gpu
    full = {
        **queue,
        "cpu": {"quota": "unlimited"},
        "memory": {"quota": -1},
        "gpu": {"quota": quota, **given},
    }
    return {**full, "children": below} if below else full


def test_prods_short_file_means_what_the_same_file_with_every_quota_means(tmp_path):
    text = path_of("prod").read_text()
    content = [line for line in text.splitlines() if line.split("#")[0].strip()]
    assert len(content) <= 45
    long = copy.deepcopy(yaml.safe_load(text))
    for team in long["config"]["kai-fleet:teams"].values():
        for name, queue in team.get("queues", {}).items():
            team["queues"][name] = written_out(queue, team["gpus"])
    (tmp_path / "Pulumi.prod.yaml").write_text(yaml.safe_dump(long, sort_keys=False))
    assert plan("prod", tmp_path / "Pulumi.prod.yaml").json() == plan("prod").json()
