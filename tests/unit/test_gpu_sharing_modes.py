"""KAI v0.18 takes a mode of GPU sharing, and shares where it is told nothing."""

import pytest

from kai_fleet.kai.values import kai_values
from kai_fleet.releases.chart_values import unknown_keys
from kai_fleet_policies.adapters.from_resources import clusters
from kubectl_fleet.declared.unknown import UNKNOWN
from kubectl_fleet.releases import kai
from tests.policies.samples import resource

CHART = "oci://ghcr.io/kai-scheduler/kai-scheduler/kai-scheduler"


@pytest.mark.parametrize(("on", "mode"), [(True, "NonMemoryEnforced"), (False, "Disabled")])
def test_the_switch_is_a_mode_from_v0_18(on, mode):
    values = kai_values(kai("v0.18.6", untested=True), gpu_sharing=on)
    assert values["global"]["gpuSharingMode"] == mode
    assert "gpuSharing" not in values["global"]
    assert unknown_keys("kai", "v0.18.6", values) == []
    before = kai_values(kai("v0.17.0"), gpu_sharing=on)["global"]
    assert (before["gpuSharing"], "gpuSharingMode" in before) == (on, False)


def test_another_mode_can_be_written_as_a_value_from_v0_18_on():
    hami = {"global": {"gpuSharingMode": "HamiCore"}}
    newer = kai_values(kai("v0.18.6", untested=True), overrides=hami)
    assert newer["global"]["gpuSharingMode"] == "HamiCore"
    assert unknown_keys("kai", "v0.18.6", hami) == []
    assert [it.key for it in unknown_keys("kai", "v0.17.0", hami)] == ["global.gpuSharingMode"]
    misspelt = {"global": {"gpuSharingMod": "HamiCore"}}
    assert [it.instead for it in unknown_keys("kai", "v0.18.6", misspelt)] == [
        "global.gpuSharingMode"
    ]


@pytest.mark.parametrize(
    ("version", "values", "shares"),
    [
        ("v0.17.0", {}, False),
        ("v0.17.0", {"gpuSharing": True}, True),
        ("v0.18.6", {}, True),
        ("v0.18.6", {"gpuSharing": False}, False),
        ("v0.18.6", {"gpuSharingMode": "Disabled", "gpuSharing": True}, False),
        ("v0.18.6", {"gpuSharingMode": "HamiCore", "gpuSharing": False}, True),
        ("v0.18.6", {"gpuSharingMode": UNKNOWN}, UNKNOWN),
        (None, {}, UNKNOWN),
    ],
)
def test_the_pack_reads_whether_another_programs_kai_shares(version, values, shares):
    props = {"chart": CHART, "version": version, "values": {"global": values}}
    (cluster,) = clusters([resource("kubernetes:helm.sh/v3:Release", "kai", props)])
    assert cluster.kai[0].gpu_sharing is shares
