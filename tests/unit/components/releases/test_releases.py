"""The release tables, and the values made from them, against the charts of each version."""

import json
from datetime import date
from types import SimpleNamespace

import pytest

from kai_fleet import releases
from kai_fleet.kai.chart_values import kai_values
from kai_fleet.releases import (
    KAI,
    UnknownVersionError,
    advised,
    has_sharing_modes,
    kai,
    support,
    taken_for,
    vcluster,
    version_key,
)
from kai_fleet.releases.sharing import has_mode
from kai_fleet.vcluster.chart_values import vcluster_values
from kai_fleet_policies.rules.upgrade_steps import kubernetes_refusal, vcluster_refusal
from tests.chart_keys import unknown_keys

MODES = ("virtual", "host", "default")


def flat(values, prefix=""):
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def on(day, monkeypatch):
    monkeypatch.setattr(releases, "date", SimpleNamespace(today=lambda: day))


def values_of(mode="virtual", **more):
    arguments = {
        "mode": mode,
        "node_pool": {"kai-fleet/pool": "ml"},
        "access": {"type": "NodePort", "host": "10.0.0.1", "port": 30443},
        "kubernetes_version": "v1.34.4",
    }
    return vcluster_values("ml", arguments | more, "team-ml")


CHARTS_AT_HAND = [
    "v0.7.11",
    "v0.9.3",
    "v0.9.8",
    "v0.9.20",
    "v0.12.23",
    "v0.14.7",
    "v0.16.8",
    "v0.17.0",
]


@pytest.mark.parametrize("version", CHARTS_AT_HAND)
def test_every_value_is_one_that_this_versions_chart_has(version, facts):
    known = set(json.loads((facts / "kai" / "chart-values.json").read_text())[version])
    free = {"binder.runtimeClassName", "global.resourceReservation.runtimeClassName"}
    for key in flat(kai_values(kai(version), {})):
        # The charts read this value and leave it out of their defaults.
        assert key in known or key in free, f"{version} has no value {key}"


@pytest.mark.parametrize(
    ("version", "key"),
    [
        ("v0.7.11", None),
        ("v0.9.3", None),
        ("v0.9.8", ("global", "resourceReservation")),
        ("v0.12.23", ("binder",)),
        ("v0.16.8", ("binder",)),
    ],
)
def test_the_reservation_pods_runtime_class_goes_where_that_version_reads_it(version, key):
    values = kai_values(kai(version), {})
    if key is None:
        assert "runtimeClassName" not in json.dumps(values)
    else:
        for part in key:
            values = values[part]
        assert values["runtimeClassName"] == "nvidia"


@pytest.mark.parametrize("version", ["v0.12.23", "v0.14.7", "v0.16.8"])
def test_default_queues_and_the_hooks_that_hang_are_off(version):
    values = kai_values(kai(version), {})
    assert values["defaultQueue"]["createDefaultQueue"] is False
    assert values["topologyMigration"]["enabled"] is False
    assert values["postCleanup"]["enabled"] is False


def test_containers_without_a_gpu_see_none_where_the_version_can_do_that():
    hidden = {v for v in KAI if kai_values(kai(v), {})["global"].get("blockNvidiaVisibleDevices")}
    assert hidden == {"v0.16.7", "v0.16.8", "v0.16.9", "v0.17.0", "v0.18.0"}
    off = kai_values(kai("v0.16.8"), {"isolation": "off"})["global"]
    assert "blockNvidiaVisibleDevices" not in off


@pytest.mark.parametrize("version", KAI)
def test_restricted_gives_kais_parts_their_security_context(version):
    context = kai_values(kai(version), {"isolation": "restricted"})["global"]
    assert context["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert "securityContext" not in kai_values(kai(version), {})["global"]


def test_the_chart_moved_with_the_project():
    assert kai("v0.9.8").chart.startswith("oci://ghcr.io/nvidia/")
    assert kai("v0.12.23").chart.startswith("oci://ghcr.io/kai-scheduler/")


def test_a_vcluster_that_is_newer_than_the_table_is_let_through_by_a_word():
    assert vcluster("v0.38.0", untested=True).version == "v0.38.0"
    assert vcluster("v0.35.5", untested=True).chart_version == "0.35.5"
    for version, word in (("v0.38.0", False), ("v0.35.5", False), ("v0.1.0", True)):
        with pytest.raises(UnknownVersionError):
            vcluster(version, untested=word)


def test_versions_are_in_the_order_of_semver():
    """The example of semver.org, between its neighbours; what is built of a version is that."""
    suffixes = ("alpha", "alpha.1", "alpha.beta", "beta", "beta.2", "beta.11", "rc.1", "rc.1.1")
    before = [f"v0.16.0-{suffix}" for suffix in suffixes]
    in_order = ["", "v0.15.9", *before, "v0.16.0", "v0.16.1-rc.1", "v0.16.1", "v0.16.10"]
    assert [*map(version_key, in_order)] == sorted(map(version_key, in_order))
    assert len({str(version_key(version)) for version in in_order}) == len(in_order)
    assert version_key("v0.16.0+build.7") == version_key("0.16.0")


def test_a_release_candidate_has_what_its_line_has_and_is_older_than_its_release():
    assert has_sharing_modes("v0.18.0-rc.1")
    assert has_mode("v0.18.0-rc.1", "NvFractions")
    newest = [*KAI][-1]
    assert taken_for(KAI, f"{newest}-rc.1") is None
    assert vcluster_refusal("v0.36.1", "v0.36.1-rc.2")
    assert vcluster_refusal("v0.36.1-rc.2", "v0.36.1") is None
    assert kubernetes_refusal("v1.34.4-vendor.1", "v1.34.4", None) is None


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ("v0.16.10", "v0.16.9"),  # a newer patch of a line that is not the newest
        ("v0.19.0", "v0.18.0"),
        ("v0.16.6", None),
        ("v0.20.1", None),
    ],
)
def test_what_is_newer_than_its_line_is_taken_for_the_newest_known_of_it(version, known):
    assert taken_for(KAI, version) == known
    if known is None:
        return
    assert support(KAI, version).words == "not tried with this program"
    taken = kai(version, untested=True)
    assert (taken.version, taken.chart, taken.values) == (
        version,
        kai(known).chart,
        kai(known).values,
    )
    values = {"nosuch": 1}
    assert unknown_keys("kai", version, values) == unknown_keys("kai", known, values)


@pytest.mark.parametrize(
    ("version", "maintained", "words"),
    [
        ("v0.16.8", True, "supported until 2027-06-30"),
        ("v0.9.3", False, "line v0.9 is out of support since 2026-09-30"),
        ("v0.7.11", False, "no support dates are published for line v0.7"),
        ("v0.20.1", False, "retracted: its chart is that of v0.10.2"),
        ("v0.18.6", False, "not tried with this program"),
        ("v0.5.0", False, "not supported here"),
    ],
)
def test_there_is_one_word_for_the_support_of_each_version(version, maintained, words, monkeypatch):
    on(date(2026, 11, 23), monkeypatch)
    reported = support(KAI, version)
    assert (reported.maintained, reported.words) == (maintained, words)


def test_virtual_mode_has_its_own_scheduler_and_only_its_own_nodes():
    values = values_of()
    assert values["controlPlane"]["distro"]["k8s"]["scheduler"]["enabled"] is True
    assert values["sync"]["fromHost"]["nodes"] == {
        "enabled": True,
        "selector": {"labels": {"kai-fleet/pool": "ml"}},
    }
    assert values["sync"]["fromHost"]["runtimeClasses"]["enabled"] is True
    assert "experimental" not in values  # garbage collection stays on


def test_host_mode_lets_the_hosts_kai_place_the_pods():
    values = values_of("host", node_pool={})
    assert values["experimental"]["syncSettings"]["setOwner"] is False
    assert values["sync"]["fromHost"]["priorityClasses"]["enabled"] is True
    assert "nodes" not in values["sync"]["fromHost"]
    assert "scheduler" not in values["controlPlane"]["distro"]["k8s"]


@pytest.mark.parametrize("mode", MODES)
def test_what_breaks_gpu_work_is_off_in_every_mode(mode):
    values = values_of(mode)
    assert values["controlPlane"]["statefulSet"]["image"]["repository"] == "loft-sh/vcluster-oss"
    assert values["policies"]["resourceQuota"]["enabled"] is False
    assert values["policies"]["limitRange"]["enabled"] is False
    assert values["networking"]["advanced"]["proxyKubelets"] == {"byHostname": False, "byIP": False}
    assert "podgroups" not in json.dumps(values)


@pytest.mark.parametrize(
    ("version", "day", "to"),
    [
        ("v0.9.3", date(2026, 11, 24), "v0.16.9"),
        ("v0.16.9", date(2026, 11, 24), None),  # v0.18.0 has known vulnerabilities,
        ("v0.17.0", date(2026, 11, 24), None),  # v0.16 gets fixes for longer, and is older
        ("v0.9.3", date(2028, 1, 1), None),
    ],
)
def test_the_advice_on_a_version_is_the_newest_that_gets_fixes_and_never_an_older_one(
    version, day, to, monkeypatch
):
    on(day, monkeypatch)
    assert advised(KAI, version) == to
