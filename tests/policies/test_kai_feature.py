"""What not every KAI has, refused for those that lack it."""

import pytest

from kai_fleet import releases
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.adapters import from_resources
from kai_fleet_policies.model.cluster import Kai
from kai_fleet_policies.validation import validate
from tests.policies.samples import cluster, found, open_question, refusal, resource

RULE = "kai-feature-known"
FIRST = {"shards": "v0.10.5", "fairshare": "v0.10.5", "topologies": "v0.12.23"}


def using(version, kind):
    used = {"shards": ("a",), "fairshare": True, "topologies": {"racks": ("rack",)}}
    return cluster(kai=(Kai(version, path="kai-fleet:kai", **{kind: used[kind]}),))


@pytest.mark.parametrize("kind", FIRST)
@pytest.mark.parametrize("version", list(releases.KAI))
def test_each_version_has_it_from_its_line_on(kind, version):
    used = using(version, kind)
    has = releases.version_key(version) >= releases.version_key(FIRST[kind])
    assert [p.path for p in found(RULE, used)] == ([] if has else [f"kai-fleet:kai.{kind}"])


def test_the_message_names_the_line_it_comes_with_and_a_version_to_write():
    problem = refusal(RULE, using("v0.9.3", "topologies"))
    assert problem.subject == "topologies of host"
    assert "needs KAI v0.12 or newer, and the version is v0.9.3" in problem.message
    assert "write version: v0.16.9" in problem.message


def test_a_version_that_is_not_known_yet_is_told():
    question = open_question(RULE, using(UNKNOWN, "shards"))
    assert "the KAI version is known" in question.message


def stack(**scheduler):
    team = {"scheduler": {"mode": "virtual", "version": "v0.9.3", **scheduler}, "gpus": 1}
    team["nodePool"] = {"pool": "ml"}
    return {"cluster": {"name": "lab", "context": "lab"}, "teams": {"ml": team}}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("fairshare", {}),
        ("shards", {"default": {"placement": {"gpu": "spread"}}}),
        ("topologies", {"racks": ["kubernetes.io/hostname"]}),
    ],
)
def test_a_stack_file_is_refused_at_the_key(key, value):
    (problem,) = validate(stack(**{key: value})).refused
    assert (problem.check, problem.path) == (RULE, f"kai-fleet:teams.ml.scheduler.{key}")


def test_objects_of_any_program_are_features_too():
    release = resource(
        "kubernetes:helm.sh/v3:Release",
        "kai",
        {
            "chart": "oci://ghcr.io/nvidia/kai-scheduler/kai-scheduler",
            "version": "v0.9.3",
            "namespace": "kai-scheduler",
        },
    )
    topology = resource(
        "kubernetes:kai.scheduler/v1alpha1:Topology",
        "racks",
        {"metadata": {"name": "racks"}, "spec": {"levels": []}},
    )
    problem = refusal(RULE, *from_resources.clusters([release, topology]))
    assert problem.path == release.urn
