"""What an update asks the CLI for when it has ended."""

import json
from types import SimpleNamespace

from kai_fleet_cli.engine.runs import Workspace

MASKED = {"teams": {"ml": {"gpus": 8}}, "kubeconfigs": "[secret]"}


def test_outputs_are_asked_for_once_and_secrets_stay_masked(tmp_path):
    asked = []

    def run(command, folder, variables):
        asked.append(command)
        return SimpleNamespace(stdout=json.dumps(MASKED))

    pulumi = SimpleNamespace(run=run)
    found = Workspace(work_dir=str(tmp_path), pulumi_command=pulumi).stack_outputs("lab")
    assert asked == [["stack", "output", "--json", "--stack", "lab"]]
    assert {name: it.secret for name, it in found.items()} == {"teams": False, "kubeconfigs": True}
    assert found["teams"].value == MASKED["teams"]
