"""What a program gives a component: plain values, secrets, and what is not known yet."""

import asyncio

import pytest
from pulumi.runtime.proto import provider_pb2

from kai_fleet.package.request import read_inputs
from kai_fleet.provider.values import OUTPUT_MARK, SIGNATURE, UNKNOWN, secret, struct
from tests.unit.event_loop import finish


def given(dependencies=None, **inputs):
    async def reading():
        found = read_inputs(struct(inputs), dependencies)
        # The SDK waits for every output that was ever begun, in the tests to come as well.
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
        return found

    return finish(reading())


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
    assert not found.has_secrets
    assert not found.outputs


def test_what_decides_has_to_be_known_and_what_does_not_is_kept_beside():
    found = given(gpus=UNKNOWN, namespace=UNKNOWN, env={"URL": UNKNOWN, "A": "b"})
    assert [mistake.path for mistake in found.unknown] == ["gpus"]
    assert set(found.outputs) == {("namespace",), ("env", "URL")}
    assert found.at("env", "A") == "b"
    assert found.at("namespace") is found.outputs[("namespace",)]


@pytest.mark.parametrize("sealed", [{"kubeconfig": secret("k")}, None])
def test_a_secret_stays_one_also_where_what_holds_it_is_secret(sealed):
    cluster = sealed or secret({"kubeconfig": "k"})
    found = given(cluster=cluster)
    assert found.raw == {"cluster": {"kubeconfig": "k"}}
    assert set(found.outputs) == {("cluster", "kubeconfig")}
    assert found.has_secrets


def test_an_output_without_a_value_is_one_that_is_not_known():
    output = {SIGNATURE: OUTPUT_MARK, "secret": True, "dependencies": ["urn:a"]}
    bare = {SIGNATURE: OUTPUT_MARK, "value": "known"}
    found = given(namespace=output, env={"A": output, "B": "plain", "C": bare})
    assert set(found.outputs) == {("namespace",), ("env", "A")}
    assert found.raw["env"] | {"A": None} == {"A": None, "B": "plain", "C": "known"}
    assert told(found.at("namespace")) == (True, {"urn:a"})


def test_an_output_comes_from_what_the_engine_says_its_input_does():
    of_namespace = provider_pb2.ConstructRequest.PropertyDependencies(urns=["urn:b"])
    found = given({"namespace": of_namespace}, namespace=UNKNOWN, image=secret("a:1"))
    assert told(found.at("namespace")) == (False, {"urn:b"})
    assert told(found.at("image")) == (True, set())


def told(output):
    """Whether an output is secret, and what it comes from."""

    async def resolved():
        urns = {await it.urn.future() for it in await output.resources()}
        return await output.is_secret(), urns

    return asyncio.get_event_loop().run_until_complete(resolved())
