import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from kai_fleet.queues.specs import named_specs
from kai_fleet_stack.settings.sections.kubernetes import Bytes, Cpu, Cpus, Gpu, Memory


@pytest.mark.parametrize(
    ("resource", "value", "amount"),
    [
        *(("cpu", *each) for each in ((16, 16000), ("500m", 500), (0.25, 250), ("1e1", 10000))),
        *(("memory", *each) for each in (("64Gi", 68719), ("500M", 500), ("1Ti", 1099512), (0, 0))),
        *(("gpu", *each) for each in ((4, 4), (0.5, 0.5), ("500m", 0.5), ("unlimited", -1))),
    ],
)
def test_amounts_are_in_kais_units(resource, value, amount):
    ((_, spec),) = named_specs({"a": {resource: {"quota": value}}})
    assert spec["resources"][resource]["quota"] == amount


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        (Gpu, -2, "-2 is negative; write GPUs such as 4, 0.5, or unlimited"),
        (Gpu, "6G", "6G is 6,000,000,000 GPUs; write GPUs such as 4, 0.5, or unlimited"),
        (Gpu, float("nan"), "no Kubernetes quantity"),
        (Cpu, "12x", "'12x' is no Kubernetes quantity; write cores such as 16"),
        (Cpu, True, "true or false"),
        (Cpus, "2Ti", "2Ti is 2,199,023,255,552 cores; write cores such as 16"),
        (Cpus, -1, "-1 is negative; write cores such as 16"),
        (Cpus, "unlimited", "'unlimited' is no Kubernetes quantity"),
        (Memory, 64, "64 is 64 bytes; write bytes such as 64Gi"),
        (Memory, "9" * 40, "larger than any cluster"),
        (Bytes, "64m", "64m is 0.064 bytes; write bytes such as 64Gi"),
    ],
)
def test_what_is_no_quantity_or_in_the_unit_of_another_says_what_to_write(kind, value, says):
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(kind).validate_python(value)
    assert says in str(raised.value)


@settings(deadline=None)  # a busy machine
@given(st.one_of(st.text(), st.floats(), st.integers(), st.booleans(), st.none()))
def test_any_input_stays_as_it_is_written_or_is_a_sentence(value):
    for kind in (Cpu, Memory, Gpu):
        try:
            assert TypeAdapter(kind).validate_python(value) == value
        except ValidationError as why:
            assert "; write " in str(why)
