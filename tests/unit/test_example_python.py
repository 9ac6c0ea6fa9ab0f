"""What the program with nothing of ours but components declares."""

import runpy

import pulumi

from kai_fleet_cli.stack_file.reading import ROOT
from tests.unit.component_samples import declared

PROGRAM = ROOT / "examples" / "python" / "__main__.py"


def test_each_team_has_its_own_kubernetes_and_its_own_kai():
    def program():
        pulumi.runtime.set_all_config({"kai-fleet:context": "lab", "kai-fleet:node": "10.0.0.5"})
        runpy.run_path(str(PROGRAM), run_name="__main__")

    found = declared(program)
    versions = {
        team: found[f"Release {team}-kai-release"].inputs["version"] for team in ("ml", "research")
    }
    assert versions == {"ml": "v0.16.8", "research": "v0.7.11"}
    for team in versions:
        inside = found[f"Release {team}-kai-release"].provider
        assert inside.endswith(f"kubernetes::{team}-kai")
        assert found[f"Release {team}-release"].provider.endswith("kubernetes::host")
        assert found[f"Queues {team}"].inputs["queues"]["train"]["parentQueue"] == "default"
