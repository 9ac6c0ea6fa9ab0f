"""The examples' stack files: what the rules and an editor say of them."""

import pytest
import yaml

from kai_fleet_cli.plan.offline import plan
from kai_fleet_cli.stack_file.reading import ROOT
from kai_fleet_policies.finding import Level

EXAMPLES = sorted((ROOT / "examples").rglob("Pulumi.*.yaml"))
CLUSTERS = [path for path in EXAMPLES if path.parent.name == "clusters"]
SCHEMA = "# yaml-language-server: $schema=../../stack/kai_fleet_stack/settings/stack.schema.json\n"


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


def releases(path, kind):
    """The values of the Helm releases whose chart ends so, by resource."""
    found = plan(path.name.split(".")[1], path)
    return {
        resource.name: resource.inputs
        for resource in found.resources
        if resource.type.endswith(":Release") and resource.inputs["chart"].endswith(kind)
    }


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
