"""A team in two parts: each is right by itself, and together they are what there was."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kai_fleet_cli.teams.queues import every, joined, split, with_numbers
from kai_fleet_policies import validation

NAMES = st.lists(st.from_regex(r"[a-z]{1,4}", fullmatch=True), unique=True, max_size=3)


def in_hundredths(most):
    return st.integers(0, int(most * 100)).map(lambda n: n / 100)


@st.composite
def trees(draw, most, prefix="", depth=0):
    """Quotas that fit below `most`, with limits here and there."""
    tree, left = {}, most
    for name in draw(NAMES):
        quota = draw(in_hundredths(left))
        left = round(left - quota, 2)
        gpu = {"quota": quota}
        if draw(st.booleans()):
            gpu["limit"] = round(quota + draw(in_hundredths(most - quota)), 2)
        queue = {"gpu": gpu}
        if depth < 2 and draw(st.booleans()):
            bound = min(quota, gpu.get("limit", most))
            children = draw(trees(bound, f"{prefix}{name}-", depth + 1))
            if children:
                queue["children"] = children
        tree[f"{prefix}{name}"] = queue
    return tree


def refused(tree, gpus):
    team = {
        "scheduler": {"mode": "virtual", "version": "v0.16.8"},
        "nodePool": {"pool": "a"},
        "gpus": gpus,
        "queues": tree,
    }
    raw = {"cluster": {"name": "lab", "context": "lab"}, "teams": {"ml": team}}
    return [str(problem) for problem in validation.validate(raw).refused]


@settings(max_examples=80, deadline=None)
@given(st.data(), st.integers(1, 16))
def test_both_parts_are_right_and_together_they_are_the_whole(data, gpus):
    tree = data.draw(trees(float(gpus)))
    part = data.draw(st.integers(0, gpus))
    assert refused(tree, gpus) == []
    rest, taken = (with_numbers(tree, numbers) for numbers in split(tree, gpus, part))
    assert refused(rest, gpus - part) == []
    assert refused(taken, part) == []
    again = with_numbers(rest, joined(rest, taken))
    before = {q.keys: (q.amount("quota"), q.amount("limit")) for q in every(tree)}
    assert {q.keys: (q.amount("quota"), q.amount("limit")) for q in every(again)} == before


@pytest.mark.parametrize(
    ("part", "taken"),
    [(4, {"train": 3, "serve": 1}), (8, {"train": 6, "serve": 2}), (1, {"train": 0.75})],
)
def test_the_parts_are_in_proportion(part, taken):
    tree = {
        "ml": {
            "gpu": {"quota": 16},
            "children": {"train": {"gpu": {"quota": 12}}, "serve": {"gpu": {"quota": 4}}},
        }
    }
    stays, out = split(tree, 16, part)
    for name, amount in taken.items():
        assert out[("ml", "children", name, "gpu", "quota")] == amount
    assert stays[("ml", "gpu", "quota")] == 16 - part
