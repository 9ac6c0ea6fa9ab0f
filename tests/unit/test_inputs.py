"""Arguments that may be plain or Outputs."""

import asyncio

import pulumi
import pytest

from kai_fleet.inputs import has_output, joined, one_of, plain, resolved, without_none

PROVIDER = ("GpuStack gpu", "provider")


def later(value):
    return pulumi.Output.from_input(value)


def value_of(output):
    return asyncio.run(_future(output))


async def _future(make):
    return await make().future()


def test_plain_values_are_used_at_once():
    assert resolved(lambda a, b: a + b["c"][0], 1, {"c": [2]}) == 3


@pytest.mark.parametrize("wrap", [lambda it: it, lambda it: [it], lambda it: {"a": (it,)}])
def test_an_output_is_seen_however_deep(wrap):
    async def seen():
        return has_output(wrap(later(1)))

    assert asyncio.run(seen())
    assert not has_output(wrap(1))


def test_outputs_are_used_once_they_are_known():
    found = value_of(lambda: resolved(lambda a, b: a + b["c"][0], 1, {"c": [later(2)]}))
    assert found == 3


def test_what_is_not_known_yet_stays_so():
    async def known():
        unknown = asyncio.get_running_loop().create_future()
        unknown.set_result(pulumi.UNKNOWN)
        no, yes = (asyncio.get_running_loop().create_future() for _ in range(2))
        no.set_result(False)
        yes.set_result(False)
        output = pulumi.Output(set(), unknown, no, yes)
        called = []
        result = resolved(called.append, [output])
        return await result.is_known(), called

    assert asyncio.run(known()) == (False, [])


def test_texts_are_joined_in_their_order():
    assert joined(",", ["b", "a"]) == "b,a"
    assert value_of(lambda: joined(",", ["b", later("a")])) == "b,a"


def test_a_choice_is_one_of_those_that_there_are():
    assert one_of(*PROVIDER, "none", ("operator", "none")) == "none"
    with pytest.raises(pulumi.RunError) as error:
        one_of(*PROVIDER, "nvidia", ("operator", "device-plugin", "none"))
    assert str(error.value) == (
        "GpuStack gpu: provider is 'nvidia'; write operator, device-plugin or none"
    )


@pytest.mark.parametrize("wrap", [lambda it: it, lambda it: [it]])
def test_an_output_where_a_plain_value_decides_is_refused_with_the_field(wrap):
    async def ask():
        plain("KaiScheduler ml", "version", wrap(later("v0.16.8")))

    with pytest.raises(
        TypeError, match=r"^KaiScheduler ml: version is an Output, .*; write a plain"
    ):
        asyncio.run(ask())
    assert plain("KaiScheduler ml", "version", wrap("v0.16.8")) == wrap("v0.16.8")


def test_only_what_has_no_value_is_dropped():
    assert without_none({"a": None, "b": 0, "c": "", "d": {"e": None}}) == {
        "b": 0,
        "c": "",
        "d": {"e": None},
    }
