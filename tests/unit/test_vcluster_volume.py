"""The volume of a control plane: two keys, and what becomes of a later change."""

import copy
import json

import jsonschema
import pytest

from kai_fleet.fleet.deployed_state import (
    RELEASE,
    VIRTUAL_CLUSTER,
    DeployedState,
    deployed_state_of,
)
from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.releases import VCLUSTER, vcluster
from kai_fleet.releases.chart_values import nested, unknown_keys
from kai_fleet.settings import load
from kai_fleet.vcluster.values import vcluster_values
from kai_fleet_policies.rules.vcluster_stores import vcluster_volume
from tests.unit.doctor_samples import SETTINGS, Lab

CLAIM = "controlPlane.statefulSet.persistence.volumeClaim"
URN = f"urn:pulumi:lab::kai-fleet::{VIRTUAL_CLUSTER}${RELEASE}::ml-release"


def stack(own=None, **of_all):
    raw = copy.deepcopy(SETTINGS)
    raw["teams"]["ml"]["vcluster"] = own or {}
    return raw | ({"vcluster": of_all} if of_all else {})


def fleet(own=None, runs=None, **of_all):
    """The fleet where the release has these values about its claim now; None: there is none."""
    loaded = load(stack(own, **of_all))
    assert loaded.mistakes == ()
    state = DeployedState()
    if runs is not None:
        outputs = {"version": "0.36.1", "values": nested(CLAIM, runs)}
        state = deployed_state_of([(URN, RELEASE, outputs)])
    return fleet_of(loaded.settings, state)


def refused(own=None, runs=None, **of_all):
    return list(vcluster_volume.check(fleet(own, runs, **of_all).host))


@pytest.mark.parametrize("version", sorted(VCLUSTER))
def test_the_chart_gets_both_by_its_own_keys(version):
    team = fleet({"storageClass": "fast", "size": "20Gi"}).teams["ml"]
    values = vcluster_values(vcluster(version), team, "team-ml")
    claim = values["controlPlane"]["statefulSet"]["persistence"]["volumeClaim"]
    assert claim == {"storageClass": "fast", "size": "20Gi"}
    assert unknown_keys("vcluster", version, values) == []


def test_they_are_of_all_teams_or_of_one_and_values_go_before_them():
    assert fleet(size="20Gi").teams["ml"].store.claim == {"size": "20Gi"}
    assert fleet({"size": "8Gi"}, size="20Gi").teams["ml"].store.claim == {"size": "8Gi"}
    values = nested(CLAIM, {"size": "9Gi"})
    assert fleet({"size": "8Gi", "values": values}).teams["ml"].store.claim == {"size": "9Gi"}
    untouched = vcluster_values(vcluster("v0.36.1"), fleet().teams["ml"], "team-ml")
    assert "persistence" not in untouched["controlPlane"]["statefulSet"]


def test_at_first_everything_may_be_written():
    assert refused({"storageClass": "fast", "size": "20Gi"}) == []


@pytest.mark.parametrize(
    ("own", "runs"),
    [
        ({"size": "20Gi", "storageClass": "fast"}, {"size": "20Gi", "storageClass": "fast"}),
        ({"size": "5Gi", "storageClass": ""}, {}),
        ({"size": "5120Mi"}, {"size": "5Gi"}),
        ({}, {}),
        ({"values": nested(CLAIM, {"size": "odd"})}, {"size": "odd"}),
    ],
)
def test_what_means_the_same_is_no_change(own, runs):
    assert refused(own, runs) == []


@pytest.mark.parametrize("way", ["key", "values", "all"])
def test_a_larger_size_is_refused_with_the_way_to_grow(way):
    size = {"size": "20Gi"}
    own, of_all = {"key": size, "values": {"values": nested(CLAIM, size)}}.get(way), {}
    if way == "all":
        of_all = size
    (problem,) = refused(own, {}, **of_all)
    assert (
        problem.path
        == {
            "key": "kai-fleet:teams.ml.vcluster.size",
            "values": f"kai-fleet:teams.ml.vcluster.values.{CLAIM}.size",
            "all": "kai-fleet:vcluster.size",
        }[way]
    )
    assert "changes from 5Gi to 20Gi, and the volume is made already; write 5Gi" in problem.message
    command = problem.message.split("`")[1]
    assert command.startswith("kubectl -n team-ml patch pvc data-ml-0 -p ")
    patch = json.loads(command.split("'")[1])
    assert patch == {"spec": {"resources": {"requests": {"storage": "20Gi"}}}}
    assert refused({"size": "5Gi"}, {}, **of_all) == [], "what it says to write passes"


def test_another_class_needs_another_vcluster():
    (problem,) = refused({"storageClass": "fast"}, {})
    assert "changes from the cluster's default class to fast" in problem.message
    assert 'is made already; write ""' in problem.message
    assert "add a team of another name beside it" in problem.message
    (problem,) = refused({}, {"size": "20Gi"})
    assert "kubectl" not in problem.message, "no volume shrinks"
    assert "write 20Gi" in problem.message


def test_the_doctor_sees_a_volume_that_is_not_as_declared():
    lab = Lab(settings=stack({"size": "20Gi", "storageClass": "fast"}))
    spec = {"storageClassName": "fast", "resources": {"requests": {"storage": "5Gi"}}}
    template = {"metadata": {"name": "data"}, "spec": spec}
    lab.named("statefulsets", "ml", "host")["spec"]["volumeClaimTemplates"] = [template]
    (finding,) = lab.ill()
    assert finding.subject == "volume of vCluster ml"
    assert "its size is 5Gi, and 20Gi is declared" in finding.cause
    assert finding.fix == "write 5Gi at kai-fleet:teams.ml.vcluster.size"
    spec["resources"]["requests"]["storage"] = "20480Mi"
    assert lab.ill() == []


@pytest.mark.parametrize("version", ["v0.27.3", "v0.30.5", "v0.34.7", "v0.36.1"])
def test_the_charts_own_schema_takes_them(facts, version):
    schema = json.loads((facts / f"vcluster/values.schema-{version}.json").read_text())
    team = fleet({"storageClass": "fast", "size": "20Gi"}).teams["ml"]
    jsonschema.validate(vcluster_values(vcluster(version), team, "team-ml"), schema)
