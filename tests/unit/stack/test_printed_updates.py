"""What a message has a user run to update or preview a stack: it has to be there."""

from pathlib import Path

import pytest

import kai_fleet
import kai_fleet_cli
import kai_fleet_stack
from kai_fleet_stack import project

FOLDERS = [Path(item.__file__).parent for item in (kai_fleet, kai_fleet_stack, kai_fleet_cli)]


@pytest.mark.parametrize(
    ("checkout", "update", "preview"),
    [
        (project.CHECKOUT, "make up STACK=prod", "make preview STACK=prod DETAILS=1"),
        (
            None,
            ".venv/bin/fleet up --stack prod",
            ".venv/bin/fleet preview --stack prod --details",
        ),
    ],
    ids=["checkout", "wheels"],
)
def test_make_is_named_only_where_there_is_a_makefile(monkeypatch, checkout, update, preview):
    monkeypatch.setattr(project, "CHECKOUT", checkout)
    assert project.update_command("prod") == update
    assert project.preview_command("prod", details=True) == preview
