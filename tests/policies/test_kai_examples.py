"""KAI's own documentation and examples, line by line, with the verdict that each deserves."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import yaml

from kai_fleet_policies.adapters.from_resources import clusters
from kai_fleet_policies.rules import check
from kubectl_fleet.releases import KAI
from kubectl_fleet.rules.problem import Level
from tests.policies.kai_examples import OWN_TREE, TREES, examples
from tests.policies.samples import manifest, refused_by, resource
from tests.unit import markdown_pages

SHOWN = [
    pytest.param(version, example, id=f"{version} {example.name}")
    for version in KAI
    for example in examples("test")
    if example.shown_in(version)
]


def verdict(version, *documents, guarded=True):
    values = {"values": {"global": {"gpuSharing": True}}, "namespace": "kai-scheduler"}
    chart = {"chart": "oci://ghcr.io/nvidia/kai-scheduler/kai-scheduler", "version": version}
    kai = resource("kubernetes:helm.sh/v3:Release", "kai-scheduler", {**chart, **values})
    found = clusters([kai, *map(manifest, documents)])
    return check([replace(cluster, guarded=guarded) for cluster in found])


@pytest.mark.parametrize(("version", "example"), SHOWN)
def test_an_example_is_judged_as_it_runs(version, example):
    found = verdict(version, *TREES["free"], *example.documents)
    assert refused_by(found) == example.refused, [str(it) for it in found]
    if example.refused:
        assert "write kai.scheduler/queue: test in the labels of the pod template too" in str(found)
        free = verdict(version, *TREES["free"], *example.documents, guarded=False)
        assert refused_by(free) == set(), "KAI itself reads the owner's label"


DOCS = [
    pytest.param(yaml.safe_load(block.text), id=str(block))
    for block in markdown_pages.blocks("yaml")
    if block.page == "docs/ml-engineers.md"
]


@pytest.mark.parametrize("version", ["v0.7.11", "v0.9.3", "v0.16.8", "v0.17.0"])
@pytest.mark.parametrize("document", DOCS)
def test_what_our_own_page_has_people_apply_passes(document, version):
    assert refused_by(verdict(version, *OWN_TREE, document)) == set()
    strayed = json.loads(json.dumps(document).replace('/queue"', '/queues"'))
    assert refused_by(verdict(version, *OWN_TREE, strayed)) != set()


def test_our_own_page_shows_a_pod_and_a_deployment():
    assert {param.values[0]["kind"] for param in DOCS} == {"Pod", "Deployment"}


@pytest.mark.parametrize("tree", TREES)
def test_their_queues_pass(tree):
    found = verdict("v0.16.8", *TREES[tree])
    assert [it for it in found if it.level is Level.MANDATORY] == []


@pytest.mark.parametrize(("version", "passes"), [("v0.14.7", False), ("v0.15.3", True)])
def test_a_queue_on_an_external_pod_group_counts_from_the_line_that_leaves_it_alone(
    version, passes
):
    (example,) = (it for it in examples("test") if it.name.startswith("job in an external"))
    found = verdict(version, *TREES["free"], *example.documents)
    assert (refused_by(found) == set()) is passes
