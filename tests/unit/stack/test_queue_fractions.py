"""Quotas and limits that common fractions of a GPU exceed, as KAI adds them: as floats."""

import copy

import pytest

from kai_fleet_policies.finding import Level
from kai_fleet_stack.validation import validate
from tests.unit.cli.doctor.doctor_samples import SETTINGS


def problems(**shares):
    raw = copy.deepcopy(SETTINGS)
    raw["teams"]["ml"] |= {"gpus": 2}
    children = {name: {"gpu": share} for name, share in shares.items()}
    raw["teams"]["ml"]["queues"] = {"top": {"gpu": 2, "children": children}}
    return validate(raw).problems


@pytest.mark.parametrize(
    ("share", "says"),
    [
        (0.3, "has gpu quota 0.3, and pods of 0.1 and 0.2 do not fit together"),
        ({"quota": 0.5, "limit": 0.6}, "has gpu limit 0.6, and pods of 0.2 and 0.4"),
        ({"quota": 1.7, "limit": 1.7}, "has gpu quota 1.7, and pods of 0.8 and 0.9"),
        ({"quota": 0.5, "limit": 0.75}, None),
        (1, None),
    ],
)
def test_a_bound_that_fractions_exceed_as_floats_is_advised_with_what_to_write(share, says):
    found = problems(a=share)
    assert [each.level for each in found] == [Level.ADVISORY] * bool(says)
    for each in found:
        assert says in each.message and "00001, or let pods ask for 0.25 and 0.5" in each.message
        assert each.path.startswith("kai-fleet:teams.ml.queues.top.children.a.gpu.")


def test_what_it_says_to_write_is_taken_also_where_all_is_given_out():
    assert problems(a=0.300001, b=0.700001, c=1) == ()


def test_what_its_children_need_is_not_said_of_a_queue_again():
    raw = copy.deepcopy(SETTINGS)
    raw["teams"]["ml"]["queues"] = {"top": {"children": {"a": {"gpu": 0.3}}}}
    assert len(validate(raw).problems) == 1
