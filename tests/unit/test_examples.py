"""The examples' stack files: what the rules and an editor say of them."""

import json

import pytest
import yaml

from kai_fleet.finding import Level
from kai_fleet_cli.plan.offline import plan
from kai_fleet_cli.stack_file.reading import ROOT
from tests.chart_keys import unknown_keys

EXAMPLES = sorted((ROOT / "examples").rglob("Pulumi.*.yaml"))
CLUSTERS = [path for path in EXAMPLES if path.parent.name == "clusters"]
SCHEMA = "# yaml-language-server: $schema=../../components/kai_fleet/settings/stack.schema.json\n"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_no_rule_refuses_an_example(path):
    found = plan(path.name.split(".")[1], path)
    assert [str(p) for p in found.problems if p.level is Level.MANDATORY] == []
    assert [p for p in found.problems if p.check.startswith("workload-")] == []
    assert found.resources


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_editor_checks_and_accepts_it(path, editor):
    text = path.read_text()
    assert text.startswith(SCHEMA)
    editor(yaml.safe_load(text))


def test_every_guide_with_workloads_has_its_example():
    names = {path.name for path in EXAMPLES}
    assert {f"Pulumi.guide-00{number}.yaml" for number in (1, 2, 3, 4)} <= names


def releases(path, kind):
    """The values of the Helm releases whose chart ends so, by resource."""
    found = plan(path.name.split(".")[1], path)
    return {
        it.name: it.inputs
        for it in found.resources
        if it.type.endswith(":Release") and it.inputs["chart"].endswith(kind)
    }


def test_the_clusters_that_people_have_are_there():
    assert [path.name for path in CLUSTERS] == [
        "Pulumi.eks.yaml",
        "Pulumi.gke.yaml",
        "Pulumi.k3s.yaml",
    ]


@pytest.mark.parametrize("path", CLUSTERS, ids=lambda path: path.name)
def test_a_clusters_example_has_no_warning_and_every_command_can_edit_it(path):
    assert plan(path.name.split(".")[1], path).problems == ()
    assert "*" not in path.read_text(), "teams with YAML anchors are not edited by command"


@pytest.mark.parametrize("path", CLUSTERS, ids=lambda path: path.name)
def test_the_schema_of_vclusters_chart_takes_it(path, vcluster_schema):
    declared = releases(path, "vcluster")
    assert declared
    for inputs in declared.values():
        vcluster_schema(f"v{inputs['version']}").validate(inputs["values"])


@pytest.mark.parametrize("path", CLUSTERS, ids=lambda path: path.name)
def test_the_chart_of_kai_reads_every_value(path, facts):
    charts = json.loads((facts / "kai" / "chart-values.json").read_text())
    made = releases(path, "kai-scheduler")
    assert made
    for inputs in made.values():
        known = charts[inputs["version"]]
        # What the templates read and the defaults leave out: tests/unit/test_releases.py.
        known = {*known, "binder.runtimeClassName", "global.resourceReservation.runtimeClassName"}
        strange = [key for key in leaves(inputs["values"]) if not covered(key, known)]
        assert strange == []
        assert unknown_keys("kai", inputs["version"], inputs["values"]) == []


def leaves(values, before=""):
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{before}{key}.")
        else:
            yield f"{before}{key}"


def covered(key, known):
    """Whether a chart has the key, or a key above it whose default is empty, such as labels."""
    parts = key.split(".")
    return any(".".join(parts[:end]) in known for end in range(1, len(parts) + 1))
