from dataclasses import replace

import pytest

from kai_fleet.fleet.pods import PodContainer
from kai_fleet.values import UNKNOWN
from tests.policies.samples import cluster, found, open_question, refusal, shared, workload

RULE = "workload-gpu-request"
WHOLE = PodContainer("main", limits={"nvidia.com/gpu": "1"})


@pytest.mark.parametrize(
    "pod",
    [
        workload(),
        shared(gpu_fraction="0.5"),
        shared(gpu_fraction="1e-1"),
        shared(gpu_memory="2000"),
        shared(gpu_fraction="0.5", gpu_fraction_num_devices="2", mps="true"),
        workload(containers=(WHOLE,)),
        workload(scheduler=None, annotations={"mps": "true"}),
    ],
)
def test_proper_requests_pass(pod):
    assert found(RULE, cluster(pod)) == []


@pytest.mark.parametrize(
    "value", ["0", "1", "1.5", "-0.5", "nan", "NaN", "half", "", "50%", "0x1p-1"]
)
def test_a_fraction_outside_0_and_1_is_refused(value):
    problem = refusal(RULE, cluster(shared(gpu_fraction=value)))
    assert f'has gpu-fraction: "{value}", which is not a number between 0 and 1' in problem.message
    assert problem.subject == "Pod train-a in namespace team-a of host"


def test_a_fraction_that_kai_counts_as_nothing_is_refused():
    assert "write 0.01 or more" in refusal(RULE, cluster(shared(gpu_fraction="0.004"))).message
    assert found(RULE, cluster(shared(gpu_fraction="0.01"))) == []


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        ("2", 'write limits: nvidia.com/gpu: "2"'),
        ("1.5", 'write limits: nvidia.com/gpu: "2"'),
        ("50%", 'write, for example, gpu-fraction: "0.5"'),
        ("25%", 'gpu-fraction: "0.25"'),
    ],
)
def test_the_refusal_of_a_fraction_says_what_was_meant(value, advice):
    assert advice in refusal(RULE, cluster(shared(gpu_fraction=value))).message


@pytest.mark.parametrize(
    ("value", "advice"),
    [("3Gi", '"3072"'), ("2000Mi", '"2000"'), ("0", '"2000"'), ("-5", '"2000"'), ("1.5", '"2000"')],
)
def test_memory_is_a_whole_number_of_mebibytes(value, advice):
    problem = refusal(RULE, cluster(shared(gpu_memory=value)))
    assert "write a positive whole number of MiB" in problem.message
    assert problem.message.endswith(f"gpu-memory: {advice}")


@pytest.mark.parametrize(
    "annotations",
    [
        {"gpu_memory": "9" * 5000},
        {"gpu_memory": f"{'9' * 400}Gi"},
        {"gpu_fraction": f"{'1' * 200_000}x"},
        {"gpu_fraction": f"{' ' * 200_000}x"},
        {"gpu_fraction": "0.5", "gpu_fraction_num_devices": "9" * 5000},
    ],
    ids=["memory", "memory with a unit", "fraction", "spaces", "devices"],
)
@pytest.mark.timeout(20)
def test_a_number_of_a_tenant_that_no_machine_has_is_refused_at_once(annotations):
    assert refusal(RULE, cluster(shared(**annotations)))


def test_a_number_of_devices_that_is_no_text_is_read():
    """workload-known-keys says that it has to be one."""
    assert found(RULE, cluster(shared(gpu_fraction="0.5", gpu_fraction_num_devices=2.0))) == []


def test_fraction_and_memory_exclude_each_other():
    problem = refusal(RULE, cluster(shared(gpu_fraction="0.5", gpu_memory="2000")))
    assert "write only one of them" in problem.message


@pytest.mark.parametrize(
    "container",
    [
        WHOLE,
        PodContainer("main", requests={"nvidia.com/gpu": 1}),
        PodContainer("main", limits={"amd.com/gpu": 1}),
    ],
)
def test_a_share_and_whole_gpus_exclude_each_other(container):
    pod = replace(shared(gpu_fraction="0.5"), containers=(PodContainer("side"), container))
    problem = refusal(RULE, cluster(pod))
    assert "in container main, for whole GPUs; drop" in problem.message


def test_a_number_of_devices_needs_a_share():
    problem = refusal(RULE, cluster(shared(gpu_fraction_num_devices="2")))
    assert 'add gpu-fraction, for example gpu-fraction: "0.5"' in problem.message
    problem = refusal(RULE, cluster(shared(gpu_fraction="0.5", gpu_fraction_num_devices="10000")))
    assert "more than KAI can count; write 9999 or less" in problem.message
    problem = refusal(RULE, cluster(shared(gpu_fraction="0.5", gpu_fraction_num_devices="0")))
    assert "write a positive whole number" in problem.message


def test_mps_needs_a_share():
    assert "add gpu-fraction" in refusal(RULE, cluster(shared(mps="true"))).message


def test_the_container_name_is_read_from_v0_10_on():
    pod = shared(gpu_fraction="0.5", gpu_fraction_container_name="main")
    assert found(RULE, cluster(pod, version="v0.12.23")) == []
    problem = refusal(RULE, cluster(pod, version="v0.9.3"))
    assert "KAI reads from v0.10 on, and host runs v0.9.3" in problem.message
    assert "v0.10" in open_question(RULE, cluster(pod, version=UNKNOWN)).message
    assert "v0.10" in open_question(RULE, cluster(pod, kai=())).message


def test_a_share_beside_slices_is_refused():
    """KAI then counts the share alone."""
    sliced = (PodContainer("main", limits={"nvidia.com/mig-1g.10gb": "1"}),)
    problem = refusal(RULE, cluster(replace(shared(gpu_fraction="0.5"), containers=sliced)))
    assert "in container main, for slices; drop nvidia.com/mig-1g.10gb there" in problem.message


def test_the_container_must_exist():
    pod = shared(gpu_fraction="0.5", gpu_fraction_container_name="gpu")
    assert refusal(RULE, cluster(pod, version="v0.16.8")).message.endswith("write main")


def test_unknown_values_are_told():
    assert "annotations" in open_question(RULE, cluster(workload(annotations=UNKNOWN))).message
    assert "gpu-fraction" in open_question(RULE, cluster(shared(gpu_fraction=UNKNOWN))).message
    pod = shared(gpu_fraction="0.5")
    assert "containers" in open_question(RULE, cluster(replace(pod, containers=UNKNOWN))).message
    pod = replace(pod, containers=(PodContainer("main", limits=UNKNOWN),))
    assert "container main" in open_question(RULE, cluster(pod)).message


def test_a_known_mistake_is_refused_beside_an_unknown_value():
    pod = shared(gpu_fraction="2", gpu_fraction_num_devices=UNKNOWN)
    said = found(RULE, cluster(pod))
    assert [p.undecided for p in said] == [False, True]
