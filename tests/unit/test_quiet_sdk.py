"""What the SDK leaves out in an offline plan is nothing that a plan shows."""

from contextlib import nullcontext
from unittest import mock

import pytest
from pulumi.runtime import resource
from pulumi.runtime.sync_await import _sync_await

from fleet.plan import plan
from fleet.quiet_sdk import quiet


@pytest.mark.parametrize("stack", ["sandbox", "sandbox-host", "sandbox-vision"])
def test_a_plan_is_the_same_with_all_that_the_sdk_does(stack):
    with mock.patch("fleet.recording.quiet", nullcontext):
        loud = plan(stack).json()
    assert plan(stack).json() == loud


def test_the_sdk_is_itself_again_afterwards():
    before = (resource.create_urn, resource._get_stack_trace)
    with quiet():
        assert resource.create_urn is not before[0]
    assert (resource.create_urn, resource._get_stack_trace) == before


@pytest.mark.parametrize(
    "parent", ["", "urn:pulumi:s::p::kai-fleet:index:Team::ml", "urn:pulumi:s::p::a:b:C$d:e:F::x"]
)
def test_a_urn_is_the_one_that_the_sdk_makes(parent):
    async def made():
        theirs = await resource.create_urn("kai", "a:b:Kai", parent).future()
        with quiet():
            ours = await resource.create_urn("kai", "a:b:Kai", parent).future()
        return theirs, ours

    theirs, ours = _sync_await(made())
    assert ours == theirs
