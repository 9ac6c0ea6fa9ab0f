import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kai_fleet.settings.sections.kubernetes import cpu_millicores, gpu_devices, memory_megabytes


@pytest.mark.parametrize(
    ("value", "millicores"),
    [(16, 16000), ("500m", 500), (0.25, 250), ("2", 2000), ("1e1", 10000), ("unlimited", -1)],
)
def test_cpu_is_in_millicores(value, millicores):
    assert cpu_millicores(value) == millicores


@pytest.mark.parametrize(
    ("value", "megabytes"),
    [("64Gi", 68719), ("1G", 1000), ("500M", 500), ("1Ti", 1099512), (0, 0), ("unlimited", -1)],
)
def test_memory_is_in_millions_of_bytes(value, megabytes):
    assert memory_megabytes(value) == megabytes


@pytest.mark.parametrize(
    ("value", "gpus"), [(4, 4), (0.5, 0.5), ("500m", 0.5), ("unlimited", -1), (-1, -1)]
)
def test_gpus_may_be_fractions(value, gpus):
    assert gpu_devices(value) == gpus


@pytest.mark.parametrize(
    ("convert", "value", "says"),
    [
        (gpu_devices, -2, "-2 is negative; write GPUs such as 4, 0.5, or unlimited"),
        (cpu_millicores, "12x", "'12x' is no Kubernetes quantity; write cores such as 16"),
        (cpu_millicores, True, "true or false"),
        (gpu_devices, float("nan"), "no Kubernetes quantity"),
        (gpu_devices, float("inf"), "no Kubernetes quantity"),
        (memory_megabytes, 64, "write 64Gi"),
        (memory_megabytes, "9" * 40, "larger than any cluster"),
        (cpu_millicores, None, "empty"),
        (cpu_millicores, {}, "a mapping"),
    ],
)
def test_what_is_no_quantity_says_what_to_write(convert, value, says):
    with pytest.raises(ValueError, match=r"write|larger") as raised:
        convert(value)
    assert says in str(raised.value)


@settings(deadline=None)  # a busy machine
@given(st.integers(0, 10**6))
def test_cores_and_millicores_agree(cores):
    assert cpu_millicores(cores) == cpu_millicores(f"{cores * 1000}m") == cores * 1000


@settings(deadline=None)
@given(st.one_of(st.text(), st.floats(), st.integers(), st.booleans(), st.none()))
def test_any_input_is_an_amount_or_a_sentence(value):
    for convert in (cpu_millicores, memory_megabytes, gpu_devices):
        try:
            amount = convert(value)
        except ValueError as why:
            assert str(why)
        else:
            assert amount == -1 or amount >= 0
