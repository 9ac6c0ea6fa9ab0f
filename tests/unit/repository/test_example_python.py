"""Programs with nothing of ours but components: what they declare, and what checkers say."""

import runpy
import subprocess
import sys
from pathlib import Path

import pulumi
import pytest

from kai_fleet_cli.plan.offline import as_declared
from kai_fleet_cli.plan.recorder import record
from kai_fleet_cli.stack_file.reading import ROOT
from kai_fleet_policies import rules
from kai_fleet_policies.adapters import from_resources
from kai_fleet_policies.finding import Level
from tests.unit.components.component_samples import declared
from tests.unit.repository import markdown_pages

PROGRAM = ROOT / "examples" / "python" / "__main__.py"


@pytest.fixture
def readme_program(tmp_path):
    """The program of README with its own components, as a file."""
    shown = [block for block in markdown_pages.blocks("python") if block.page == "README.md"]
    (program,) = [block.text for block in shown if "from kai_fleet import" in block.text]
    path = tmp_path / "readme_program.py"
    path.write_text(program)
    return path


def of(path):
    def program():
        pulumi.runtime.set_all_config({"kai-fleet:context": "lab", "kai-fleet:node": "10.0.0.5"})
        runpy.run_path(str(path), run_name="__main__")

    return program


def test_each_team_has_its_own_kubernetes_and_its_own_kai():
    found = declared(of(PROGRAM))
    versions = {
        team: found[f"Release {team}-kai-release"].inputs["version"] for team in ("ml", "research")
    }
    assert versions == {"ml": "v0.16.8", "research": "v0.7.11"}
    for team in versions:
        inside = found[f"Release {team}-kai-release"].provider
        assert inside.endswith(f"kubernetes::{team}")
        assert found[f"Release {team}-release"].provider.endswith("kubernetes::host")
        assert found[f"Queues {team}"].inputs["queues"]["train"]["parentQueue"] == "default"


def refused(resources):
    """What the policy pack refuses."""
    found = rules.check(from_resources.clusters(as_declared(resources)))
    return [str(finding) for finding in found if finding.level is Level.MANDATORY]


def test_readmes_program_declares_teams_that_the_policy_pack_takes(readme_program):
    resources = record("lab", {}, program=of(readme_program))
    found = {item.name for item in resources if item.type.endswith(":Team")}
    assert found == {"ml", "research"}
    assert refused(resources) == []


def test_the_policy_pack_takes_the_example():
    assert refused(record("lab", {}, program=of(PROGRAM))) == []


def test_teams_without_nodes_of_their_own_are_refused(readme_program):
    text = readme_program.read_text()
    readme_program.write_text(text.replace('{"kai-fleet/pool": name}', '{"kai-fleet/pool": "all"}'))
    (why,) = refused(record("lab", {}, program=of(readme_program)))
    assert "may share nodes with team ml" in why


@pytest.mark.long
@pytest.mark.parametrize(
    "checker", [["mypy", "--strict", "--config-file="], ["pyright"]], ids=lambda words: words[0]
)
def test_readmes_program_has_no_error_of_types(readme_program, checker):
    name, *flags = checker
    flags = flags or ["--pythonpath", sys.executable]
    command = [str(Path(sys.executable).with_name(name)), *flags, readme_program.name]
    done = subprocess.run(command, cwd=readme_program.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
