"""KAI's own documentation and examples, line by line, with the verdict that each deserves."""

import json

import pytest
import yaml

from kai_fleet.isolation.queue_guard import queue_bounds
from kai_fleet.releases import KAI
from kai_fleet_policies.adapters.from_resources import clusters
from kai_fleet_policies.model.pods import workloads
from kai_fleet_policies.rules import check
from kai_usage.keys import QUEUE_LABEL
from tests.policy_evaluation import account, creation, refusals
from tests.unit.policies.kai_examples import EXAMPLES, OWN_TREE, TREES
from tests.unit.policies.samples import manifest, refused_by, resource
from tests.unit.repository import markdown_pages

SHOWN = [
    pytest.param(version, example, id=f"{version} {example.name}")
    for version in KAI
    for example in EXAMPLES
    if example.shown_in(version)
]


def verdict(version, *documents):
    values = {"values": {"global": {"gpuSharing": True}}, "namespace": "kai-scheduler"}
    chart = {"chart": "oci://ghcr.io/nvidia/kai-scheduler/kai-scheduler", "version": version}
    kai = resource("kubernetes:helm.sh/v3:Release", "kai-scheduler", {**chart, **values})
    return check(clusters([kai, *map(manifest, documents)]))


@pytest.mark.parametrize(("version", "example"), SHOWN)
def test_check_examples_of_kai_pass(version, example):
    assert refused_by(verdict(version, *TREES["free"], *example.documents)) == set()


DOCS = [
    pytest.param(yaml.safe_load(block.text), id=str(block))
    for block in markdown_pages.blocks("yaml")
    if block.page == "docs/ml-engineers.md"
]
IN_QUEUES = [param for param in DOCS if "kai.scheduler/queue" in str(param.values[0])]


@pytest.mark.parametrize("version", ["v0.7.11", "v0.17.0"])
@pytest.mark.parametrize("document", IN_QUEUES)
def test_check_examples_of_our_page_pass(document, version):
    problems = verdict(version, *OWN_TREE, document)
    assert {problem.check for problem in problems} <= {"kai-version-supported"}
    strayed = json.loads(json.dumps(document).replace('/queue"', '/queues"'))
    assert refused_by(verdict(version, *OWN_TREE, strayed)) != set()


def pods_of(document):
    """As its controller makes them: KubeRay writes queue and scheduler, other kinds' none does."""
    kind, props = document["kind"], {key: document[key] for key in ("metadata", "spec")}
    for template in workloads(kind, props, document["metadata"]["name"], ""):
        labels = dict(template.labels)
        if kind.startswith("Ray"):
            labels = {QUEUE_LABEL: template.queue, **labels}
        containers = [
            {"name": each.name, "resources": {"limits": dict.fromkeys(each.gpus, "1")}}
            for each in template.containers
        ]
        spec = {"schedulerName": template.scheduler, "containers": containers}
        metadata = {"name": "p", "labels": labels, "annotations": dict(template.annotations)}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("document", IN_QUEUES)
def test_guards_let_the_pods_of_our_page_in(document):
    asked = creation("pods", "default", account("default", "default"), "p")
    pods = list(pods_of(document))
    for guard in ("queues", "outside-queues"):
        for bounds, passes in ((["train", "serve"], True), (["another"], guard != "queues")):
            of_team = queue_bounds("ml", bounds, "deny", {})
            for pod in pods:
                assert (list(refusals(guard, pod, asked, of_team)) == []) is passes


@pytest.mark.parametrize("tree", TREES)
def test_check_queues_of_kais_examples_pass(tree):
    assert refused_by(verdict("v0.16.8", *TREES[tree])) == set()
