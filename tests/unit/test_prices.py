"""`kai-fleet:prices`: what is refused, and what the doctor says of models and nodes."""

import pytest

from kai_fleet.settings import load
from kai_fleet_cli.waiting.finding import Health
from tests.unit.doctor_samples import Lab, node

H100 = "NVIDIA-H100-80GB-HBM3"
CLUSTER = {"name": "lab", "context": "lab"}


@pytest.mark.parametrize(
    ("prices", "path", "says"),
    [
        ({"gpuHour": {"default": -1.0}}, "gpuHour.default", "is -1.0; write 0"),
        ({"gpuHour": {H100: "4.20"}}, f"gpuHour.{H100}", "is '4.20'; write a number"),
        ({"gpuHour": {}}, "gpuHour", "is empty; write a value or drop the key"),
        ({"gpuHour": {"NVIDIA H100": 4}}, "gpuHour.NVIDIA H100", "such as NVIDIA-H100-80GB-HBM3"),
        ({"gpuHour": {"default": 1}, "currency": "euro"}, "currency", "such as EUR"),
        ({"gpuhour": {"default": 1}}, "gpuhour", "write gpuHour"),
    ],
)
def test_a_mistake_is_named_with_what_to_write(prices, path, says):
    raw = {"cluster": CLUSTER, "prices": {"currency": "EUR", **prices}}
    mistakes = {mistake.path: mistake.message for mistake in load(raw).mistakes}
    assert list(mistakes) == [f"kai-fleet:prices.{path}"]
    assert says in mistakes[f"kai-fleet:prices.{path}"]


def test_a_whole_number_is_a_price_and_default_is_for_every_other_model():
    raw = {"cluster": CLUSTER, "prices": {"currency": "EUR", "gpuHour": {H100: 4, "default": 1.1}}}
    prices = load(raw).settings.prices
    assert (prices.of(H100), prices.of("L4"), prices.of("")) == (4, 1.1, 1.1)


def said(gpu_hour, product=H100, **labels):
    lab = Lab()
    lab.settings["prices"] = {"currency": "EUR", "gpuHour": gpu_hour}
    told = lab.host["nodes"][0]["metadata"]["labels"]
    told |= {"nvidia.com/gpu.product": product} if product else {}
    return [finding for finding in lab.ill() if finding.check == "prices"]


def test_prices_of_what_nodes_have_are_well():
    assert said({H100: 4.2}) == said({"default": 1}) == said({"default": 1}, None) == []


@pytest.mark.parametrize(
    ("gpu_hour", "product", "subject", "fix"),
    [
        ({"NVIDIA-H100-80GB": 4, "default": 1}, H100, "NVIDIA-H100-80GB", f"write {H100}, drop it"),
        ({H100: 4}, "L4", "GPUs of model L4", "write their price at kai-fleet:prices.gpuHour.L4"),
        ({H100: 4}, None, "model of the GPUs of ml-0", "kai-fleet:prices.gpuHour.default"),
    ],
)
def test_a_model_that_no_node_has_and_one_without_a_price_are_warned_of(
    gpu_hour, product, subject, fix
):
    findings = said(gpu_hour, product)
    assert {finding.health for finding in findings} == {Health.WARNING}
    (finding,) = [it for it in findings if subject in it.subject]
    assert fix in finding.fix


def test_nodes_without_gpus_need_no_price():
    lab = Lab()
    lab.settings["prices"] = {"currency": "EUR", "gpuHour": {H100: 4}}
    lab.host["nodes"][0]["metadata"]["labels"]["nvidia.com/gpu.product"] = H100
    lab.host["nodes"].append(node("cpu", "0"))
    assert [finding for finding in lab.ill() if finding.check == "prices"] == []
