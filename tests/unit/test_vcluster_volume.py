"""The volume of a control plane: two keys, and what becomes of a later change."""

import json

import pytest

from kai_fleet.deployed import of_resources
from kai_fleet.names import RELEASE, VIRTUAL_CLUSTER
from kai_fleet.releases import VCLUSTER
from kai_fleet.releases.chart_values import nested
from kai_fleet_policies.model.declared import clusters_of
from kai_fleet_policies.rules.vclusters import vcluster_volume
from tests.chart_keys import unknown_keys
from tests.unit.stack_arguments import settings_of, team_of, team_values, vcluster_stack

CLAIM = "controlPlane.statefulSet.persistence.volumeClaim"
URN = f"urn:pulumi:lab::kai-fleet::{VIRTUAL_CLUSTER}${RELEASE}::ml-release"


def refused(own=None, runs=None, **of_all):
    """What the rule says where the release has these values of its claim; None: there is none."""
    state = None
    if runs is not None:
        outputs = {"version": "0.36.1", "values": nested(CLAIM, runs)}
        state = of_resources([(URN, RELEASE, outputs)])
    host, *_ = clusters_of(settings_of(vcluster_stack(own, **of_all)), state)
    return list(vcluster_volume.check(host))


def claim(own=None, **of_all):
    return team_of(vcluster_stack(own, **of_all)).store.claim


@pytest.mark.parametrize("version", sorted(VCLUSTER))
def test_the_chart_gets_both_by_its_own_keys(version):
    values = team_values(vcluster_stack({"storageClass": "fast", "size": "20Gi"}), version)
    claim = values["controlPlane"]["statefulSet"]["persistence"]["volumeClaim"]
    assert claim == {"storageClass": "fast", "size": "20Gi"}
    assert unknown_keys("vcluster", version, values) == []


def test_they_are_of_all_teams_or_of_one_and_values_go_before_them():
    assert claim(size="20Gi") == {"size": "20Gi"}
    assert claim({"size": "8Gi"}, size="20Gi") == {"size": "8Gi"}
    values = nested(CLAIM, {"size": "9Gi"})
    assert claim({"size": "8Gi", "values": values}) == {"size": "9Gi"}
    untouched = team_values(vcluster_stack())
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
