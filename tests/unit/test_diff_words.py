"""What a difference means, in words."""

import copy

import pytest

from kai_fleet_cli.diff.consequences import kai_switch
from tests.unit.golden import compare as golden
from tests.unit.golden.reports import named, report, said


def test_a_switch_says_what_is_replaced_and_what_stays():
    record = golden.record()
    named(record, "research-kai-release")["inputs"]["version"] = "v0.14.7"
    (sentence,) = said(record)
    assert sentence.startswith("research: KAI v0.16.8 → v0.14.7, replaced, its 3 queues are")
    assert "helm cannot downgrade this chart" in sentence
    assert "are re-declared and running pods stay" in sentence
    found = report(record)
    assert found.untouched == ["dev"]
    replaced = {change.name: change.reason for change in found.difference.replaced}
    assert set(replaced) == {"research-kai-release", "research-kai-ready"}
    assert "it runs again after its release" in replaced["research-kai-ready"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("v0.9.3", "v0.7.11", "replaced (helm cannot downgrade this chart"),
        ("v0.7.11", "v0.9.3", "replaced (the new chart has kai-operator"),
        ("v0.14.7", "v0.16.8", "upgraded in place"),
        ("v0.1.0", "v0.16.8", "replaced (v0.1.0 is not in the table)"),
    ],
)
def test_each_kai_switch_is_what_the_program_does(old, new, says):
    switch = kai_switch(old, new)
    assert switch.startswith(f"KAI {old} → {new}, {says}")
    assert "(K" not in switch


def test_an_upgrade_in_place_replaces_nothing():
    base, now = golden.record(), golden.record()
    named(base, "research-kai-release")["inputs"]["version"] = "v0.14.7"
    named(base, "research-kai-ready")["inputs"]["environment"]["KAI_VERSION"] = "v0.14.7"
    (sentence,) = said(now, base["resources"])
    assert sentence == (
        "research: KAI v0.14.7 → v0.16.8, upgraded in place, its 3 queues are re-declared and"
        " running pods stay"
    )
    found = report(now, base["resources"]).difference
    assert {change.name for change in found.changed} == {
        "research-kai-release",
        "research-kai-ready",
    }
    assert not found.replaced


def test_new_values_replace_a_kai_whose_upgrades_are_harmful():
    base, now = golden.record(), golden.record()
    for record, sharing in ((base, True), (now, False)):
        inputs = named(record, "research-kai-release")["inputs"]
        inputs["version"] = "v0.9.8"
        inputs["values"]["global"]["gpuSharing"] = sharing
    (change, wait) = report(now, base["resources"]).difference.replaced
    assert {change.name, wait.name} == {"research-kai-release", "research-kai-ready"}
    assert "recreate kai-config of v0.9.8" in change.reason + wait.reason


def test_vcluster_steps_that_are_not_supported_say_so():
    record = golden.record()
    named(record, "dev-release")["inputs"]["version"] = "0.37.0"
    step = "dev: vCluster v0.36.1 → v0.37.0, upgraded in place, and its API restarts"
    assert said(record) == [step]
    named(record, "dev-release")["inputs"]["version"] = "0.34.7"
    assert said(record) == ["dev: vCluster v0.36.1 → v0.34.7, which the update refuses"]


def test_nodes_mode_and_other_fields():
    record = golden.record()
    selector = named(record, "dev-release")["inputs"]["values"]["sync"]["fromHost"]["nodes"]
    selector["selector"]["labels"] = {"pool": "big", "kai/x": "y"}
    named(record, "dev-release")["inputs"]["chart"] = "https://example.org/vcluster"
    (sentence,) = said(record)
    assert sentence == (
        "dev: nodes pool=dev → kai/x=y, pool=big, and its API restarts; Release dev-release:"
        " chart vcluster → https://example.org/vcluster"
    )


def test_queues_that_only_look_renamed_are_not():
    """Two go and two alike come: which became which is not known."""
    base = golden.record()
    twin = copy.deepcopy(named(base, "research-queues-serve"))
    twin["name"], twin["urn"] = "research-queues-s2", twin["urn"].replace("serve", "s2")
    twin["inputs"]["metadata"]["name"] = "s2"
    base["resources"].append(twin)
    now = copy.deepcopy(base)
    for old, new in (("research-queues-serve", "x1"), ("research-queues-s2", "x2")):
        item = named(now, old)
        item["name"], item["urn"] = f"q-{new}", item["urn"].rpartition("::")[0] + f"::q-{new}"
        item["inputs"]["metadata"]["name"] = new
    (sentence,) = said(now, base["resources"])
    assert "becomes" not in sentence
    assert "queues x1 and x2 are created" in sentence
    assert (
        "queues s2 and serve are deleted, and pods that name them are no longer scheduled"
        in sentence
    )


def test_another_cluster_makes_everything_anew():
    record = golden.record()
    named(record, "host")  # the platform; its provider has the same name
    provider = next(
        item for item in record["resources"] if item["urn"].endswith("providers:kubernetes::host")
    )
    provider["inputs"]["clusterIdentifier"] = "other"
    found = report(record)
    assert "dev-release" in {change.name for change in found.difference.replaced}
    assert said(record)[0].startswith("host: the cluster has another identity")


def test_a_team_of_which_only_a_wait_changes_is_not_passed_over():
    record = golden.record()
    named(record, "dev-ready")["inputs"]["environment"]["VCLUSTER_TIMEOUT"] = "700"
    assert said(record) == ["dev: only Command dev-ready changes"]
    assert report(record).untouched == ["research"]


def shards_of_research(record, objects):
    """What `shards` in the stack file adds to a plan."""
    ready = named(record, "research-kai-ready")
    parent = "urn:pulumi:lab::kai-fleet::kai-fleet:index:Team$kai-fleet:index:SchedulingShards"
    applied = copy.deepcopy(ready) | {
        "urn": f"{parent}$command:local:Command::research-shards-apply",
        "name": "research-shards-apply",
        "parent": named(record, "research-kai-ready")["parent"],
    }
    applied["inputs"]["environment"] = {"KAI_OBJECTS": objects}
    record["resources"].append(applied)
    return record


def test_shards_are_told_by_what_they_are_and_not_by_the_step_that_applies_them():
    base = shards_of_research(golden.record(), "{}")
    now = shards_of_research(golden.record(), '{"schedulingshards": {"gold": {}}}')
    plain = golden.record()
    shards = "research: KAI's shards and fairness settings"
    assert said(now, base["resources"]) == [f"{shards} change"]
    assert said(now, plain["resources"]) == [f"{shards} are added"]
    assert said(plain, base["resources"]) == [f"{shards} are removed"]
