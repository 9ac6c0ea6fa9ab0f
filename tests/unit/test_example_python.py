"""The program with nothing of ours but components: what it imports, and what it declares."""

import ast
import runpy

import pulumi
import pytest

from kai_fleet_cli.stack_file.reading import ROOT
from tests.unit.component_samples import declared

PROGRAM = ROOT / "examples" / "python" / "__main__.py"


@pytest.fixture(scope="module")
def found():
    def program():
        pulumi.runtime.set_all_config({"kai-fleet:context": "lab", "kai-fleet:node": "10.0.0.5"})
        runpy.run_path(str(PROGRAM), run_name="__main__")

    return declared(program)


def test_it_needs_no_more_than_components_and_pulumi():
    tree = ast.parse(PROGRAM.read_text())
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {
        name.name if isinstance(node, ast.Import) else node.module
        for node in imports
        for name in node.names
    }
    assert modules == {"pulumi", "pulumi_kubernetes", "kai_fleet"}
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    assert len(statements) <= 24


def test_each_team_has_its_own_kubernetes_and_its_own_kai(found):
    versions = {
        team: found[f"Release {team}-kai-release"].inputs["version"] for team in ("ml", "research")
    }
    assert versions == {"ml": "v0.16.8", "research": "v0.7.11"}
    for team in versions:
        inside = found[f"Release {team}-kai-release"].provider
        assert inside.endswith(f"kubernetes::{team}-kai")
        assert found[f"Release {team}-release"].provider.endswith("kubernetes::host")
        assert found[f"Queues {team}"].inputs["queues"]["train"]["parentQueue"] == "default"
