import pytest

from kai_fleet.fleet.pods import PodContainer
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.problem import Level
from tests.policies.samples import cluster, found, open_question, shared, workload

RULE = "workload-vllm-memory"
SHELL = ("/bin/sh", "-c")


def server(*arguments, command=SHELL, image="vllm/vllm-openai:latest", **annotations):
    from dataclasses import replace

    container = PodContainer("vllm", image=image, command=command, arguments=arguments)
    return cluster(replace(shared(**annotations), containers=(container,)))


@pytest.mark.parametrize(
    ("argument", "fraction"),
    [
        ("vllm serve Qwen/Qwen2.5 --gpu-memory-utilization=0.7", "0.7"),
        ("vllm serve Qwen/Qwen2.5 --gpu-memory-utilization 0.50", "0.5"),
        ("vllm serve a --gpu-memory-utilization=0.9 --gpu-memory-utilization=0.2", "0.2"),
        ("vllm serve Qwen/Qwen2.5", "0.9"),
        ("sleep infinity", "0.5"),
    ],
)
def test_the_same_number_passes(argument, fraction):
    assert found(RULE, server(argument, gpu_fraction=fraction)) == []


def test_the_default_of_vllm_is_told_with_what_to_write():
    (problem,) = found(RULE, server("vllm serve Qwen/Qwen2.5", gpu_fraction="0.5"))
    assert problem.level is Level.ADVISORY
    assert "which then takes 0.9 of the GPU; add --gpu-memory-utilization=0.5" in problem.message


def test_more_and_less_than_the_fraction_are_told():
    (more,) = found(RULE, server("vllm serve a --gpu-memory-utilization=0.9", gpu_fraction="0.2"))
    assert "takes memory that other pods" in more.message
    assert more.message.endswith("write --gpu-memory-utilization=0.2")
    (less,) = found(RULE, server("vllm serve a --gpu-memory-utilization=0.3", gpu_fraction="0.5"))
    assert "lies idle" in less.message


def test_the_image_alone_shows_a_server():
    of_image = server("--model", "Qwen/Qwen2.5", command=(), gpu_fraction="0.5")
    assert len(found(RULE, of_image)) == 1
    of_module = server(
        "-m",
        "vllm.entrypoints.openai.api_server",
        command=("python3",),
        image="a",
        gpu_fraction="0.5",
    )
    assert len(found(RULE, of_module)) == 1
    other = server("--model", "x", command=(), image="lmsys/sglang:v1", gpu_fraction="0.5")
    assert found(RULE, other) == []


def test_a_share_in_mebibytes_needs_some_bound():
    (problem,) = found(RULE, server("vllm serve a", gpu_memory="8000"))
    assert "asks for gpu-memory: 8000 MiB and runs vLLM without" in problem.message
    assert found(RULE, server("vllm serve a --gpu-memory-utilization=0.2", gpu_memory="8000")) == []


def test_a_shell_variable_is_told():
    (problem,) = found(RULE, server("vllm serve a --gpu-memory-utilization=$U", gpu_fraction="0.5"))
    assert "from $U; see that it is 0.5" in problem.message


def test_whole_gpus_and_other_schedulers_are_not_its_business():
    assert found(RULE, cluster(workload())) == []
    assert found(RULE, server("vllm serve a")) == []


def test_unknown_arguments_are_an_open_question():
    assert "arguments are known" in open_question(RULE, server(UNKNOWN, gpu_fraction="0.5")).message
    assert open_question(RULE, server("vllm serve a", gpu_fraction=UNKNOWN))
