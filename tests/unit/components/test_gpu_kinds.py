"""A team's GPUs by kind: from the file to quota, guards, queues, plan and diff."""

import pytest

from kai_fleet.isolation.bounds import pod_bounds
from kai_fleet.isolation.limits import quotas
from kai_fleet.queues.specs import labels_of, named_specs
from kai_fleet_cli.plan.offline import plan_settings
from kai_fleet_cli.plan.picture import picture
from kai_fleet_stack import validation
from kai_fleet_stack.settings.loading import load
from tests.attacks.objects import pod
from tests.policy_evaluation import creation, refusals
from tests.unit.stack.stack_arguments import arguments

SLICE = "nvidia.com/mig-1g.10gb"
LARGE = "nvidia.com/mig-3g.40gb"
VIRTUAL = {"mode": "virtual", "version": "v0.16.8"}


def raw(gpus, **more):
    team = {"scheduler": VIRTUAL, "nodePool": {"pool": "ml"}, "queues": {"train": {}}, **more}
    return {
        "cluster": {"name": "lab", "context": "lab"},
        "teams": {"ml": team if gpus is None else {**team, "gpus": gpus}},
    }


def mistakes(file):
    return {mistake.path: mistake.message for mistake in load(file).mistakes}


def namespace(gpus, **more):
    return arguments(raw(gpus, **more)).namespace("ml")


def hard(gpus, **more):
    return quotas(namespace(gpus, **more))["gpus"]["hard"]


def inside(found):
    """Share of GPUs of each queue inside the vCluster, in whole GPUs as KAI counts them."""
    own = found.queues("ml")
    specs = dict(named_specs(own["queues"], own.get("gpus"), own.get("pools")))
    return {name: spec["resources"]["gpu"] for name, spec in specs.items()}


@pytest.mark.parametrize(
    ("gpus", "says"),
    [
        ({"nvidia.com/mig-1g10gb": 2}, f"write {SLICE}, or nvidia.com/gpu"),
        ({"mig-1g.10gb": 2}, f"write {SLICE}"),
        ({"example.com/npu": 1}, "other devices in isolation.devices"),
        ({SLICE: 0.5}, f"has {SLICE}: 0.5; write a whole number"),
        ({SLICE: True}, f"has {SLICE}: True; write a whole number"),
        ("8", "is '8'; write it without quotes: 8"),
        ({SLICE: "14"}, f"has {SLICE}: '14'; write it without quotes: 14"),
        ("8.5", "is '8.5'; write a whole number up to 1000000, or one for each kind"),
        (10**7, "is 10000000; write a whole number up to 1000000"),
        ({"amd.com/gpu": 8}, "the host's GPUs are nvidia.com/gpu"),
    ],
)
def test_what_is_no_kind_and_no_number_is_refused_with_what_to_write(gpus, says):
    (found,) = mistakes(raw(gpus)).items()
    assert found[0] == "kai-fleet:teams.ml.gpus"
    assert says in found[1]


@pytest.mark.parametrize("level", ["baseline", "off"])
def test_each_kind_has_its_quota_on_the_host_at_every_level(level):
    found = hard({SLICE: 14}, isolation={"level": level})
    assert (found["requests.nvidia.com/gpu"], found[f"requests.{SLICE}"]) == ("0", "14")


@pytest.mark.parametrize(
    ("gpus", "devices", "counts"),
    [
        ({"nvidia.com/gpu": 2, SLICE: 7, LARGE: 2}, {}, 15),
        ({f"{SLICE}.me": 1, SLICE: 1}, {}, 1),  # KAI cannot read the former, and counts nothing
        (0, {SLICE: 4, "example.com/nic": 9}, 4),  # granted the other way
    ],
)
def test_queues_are_bounded_as_kai_counts(gpus, devices, counts):
    found = inside(arguments(raw(gpus, isolation={"devices": devices})))
    assert found == {"train": {"quota": counts, "limit": counts, "overQuotaWeight": 1}}


def said_of(gpus, name):
    body = pod("ml", {"name": "c", "resources": {"limits": {name: "1"}}})
    user = {"username": "system:serviceaccount:team-ml:vc-ml", "groups": []}
    request = creation("pods", "team-ml", user)
    return list(refusals("devices", body, request, pod_bounds("ml", namespace(gpus))))


def test_the_guard_lets_granted_slices_through_and_no_others():
    assert said_of({SLICE: 2}, SLICE) == []
    (other,) = said_of({SLICE: 2}, LARGE)
    assert f"asks for {LARGE}" in other
    (without,) = said_of(8, SLICE)
    assert "a MIG profile in gpus" in without


def test_a_pod_with_slices_beside_the_queues_is_refused_where_whole_gpus_are():
    body = pod("ml", {"name": "c", "resources": {"limits": {SLICE: "1"}}})
    request = creation("pods", "default", {"username": "u", "groups": []})
    (reported,) = refusals("outside-queues", body, request)
    assert f"asks for {SLICE} beside the queues" in reported


def refused(file):
    return {(p.check, p.path): p.message for p in validation.validate(file).refused}


def test_queues_that_promise_more_than_all_kinds_are_refused():
    file = raw({"nvidia.com/gpu": 1, LARGE: 1}, queues={"a": {"gpu": 3}, "b": {"gpu": 2}})
    ((rule, path), reported), *rest = refused(file).items()
    assert (rule, path, rest) == ("queue-quota", "kai-fleet:teams.ml.queues", [])
    assert "add up to 5, above the team's GPUs of 4" in reported


def test_two_teams_with_slices_on_the_same_nodes_are_refused():
    file = raw({SLICE: 2})
    file["teams"]["dev"] = {"scheduler": {"mode": "default"}, "gpus": {SLICE: 2}}
    assert {rule for rule, _ in refused(file)} == {"team-node-pools"}


def test_the_plan_names_each_kind():
    planned = plan_settings(raw({"nvidia.com/gpu": 2, SLICE: 14}))
    (row,) = picture(planned.resources).teams
    assert "2, 14 mig-1g.10gb" in row


POOLS = {"a100": 8, "l4": 16}
ON_POOLS = {"big": {"shard": "a100"}, "small": {"shard": "l4"}}


def on_pools(**more):
    return raw(more.pop("gpus", None), **{"pools": POOLS, "queues": ON_POOLS, **more})


def limits(found):
    return {name: (gpu["quota"], gpu["limit"]) for name, gpu in inside(found).items()}


def test_each_pool_bounds_the_queues_on_it_and_the_host_their_sum():
    own = arguments(on_pools())
    assert limits(own) == {"big": (8, 8), "small": (16, 16)}
    assert quotas(own.namespace("ml"))["gpus"]["hard"]["requests.nvidia.com/gpu"] == "24"
    assert [*own.kai("ml")["shards"]] == ["a100", "l4"]
    assert labels_of(own.queues("ml")["queues"]) == {
        "big": {"kai.scheduler/node-pool": "a100"},
        "small": {"kai.scheduler/node-pool": "l4"},
    }


def test_pools_of_several_kinds_add_up_by_kind():
    file = on_pools()
    file["teams"]["ml"]["pools"] = {"default": 4, "cut": {SLICE: 14}}
    file["teams"]["ml"]["queues"] = {"big": {}, "small": {"shard": "cut"}}
    own = arguments(file)
    assert limits(own) == {"big": (4, 4), "small": (14, 14)}
    granted = quotas(own.namespace("ml"))["gpus"]["hard"]
    assert (granted["requests.nvidia.com/gpu"], granted[f"requests.{SLICE}"]) == ("4", "14")
    assert [*own.kai("ml")["shards"]] == ["cut"]


@pytest.mark.parametrize("shard", [None, ""])
def test_an_empty_shard_is_the_default_one(shard):
    tree = {"big": {"shard": shard, "children": {"small": {}}}}
    assert labels_of(tree) == {}
    own = arguments(raw(8, queues=tree)).queues("ml") if shard is None else {"queues": {}}
    assert labels_of(own["queues"]) == {}


@pytest.mark.parametrize("pools", [{"default": 4, "cut": {"amd.com/gpu": 2}}, {"default": 6}])
def test_a_plain_number_in_a_pool_counts_gpus_of_the_host(pools):
    file = {**on_pools(pools=pools, queues={"train": {}}), "gpu": {"resource": "amd.com/gpu"}}
    own = arguments(file)
    assert quotas(own.namespace("ml"))["gpus"]["hard"]["requests.amd.com/gpu"] == "6"
    file["teams"]["ml"]["gpus"] = {"amd.com/gpu": 6}
    assert mistakes(file) == {}
    file["teams"]["ml"]["gpus"] = 7
    assert "is 7, and its pools have" in mistakes(file)["kai-fleet:teams.ml.gpus"]


@pytest.mark.parametrize(
    ("change", "path", "says"),
    [
        ({"gpus": 8}, "gpus", "is 8, and its pools have 24 together; drop it"),
        ({"queues": {"big": {}}}, "queues.big.shard", "is missing, and the team has pools"),
        ({"pools": {"a100": "8"}}, "pools.a100", "write it without quotes: 8"),
        ({"scheduler": {"mode": "default"}, "queues": {}}, "pools", "has no use in mode default"),
    ],
)
def test_what_does_not_fit_the_pools_is_told(change, path, says):
    assert says in mistakes(on_pools(**change))[f"kai-fleet:teams.ml.{path}"]


def test_queues_of_a_pool_promise_what_it_has():
    queues = {**ON_POOLS, "big": {"shard": "a100", "gpu": 12}}
    file = on_pools()
    file["teams"]["ml"]["queues"] = queues
    (reported,) = refused(file).values()
    assert "above the team's GPUs on pool a100 of 8" in reported
    file["teams"]["ml"]["queues"]["big"] = {"shard": "a100"}
    assert refused(file) == {}


def test_versions_without_shards_have_no_pools():
    file = on_pools(scheduler={**VIRTUAL, "version": "v0.9.20"})
    assert ("kai-feature-known", "kai-fleet:teams.ml.pools") in refused(file)
