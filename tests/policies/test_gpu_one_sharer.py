import pytest

from kai_fleet.fleet.cluster import Cluster, DevicePlugin, Kai
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.adapters.charts import device_sharing
from tests.policies.samples import cluster, found, host, open_question, refusal, team

RULE = "gpu-one-sharer"
SLICED = """
version: v1
sharing:
  timeSlicing:
    resources: [{name: nvidia.com/gpu, replicas: 4}]
"""


def plugin(sharing):
    return (DevicePlugin(sharing, path="kai-fleet:gpu.values"),)


def test_one_sharer_passes():
    assert found(RULE, cluster(device_plugins=plugin(""))) == []
    off = (Kai("v0.9.3", sharing="Disabled"),)
    assert found(RULE, cluster(kai=off, device_plugins=plugin("MPS"))) == []
    assert found(RULE, host(device_plugins=plugin("time-slicing"))) == []


def test_two_sharers_are_refused():
    problem = refusal(RULE, cluster(device_plugins=plugin("time-slicing")))
    assert problem.path == "kai-fleet:gpu.values"
    assert (
        "shares GPUs by time-slicing while the KAI of the host shares them too" in problem.message
    )
    assert "remove the sharing section" in problem.message


def test_a_kai_inside_a_vcluster_counts():
    teams = (team("ml", inside=Cluster(kai=(Kai("v0.9.3"),))), team("b"))
    assert "team ml" in refusal(RULE, host(*teams, device_plugins=plugin("MPS"))).message


def test_unknown_values_are_told():
    assert "config" in open_question(RULE, cluster(device_plugins=plugin(UNKNOWN))).message
    unclear = cluster(kai=(Kai("v0.9.3", sharing=UNKNOWN),), device_plugins=plugin("MPS"))
    assert "whether the KAI of the host shares" in open_question(RULE, unclear).message


@pytest.mark.parametrize(
    ("chart", "values", "sharing"),
    [
        ("nvidia-device-plugin", {}, ""),
        ("nvidia-device-plugin", {"config": {"map": {"default": SLICED}}}, "time-slicing"),
        ("nvidia-device-plugin", {"config": {"name": "somewhere"}}, UNKNOWN),
        ("nvidia-device-plugin", {"mps": {"root": "/run/nvidia/mps"}}, ""),
        (
            "gpu-operator",
            {"devicePlugin": {"config": {"name": "c", "data": {"any": SLICED}}}},
            "time-slicing",
        ),
        (
            "gpu-operator",
            {"devicePlugin": {"config": {"data": {"x": {"sharing": {"mps": {"resources": [1]}}}}}}},
            "MPS",
        ),
        ("gpu-operator", {"devicePlugin": {"config": {"name": "elsewhere"}}}, UNKNOWN),
        ("gpu-operator", {"devicePlugin": {"enabled": True}}, ""),
        ("gpu-operator", UNKNOWN, UNKNOWN),
    ],
)
def test_the_sharing_of_a_device_plugin_chart_is_read_from_its_values(chart, values, sharing):
    assert device_sharing(chart, values) == sharing
