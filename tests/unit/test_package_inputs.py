"""What a program gives a component: plain values, secrets, and what is not known yet."""

from __future__ import annotations

import asyncio

import pytest
from google.protobuf import json_format, struct_pb2
from pulumi.provider.experimental.property_value import Computed, PropertyValue

from kai_fleet.package.inputs import read
from kai_fleet.provider.unknown_outputs import OUTPUT, SIGNATURE, filled
from kai_fleet.provider.values import properties

UNKNOWN = PropertyValue(Computed())


def given(**inputs):
    async def reading():
        found = read(properties(inputs))
        # The SDK waits for every output that was ever begun, in the tests to come as well.
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
        return found

    # Not asyncio.run, which leaves the thread without a loop: the SDK's mocks ask for one.
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    return loop.run_until_complete(reading())


def test_plain_values_are_as_in_a_stack_file():
    found = given(
        gpus=2.0, teams={"ml": {"gpus": None, "weight": 0.5}}, names=["a", "b"], off=False
    )
    assert found.raw == {
        "gpus": 2,
        "teams": {"ml": {"weight": 0.5}},
        "names": ["a", "b"],
        "off": False,
    }
    assert not found.hidden
    assert not found.later


def test_what_decides_has_to_be_known_and_what_does_not_is_kept_beside():
    found = given(gpus=UNKNOWN, namespace=UNKNOWN, env={"URL": UNKNOWN, "A": "b"})
    assert [mistake.path for mistake in found.unknown] == ["gpus"]
    assert set(found.later) == {("namespace",), ("env", "URL")}
    assert found.input("env", "A") == "b"
    assert found.input("namespace") is found.later[("namespace",)]


@pytest.mark.parametrize("sealed", [{"kubeconfig": PropertyValue("k", True)}, None])
def test_a_secret_stays_one_also_where_what_holds_it_is_secret(sealed):
    cluster = sealed or PropertyValue({"kubeconfig": PropertyValue("k")}, True)
    found = given(cluster=cluster)
    assert found.raw == {"cluster": {"kubeconfig": "k"}}
    assert set(found.later) == {("cluster", "kubeconfig")}
    assert found.hidden


def test_an_output_without_a_value_is_one_that_is_not_known():
    struct = struct_pb2.Struct()
    output = {SIGNATURE: OUTPUT, "secret": True, "dependencies": ["urn:a"]}
    bare = {SIGNATURE: OUTPUT, "value": "known"}
    sent = {"namespace": output, "env": {"A": output, "B": "plain", "C": bare}}
    json_format.ParseDict(sent, struct)
    filled(struct)
    found = PropertyValue.unmarshal_map(struct)
    assert found["namespace"].is_secret
    assert found["namespace"].all_dependencies() == {"urn:a"}
    seen = given(**found)
    assert set(seen.later) == {("namespace",), ("env", "A")}
    assert seen.raw["env"] | {"A": None} == {"A": None, "B": "plain", "C": "known"}
