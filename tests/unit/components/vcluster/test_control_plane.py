"""A control plane's replicas, store and resources: keys, values, refusals, and what stays."""

import copy
import json

import pulumi
import pytest

from kai_fleet.isolation import rights
from kai_fleet.names import RELEASE, VIRTUAL_CLUSTER
from kai_fleet.ownership.deployed import of_resources
from kai_fleet.releases.chart_stores import CLAIM
from kai_fleet.releases.chart_values import nested
from kai_fleet.vcluster.chart_values import argument_values
from kai_fleet.vcluster.virtual_cluster import VirtualCluster
from kai_fleet_cli.plan.offline import plan_settings
from kai_fleet_cli.plan.recorder import record
from kai_fleet_stack.settings.loading import load
from kai_fleet_stack.validation import validate
from tests.unit.cli.doctor.doctor_samples import SETTINGS, Lab
from tests.unit.components.component_samples import KUBECONFIG, VCLUSTER, declared
from tests.unit.stack.stack_arguments import arguments, team_of, team_values

SECRET = "postgres://fleet:p4ss@db.example.com:5432/ml"
URN = f"urn:pulumi:lab::kai-fleet::{VIRTUAL_CLUSTER}${RELEASE}::ml-release"
ETCD = {"store": {"type": "etcd", "replicas": 3}, "storageClass": "fast", "size": "8Gi"}
DATABASE = {"licensed": True, "store": {"type": "external", "dataSource": SECRET}}
HA = {"replicas": 3, **ETCD}
HIGH = {"availability": "high", "storageClass": "fast", "size": "8Gi"}
WAYS = {
    "ha": HA,
    "high": HIGH,
    "database": DATABASE,
    "inside": {"licensed": True, "replicas": 3, "store": {"type": "embeddedEtcd"}, "size": "8Gi"},
    "large": {
        "resources": {
            "requests": {"cpu": 1, "memory": "2Gi", "ephemeralStorage": "2Gi"},
            "limits": {"memory": "8Gi"},
        }
    },
}


def stack(own=None, **more):
    raw = copy.deepcopy(SETTINGS)
    raw["teams"]["ml"]["vcluster"] = copy.deepcopy(own or {})
    return {**raw, "isolation": {"volumeClasses": ["fast"]}, **more}


def state(own):
    """The state of a stack that runs with these keys, as it has outputs: no integers."""
    values = argument_values("ml", arguments(stack(own)).vcluster("ml"))
    floats = json.loads(json.dumps(values), parse_int=float)
    return of_resources([(URN, RELEASE, {"version": "0.36.1", "values": floats})])


def chart(own):
    return team_values(stack(own))


def reported(own, runs=None, **more):
    """What the rules say: by key, the sentence."""
    deployed = None if runs is None else state(runs)
    problems = validate(stack(own, **more), deployed, masked={}).problems
    return {
        problem.path.removeprefix("kai-fleet:teams.ml.vcluster."): problem.message
        for problem in problems
        if problem.check.startswith("vcluster-") or problem.check == "config"
    }


def test_several_control_planes_have_their_etcds():
    created = chart(HA)["controlPlane"]
    assert created["statefulSet"]["highAvailability"] == {"replicas": 3}
    etcd = created["backingStore"]["etcd"]["deploy"]
    assert etcd["enabled"] is True
    assert etcd["statefulSet"]["highAvailability"] == {"replicas": 3}
    claim = etcd["statefulSet"]["persistence"]["volumeClaim"]
    assert claim == {"storageClass": "fast", "size": "8Gi"}
    assert "persistence" not in created["statefulSet"]
    assert reported(HA) == {}


def test_high_availability_is_three_of_each_on_nodes_of_their_own():
    created = chart(HIGH)["controlPlane"]
    etcd = created["backingStore"]["etcd"]["deploy"]
    assert etcd["enabled"] is True
    for part, app in ((created, "vcluster"), (etcd, "vcluster-etcd")):
        assert part["statefulSet"]["highAvailability"] == {"replicas": 3}
        node, zone = part["statefulSet"]["scheduling"]["topologySpreadConstraints"]
        selector = {"matchLabels": {"app": app, "release": "ml"}}
        assert node["labelSelector"] == zone["labelSelector"] == selector
        assert node["whenUnsatisfiable"] == "DoNotSchedule"
        assert zone["whenUnsatisfiable"] == "ScheduleAnyway"
    single = chart({"availability": "single"})["controlPlane"]["statefulSet"]
    assert "topologySpreadConstraints" not in single["scheduling"]


@pytest.mark.parametrize("own", [HIGH, HA, {}])
def test_a_priority_class_is_that_of_the_control_plane_and_of_its_etcds(own):
    created = chart({**own, "priorityClassName": "control-planes"})["controlPlane"]
    etcd = created["backingStore"]["etcd"]["deploy"]
    for part in (created, etcd):
        assert part["statefulSet"]["scheduling"]["priorityClassName"] == "control-planes"
    assert "priorityClassName" not in json.dumps(chart(own))


@pytest.mark.parametrize("name", ["system-cluster-critical", "train"])
def test_a_priority_class_of_others_pods_is_refused(name):
    message = reported({"priorityClassName": name})["priorityClassName"]
    assert "is a class of Kubernetes' or of KAI's own pods; make another" in message


def test_a_priority_class_in_the_charts_values_is_written_at_its_key():
    values = nested("controlPlane.statefulSet.scheduling.priorityClassName", "urgent")
    (message,) = reported({"values": values}).values()
    assert "write priorityClassName in the stack file" in message


def test_high_availability_keeps_the_store_and_the_numbers_that_are_written():
    store = {"type": "etcd", "replicas": 5}
    created = chart({**HIGH, "replicas": 2, "store": store})["controlPlane"]
    assert created["statefulSet"]["highAvailability"] == {"replicas": 2}
    etcd = created["backingStore"]["etcd"]["deploy"]["statefulSet"]
    assert etcd["highAvailability"] == {"replicas": 5}
    outside = chart({**DATABASE, "availability": "high"})["controlPlane"]
    assert outside["statefulSet"]["highAvailability"] == {"replicas": 3}
    assert not outside["backingStore"].get("etcd", {}).get("deploy", {}).get("enabled")


def test_a_drain_takes_one_pod_of_each_part_at_a_time():
    created = declared(lambda: VirtualCluster("ml", {**VCLUSTER, "availability": "high"}))
    budgets = {
        name: item.inputs["spec"] for name, item in created.items() if "DisruptionBudget" in name
    }
    assert {name: spec["maxUnavailable"] for name, spec in budgets.items()} == {
        "PodDisruptionBudget ml-control-plane": 1,
        "PodDisruptionBudget ml-etcd": 1,
    }
    selectors = [spec["selector"]["matchLabels"]["app"] for spec in budgets.values()]
    assert selectors == ["vcluster", "vcluster-etcd"]


@pytest.mark.parametrize(
    ("own", "claims"),
    [
        ({}, "data-ml-0"),
        (HIGH, "data-ml-etcd-0,data-ml-etcd-1,data-ml-etcd-2"),
        (DATABASE, None),
    ],
)
def test_the_claims_of_its_store_are_not_made_a_second_time(own, claims):
    args = arguments(stack(own)).vcluster("ml")
    created = declared(lambda: VirtualCluster("ml", {**args, "kubeconfig": KUBECONFIG}))
    held = created.get("ServiceAccount ml-volumes")
    assert (held and held.inputs["metadata"]["annotations"]["kai-fleet/claims"]) == claims


def test_the_account_of_several_control_planes_may_agree_by_a_lease():
    def kinds(own):
        rules = rights.vcluster_in_namespace("ml", arguments(stack(own)).namespace("ml"))
        return {kind for rule in rules for kind in rule["resources"]}

    assert "leases" in kinds(HA)
    assert "leases" in kinds(HIGH)
    assert "leases" not in kinds({})


@pytest.mark.parametrize(
    ("own", "key", "says"),
    [
        ({"replicas": 2}, "replicas", "write store: {type: etcd, replicas: 3}, or 1"),
        ({"store": {"type": "etcd", "replicas": 2}}, "store.replicas", "write one of 1, 3"),
        ({"store": {"dataSource": SECRET}}, "store.dataSource", "write type: external"),
        (
            {"store": {"type": "external"}, "licensed": True},
            "store.dataSource",
            "is missing: the database; encrypt it, the command asks for the value: pulumi stack"
            " select --create STACK && pulumi config set --secret --path"
            " 'kai-fleet:teams.ml.vcluster.store.dataSource' --stack STACK",
        ),
        ({**DATABASE, "licensed": False}, "store.type", "the open source image has in no version"),
        ({"store": {"type": "embeddedEtcd"}}, "store.type", "write etcd, or licensed: true"),
        (
            {"values": nested("controlPlane.statefulSet.highAvailability.replicas", 2)},
            "replicas",
            "its store is SQLite",
        ),
    ],
)
def test_what_cannot_run_is_refused(own, key, says):
    found = reported(own)
    assert key in found
    assert says in found[key]


@pytest.mark.parametrize("way", WAYS)
def test_what_can_run_passes_and_stays(way):
    assert reported(WAYS[way]) == {}
    assert reported(WAYS[way], WAYS[way]) == {}


@pytest.mark.parametrize(
    ("runs", "own", "key", "says"),
    [
        ({}, ETCD, "store.type", "changes from embedded to etcd, and the state stays in the one"),
        (ETCD, {}, "store.type", "write etcd; for embedded, take a backup"),
        (
            {"store": {"type": "etcd"}},
            {"store": {"type": "etcd", "replicas": 3}},
            "store.replicas",
            "others would begin a second, empty store",
        ),
        (
            {"store": {"type": "etcd"}},
            {"availability": "high"},
            "store.replicas",
            "write 1; for 3, take a backup (fleet team backup ml --to FILE), write 3",
        ),
        ({}, {"replicas": 3}, "replicas", "write 1; for etcd, take a backup"),
    ],
)
def test_the_store_that_runs_stays(runs, own, key, says):
    found = reported(own, runs)
    assert key in found
    assert says in found[key]


def test_a_move_that_vcluster_makes_itself_passes():
    key = "controlPlane.backingStore.etcd.embedded.migrateFromDeployedEtcd"
    assert reported({**WAYS["inside"], "values": nested(key, True)}, ETCD) == {}
    assert "store.type" in reported({"values": nested(key, True)}, ETCD), "no other move"


def test_a_volume_is_of_all_teams_or_of_one_and_values_go_before_it():
    def claim(own=None, **of_all):
        return team_of(stack(own, vcluster=of_all)).store.claim

    assert claim(size="20Gi") == {"size": "20Gi"}
    assert claim({"size": "8Gi"}, size="20Gi") == {"size": "8Gi"}
    values = nested(CLAIM, {"size": "9Gi"})
    assert claim({"size": "8Gi", "values": values}) == {"size": "9Gi"}
    assert "persistence" not in chart({})["controlPlane"]["statefulSet"]


@pytest.mark.parametrize(
    ("own", "runs"),
    [
        ({"storageClass": "fast", "size": "20Gi"}, None),  # at first everything may be written
        ({"size": "5Gi", "storageClass": ""}, {}),
        ({"size": "5120Mi"}, {"size": "5Gi"}),
    ],
)
def test_what_means_the_same_volume_is_no_change(own, runs):
    assert reported(own, runs) == {}


@pytest.mark.parametrize(
    ("own", "runs"), [({"size": "20Gi"}, {}), ({**ETCD, "size": "20Gi"}, ETCD)]
)
def test_a_volume_may_be_larger(own, runs):
    assert reported(own, runs) == {}


def command(size, **args):
    """The command in front of a vCluster's release; `size` makes the argument."""
    single = {key: value for key, value in VCLUSTER.items() if key not in ("size", "store")}
    single |= {"availability": "single", "replicas": 1, **args}
    created = declared(lambda: VirtualCluster("ml", {**single, **size()}))
    return created["Command ml-pods"].inputs


@pytest.mark.parametrize(
    ("store", "claims"),
    [
        ({}, "data-ml-0"),
        ({"type": "etcd", "replicas": 3}, "data-ml-etcd-0,data-ml-etcd-1,data-ml-etcd-2"),
    ],
)
def test_a_size_that_is_written_is_that_of_each_claim_before_the_release(store, claims):
    for as_input in (str, pulumi.Output.from_input):
        inputs = command(lambda made=as_input: {"size": made("8Gi")}, store=store)
        assert inputs["create"].endswith("fleet-probe vcluster grow")
        assert inputs["environment"]["PODS_SIZE"] == "8Gi"
        assert inputs["environment"]["PODS_CLAIMS"] == claims
    without = command(dict, store=store)
    assert "create" not in without and "PODS_SIZE" not in without["environment"]


def test_another_class_needs_another_vcluster_and_no_volume_shrinks():
    message = reported({"storageClass": "fast"}, {})["storageClass"]
    assert "changes from the cluster's default class to fast" in message
    assert 'is made already; write ""' in message
    assert "add a team of another name beside it" in message
    shrunk = reported({}, {"size": "20Gi"})["size"]
    assert "kubectl" not in shrunk and "write 20Gi" in shrunk


def test_a_data_source_is_shown_nowhere():
    raw = stack(DATABASE)
    plan = plan_settings(raw)
    assert not plan.ok, "in clear it is refused"
    assert "p4ss" not in plan.json()
    assert "pulumi config set --secret" in plan.json()
    raw["teams"]["ml"]["vcluster"]["store"]["dataSource"] = "[secret]"
    plan = plan_settings(raw)
    assert plan.ok, plan.problems
    assert "p4ss" not in repr(load(stack(DATABASE)))
    assert "p4ss" not in repr(team_of(stack(DATABASE)))


def test_a_data_source_is_encrypted_in_the_state():
    def program():
        args = arguments(stack(DATABASE)).vcluster("ml")
        VirtualCluster("ml", {**args, "context": "lab"})

    created = record("lab", {}, program=program)
    release = next(item for item in created if item.name == "ml-release")
    database = release.inputs["values"]["controlPlane"]["backingStore"]["database"]["external"]
    assert database == {"enabled": True, "dataSource": "[secret]"}
    assert "p4ss" not in json.dumps([vars(item) for item in created])


def test_each_team_has_a_database_to_itself():
    raw = stack(DATABASE, vcluster={"store": {"type": "external", "dataSource": SECRET}})
    found = {mistake.path: mistake.message for mistake in load(raw).mistakes}
    assert "is one database for all teams" in found["kai-fleet:vcluster.store.dataSource"]
    raw = stack(DATABASE)
    raw["teams"]["nlp"] = {**raw["teams"]["ml"], "nodePool": {"kai-fleet/pool": "nlp"}}
    (found,) = load(raw).mistakes
    assert found.path == "kai-fleet:teams.nlp.vcluster.store.dataSource"
    assert "is the database of team ml" in found.message
    assert "p4ss" not in str(found)


def test_the_doctor_finds_a_control_plane_without_a_volume():
    lab = Lab(settings=stack(HA))
    (item,) = lab.host["statefulsets"]
    lab.host["statefulsets"] = []
    (found,) = [entry for entry in lab.ill() if entry.check == "vcluster"]
    assert "its deployment is not there" in found.cause
    item["spec"]["replicas"] = item["status"]["readyReplicas"] = 3
    lab.host |= {"deployments": [item], "storageclasses": [{"metadata": {"name": "fast"}}]}
    assert lab.ill() == []
    item["spec"]["replicas"] = 0
    (found,) = lab.ill()
    assert "scale deployment ml --replicas=1" in found.fix
