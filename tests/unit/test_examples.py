"""The examples' stack files: what the rules and an editor say of them."""

import pytest
import yaml

from kai_fleet_cli.plan.offline import plan
from kai_fleet_cli.stack_file.reading import ROOT
from kubectl_fleet.rules.problem import Level

EXAMPLES = sorted((ROOT / "examples").rglob("Pulumi.*.yaml"))
SCHEMA = "# yaml-language-server: $schema=../../components/kai_fleet/settings/stack.schema.json\n"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_no_rule_refuses_an_example(path):
    found = plan(path.name.split(".")[1], path)
    assert [str(p) for p in found.problems if p.level is Level.MANDATORY] == []
    assert [p for p in found.problems if p.rule.startswith("workload-")] == []
    assert found.resources


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_editor_checks_and_accepts_it(path, editor):
    text = path.read_text()
    assert text.startswith(SCHEMA)
    editor(yaml.safe_load(text))


def test_every_guide_with_workloads_has_its_example():
    names = {path.name for path in EXAMPLES}
    assert {f"Pulumi.guide-00{number}.yaml" for number in (1, 2, 3, 4)} <= names
