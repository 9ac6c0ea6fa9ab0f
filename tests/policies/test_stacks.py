"""What the rules say of this repository's own stacks, and how short they are."""

import pytest

from kai_fleet.finding import Level
from kai_fleet_cli.plan.offline import plan
from kai_fleet_cli.stack_file.reading import stacks


@pytest.mark.parametrize("stack", stacks())
def test_no_rule_refuses_a_stack_of_this_repository(stack):
    assert [str(p) for p in plan(stack).problems if p.level is Level.MANDATORY] == []


def test_no_rule_has_anything_to_say_about_prod():
    assert [str(p) for p in plan("prod").problems] == []
