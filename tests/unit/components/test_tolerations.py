"""Teams whose nodes have taints: one key says what all of their pods tolerate."""

import pytest

from kai_fleet.kai.chart_values import kai_values
from kai_fleet.releases import KAI, kai
from kai_fleet.vcluster.chart_values import vcluster_values
from kai_fleet_stack.arguments import team as team_arguments
from kai_fleet_stack.settings.loading import load
from tests.unit.stack.stack_arguments import arguments, stack, team_stack

OWN = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
GPU = {"key": "nvidia.com/gpu"}
EMPTY = {"key": "pool", "operator": "Equal"}
SPECS = [
    {"key": "dedicated", "operator": "Equal", "value": "ml", "effect": "NoSchedule"},
    {"key": "nvidia.com/gpu", "operator": "Exists"},
    {"key": "pool", "operator": "Equal", "value": ""},
]
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "cpu", "operator": "Exists"}]}]
        }
    }
}
OTHER = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
PLACED = {"tolerations": [OWN, GPU, EMPTY], "affinity": AFFINITY, "control_pool": {"pool": "ml"}}


def of_release(**args):
    return vcluster_values("ml", args, "team-ml")


def test_the_control_plane_its_dns_and_every_synced_pod_tolerate_them():
    values = of_release(**PLACED)
    control = values["controlPlane"]
    etcd = control["backingStore"]["etcd"]["deploy"]["statefulSet"]["scheduling"]
    for place in (control["statefulSet"]["scheduling"], etcd, control["coredns"]["deployment"]):
        assert (place["tolerations"], place["affinity"]) == (SPECS, AFFINITY)
    assert control["statefulSet"]["scheduling"]["nodeSelector"] == {"pool": "ml"}
    # Without a colon vCluster reads an empty value, where Exists is meant.
    enforced = values["sync"]["toHost"]["pods"]["enforceTolerations"]
    assert enforced == ["dedicated=ml:NoSchedule", "nvidia.com/gpu:", "pool=:"]


@pytest.mark.parametrize("version", sorted(KAI))
def test_so_does_kai_with_its_operands(version):
    values = kai_values(kai(version), PLACED)["global"]
    assert (values["tolerations"], values["affinity"]) == (SPECS, AFFINITY)
    assert not {"tolerations", "affinity"} & kai_values(kai(version), {})["global"].keys()


@pytest.mark.parametrize(
    ("team", "keys"),
    [({}, ["nvidia.com/gpu"]), ({"tolerations": [OWN]}, ["dedicated"]), ({"tolerations": []}, [])],
)
def test_a_teams_own_stand_in_place_of_the_stacks(team, keys):
    found = arguments(stack(team, tolerations=[GPU]))
    for args in (found.namespace("ml"), found.vcluster("ml"), found.kai("ml")):
        assert [item["key"] for item in args.get("tolerations", ())] == keys


def test_an_affinity_stands_in_place_of_that_of_all_teams():
    assert arguments(stack(affinity=AFFINITY)).vcluster("ml")["affinity"] == AFFINITY
    own = arguments(stack({"affinity": OTHER}, affinity=AFFINITY))
    assert own.kai("ml")["affinity"] == OTHER
    (mistake,) = load(stack({"affinity": {"nodeSelector": {"a": "b"}}})).mistakes
    assert mistake.path == "kai-fleet:teams.ml.affinity.nodeSelector"
    assert "nodeAffinity" in mistake.message


def test_a_team_stack_has_those_of_its_grant_and_writes_none():
    tenant = team_stack(stack(), grant={"tolerations": [OWN]})
    assert tenant.mistakes == ()
    assert team_arguments.vcluster(tenant.settings, "nlp")["tolerations"] == [OWN]
    (mistake,) = team_stack(stack(), tolerations=[GPU]).mistakes
    assert mistake.path == "kai-fleet:team.tolerations" and mistake.cause == "is an unknown key"


@pytest.mark.parametrize(
    ("wrong", "path", "says"),
    [
        ({"operator": "Exists"}, "0.key", "is missing; write key: nvidia.com/gpu"),
        ({"key": "a", "effect": "NoRun"}, "0.effect", "write one of 'NoSchedule'"),
        ("dedicated=ml:NoSchedule", "0", "write {key: nvidia.com/gpu, effect: NoSchedule}"),
    ],
)
def test_what_is_no_toleration_is_refused_with_what_to_write(wrong, path, says):
    (mistake,) = load(stack({"tolerations": [wrong]})).mistakes
    assert mistake.path == f"kai-fleet:teams.ml.tolerations.{path}"
    assert says in mistake.message


def test_the_gpu_stack_is_on_every_node_that_a_team_tolerates():
    """Without the device plugin there, a node with a taint has no GPUs."""
    grants = {"nlp": {"nodePool": {"kai-fleet/pool": "nlp"}, "tolerations": [OWN]}}
    raw = stack({"tolerations": [OWN, {"key": "spot"}]}, teamStacks=grants)
    args = arguments(raw).gpu_stack()
    assert args["tolerations"] == [OWN, {"key": "spot"}]
