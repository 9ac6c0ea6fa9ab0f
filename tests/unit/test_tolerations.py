"""Teams whose nodes have taints: one key says what all of their pods tolerate."""

import copy
import json

import jsonschema
import pytest
import yaml

from kai_fleet.fleet.arguments import Arguments
from kai_fleet.guards.bounds import pod_bounds
from kai_fleet.kai_values import kai_values
from kai_fleet.releases import KAI, VCLUSTER, kai
from kai_fleet.releases.chart_values import unknown_keys
from kai_fleet.settings import load
from kai_fleet.settings.team_stack import Facts, load_team_stack
from kai_fleet_cli.plan.offline import plan_settings
from tests.unit.doctor_samples import SETTINGS, Lab
from tests.unit.stack_arguments import arguments, team_values

OWN = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
GPU = {"key": "nvidia.com/gpu"}
SPECS = [
    {"key": "dedicated", "operator": "Equal", "value": "ml", "effect": "NoSchedule"},
    {"key": "nvidia.com/gpu", "operator": "Exists"},
]


def stack(team=None, **more):
    raw = copy.deepcopy(SETTINGS) | more
    raw["teams"]["ml"] |= team or {}
    return raw


def declared(team=None, **more):
    return arguments(stack(team, **more)).vcluster("ml")


def tolerated(team=None, **more):
    return [it["key"] for it in declared(team, **more)["tolerations"]]


def inside(team, version):
    return kai_values(kai(version), arguments(stack(team)).kai("ml"))


@pytest.mark.parametrize("version", sorted(VCLUSTER))
def test_the_control_plane_its_dns_and_every_synced_pod_tolerate_them(version):
    values = team_values(stack({"tolerations": [OWN, GPU]}), version)
    control = values["controlPlane"]
    assert control["statefulSet"]["scheduling"]["tolerations"] == SPECS
    assert control["statefulSet"]["scheduling"]["nodeSelector"] == {"kai-fleet/pool": "ml"}
    assert control["coredns"]["deployment"]["tolerations"] == SPECS
    # Without a colon vCluster reads an empty value, where Exists is meant.
    enforced = values["sync"]["toHost"]["pods"]["enforceTolerations"]
    assert enforced == ["dedicated=ml:NoSchedule", "nvidia.com/gpu:"]
    assert unknown_keys("vcluster", version, values) == []


@pytest.mark.parametrize("version", sorted(KAI))
def test_so_does_kai_with_its_operands(version):
    values = inside({"tolerations": [OWN, GPU]}, version)
    assert values["global"]["tolerations"] == SPECS
    assert unknown_keys("kai", version, values) == []
    assert "tolerations" not in kai_values(kai(version), {})["global"]


def test_the_plan_shows_them_in_both_releases():
    plan = {it.name: it.inputs for it in plan_settings(stack(tolerations=[GPU])).resources}
    inside = plan["ml-kai-release"]["values"]["global"]["tolerations"]
    assert inside == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    enforced = plan["ml-release"]["values"]["sync"]["toHost"]["pods"]["enforceTolerations"]
    assert enforced == ["nvidia.com/gpu:"]
    notes = plan["ml-namespace"]["metadata"]["annotations"]
    assert notes["guard.kai-fleet/tolerations"] == "nvidia.com/gpu:"


def test_a_teams_own_stand_in_place_of_the_stacks():
    assert tolerated(tolerations=[GPU]) == ["nvidia.com/gpu"]
    assert tolerated({"tolerations": [OWN]}, tolerations=[GPU]) == ["dedicated"]
    assert tolerated({"tolerations": []}, tolerations=[GPU]) == []


def test_without_any_nothing_changes():
    values = team_values(stack())
    assert "coredns" not in values["controlPlane"]
    assert "enforceTolerations" not in values["sync"]["toHost"]["pods"]
    assert "tolerations" not in pod_bounds("ml", arguments(stack()).namespace("ml"))


def test_a_team_stack_has_those_of_its_grant_and_writes_none():
    grant = {"nodePool": {"kai-fleet/pool": "nlp"}, "tolerations": [OWN]}
    platform = load(stack(teamStacks={"nlp": grant})).settings
    facts = Facts.read(json.loads(json.dumps(Facts.of(platform).output())))
    team = {"name": "nlp", "scheduler": {"mode": "default"}}
    raw = {"platform": {"stack": "prod"}, "team": team}
    tenant = load_team_stack(raw, lambda _: facts)
    assert tenant.mistakes == ()
    assert Arguments(tenant.settings).vcluster("nlp")["tolerations"] == [SPECS[0]]
    (mistake,) = load_team_stack(
        {**raw, "team": {**team, "tolerations": [GPU]}}, lambda _: facts
    ).mistakes
    assert "drop tolerations, and have it written in kai-fleet:teamStacks.nlp" in mistake.message


@pytest.mark.parametrize(
    ("wrong", "path", "says"),
    [
        ({"operator": "Exists"}, "0.key", "is missing; write key: … (write the taint's key"),
        ({"key": "a", "operator": "Exists", "value": "b"}, "0", "drop value, or write Equal"),
        ({"key": "a", "effect": "NoRun"}, "0.effect", "write one of 'NoSchedule'"),
        ("dedicated=ml:NoSchedule", "0", "write a mapping of keys"),
    ],
)
def test_what_is_no_toleration_is_refused_with_what_to_write(wrong, path, says):
    (mistake,) = load(stack({"tolerations": [wrong]})).mistakes
    assert mistake.path == f"kai-fleet:teams.ml.tolerations.{path}"
    assert says in mistake.message


def test_mappings_among_the_charts_strings_are_refused():
    pods = {"pods": {"enforceTolerations": [OWN]}}
    plan = plan_settings(stack({"vcluster": {"values": {"sync": {"toHost": pods}}}}))
    (problem,) = plan.problems
    assert problem.path.endswith("vcluster.values.sync.toHost.pods.enforceTolerations")
    assert "write them at the team's tolerations" in problem.message


def tainted(lab, *taints):
    lab.named("nodes", "ml-0", "host")["spec"]["taints"] = list(taints)
    return [f for f in lab.ill() if "has a taint" in f.cause]


TAINT = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}


def test_the_doctor_names_the_taint_of_a_pool_and_the_line_to_write():
    (finding,) = tainted(Lab(), TAINT)
    assert "each of its 1 nodes has a taint (dedicated)" in finding.cause
    fix = 'write tolerations: [{key: "dedicated", value: "ml", effect: "NoSchedule"}]'
    assert finding.fix.startswith(fix)
    line = yaml.safe_load(fix.removeprefix("write "))
    assert tainted(Lab(settings=stack(line)), TAINT) == []


@pytest.mark.parametrize(
    "taint",
    [
        {**TAINT, "effect": "PreferNoSchedule"},
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
    ],
)
def test_it_is_quiet_about_taints_that_keep_nothing_off_for_long(taint):
    assert tainted(Lab(), taint) == []


def test_it_is_quiet_where_values_say_it():
    pods = {"pods": {"enforceTolerations": ["dedicated=ml:NoSchedule"]}}
    values = {"vcluster": {"values": {"sync": {"toHost": pods}}}}
    assert tainted(Lab(settings=stack(values)), TAINT) == []


@pytest.mark.parametrize("version", ["v0.27.3", "v0.30.5", "v0.34.7", "v0.36.1"])
def test_the_charts_own_schema_takes_them(facts, version):
    schema = json.loads((facts / f"vcluster/values.schema-{version}.json").read_text())
    own = {"tolerations": [OWN, GPU], "labels": {"a": "b"}, "annotations": {"a": "b"}}
    jsonschema.validate(team_values(stack(own), version), schema)


def test_the_charts_of_kai_read_them(facts):
    charts = json.loads((facts / "kai/chart-values.json").read_text())
    assert all("global.tolerations" in keys for keys in charts.values())


@pytest.mark.parametrize("name", ["taint-plain", "taint-values"])
def test_the_field_says_it_in_one_line(facts, name):
    file = facts.parent / f"field/01-tainted-gpu-nodes/Pulumi.{name}.yaml"
    raw = yaml.safe_load(file.read_text())
    config = {key.removeprefix("kai-fleet:"): value for key, value in raw["config"].items()}
    by_values = plan_settings(config)
    assert not [it for it in by_values.problems if it.level.name == "MANDATORY"]
    team = config["teams"]["vc1"]
    team["scheduler"].pop("values", None)
    team["vcluster"] = {}
    team["tolerations"] = [{"key": "dedicated", "value": "vc1", "effect": "NoSchedule"}]
    by_key = plan_settings(config)
    assert by_key.problems == by_values.problems
    if name == "taint-values":
        values = [
            {it.name: it.inputs for it in plan.resources}["vc1-kai-release"]["values"]["global"]
            for plan in (by_values, by_key)
        ]
        assert values[0] == values[1]


AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "cpu", "operator": "Exists"}]}]
        }
    }
}
OTHER = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}


@pytest.mark.parametrize("version", sorted(VCLUSTER))
def test_an_affinity_is_of_the_control_plane_and_its_dns(version):
    values = team_values(stack({"affinity": AFFINITY, "tolerations": [GPU]}), version)
    control = values["controlPlane"]
    etcd = control["backingStore"]["etcd"]["deploy"]["statefulSet"]["scheduling"]
    for where in (control["statefulSet"]["scheduling"], etcd, control["coredns"]["deployment"]):
        assert where["affinity"] == AFFINITY
        assert where["tolerations"] == [SPECS[1]]
    assert unknown_keys("vcluster", version, values) == []


@pytest.mark.parametrize("version", sorted(KAI))
def test_so_it_is_of_kai(version):
    values = inside({"affinity": AFFINITY}, version)
    assert values["global"]["affinity"] == AFFINITY
    assert unknown_keys("kai", version, values) == []


def test_an_affinity_stands_in_place_of_that_of_all_teams():
    assert declared(affinity=AFFINITY)["affinity"] == AFFINITY
    assert declared({"affinity": OTHER}, affinity=AFFINITY)["affinity"] == OTHER
    wrong = {"affinity": {"nodeSelector": {"a": "b"}}}
    (mistake,) = load(stack(wrong)).mistakes
    assert mistake.path == "kai-fleet:teams.ml.affinity.nodeSelector"
    assert "nodeAffinity" in mistake.message


def test_the_hosts_kai_has_its_own():
    on_host = {"version": "v0.16.8", "tolerations": [OWN], "affinity": AFFINITY}
    raw = stack(kai=on_host) | {"teams": {}}
    plan = {it.name: it.inputs for it in plan_settings(raw).resources}
    values = plan["host-kai-release"]["values"]["global"]
    assert values["tolerations"] == [SPECS[0]]
    assert values["affinity"] == AFFINITY


@pytest.mark.parametrize(
    ("provider", "lists"),
    [
        ("device-plugin", [("tolerations",)]),
        (
            "operator",
            [
                ("daemonsets", "tolerations"),
                ("node-feature-discovery", "worker", "tolerations"),
            ],
        ),
    ],
)
def test_the_gpu_stack_is_on_every_node_that_a_team_tolerates(provider, lists):
    """Without the device plugin there, a node with a taint has no GPUs."""
    grants = {"nlp": {"nodePool": {"kai-fleet/pool": "nlp"}, "tolerations": [OWN]}}
    raw = stack({"tolerations": [OWN, {"key": "spot"}]}, teamStacks=grants)
    plain = {it.name: it.inputs for it in plan_settings(stack()).resources}
    assert plain["host-gpu-release"]["values"] == {}
    plan = {
        it.name: it.inputs for it in plan_settings(raw | {"gpu": {"provider": provider}}).resources
    }
    for path in lists:
        found = plan["host-gpu-release"]["values"]
        for key in path:
            found = found[key]
        assert found[-2:] == [SPECS[0], {"key": "spot", "operator": "Exists"}]
        gpu = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
        assert gpu in found, "what the chart has by itself"
