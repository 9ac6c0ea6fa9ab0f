"""What a message has a user run to update or preview a stack: it has to be there."""

import ast
from pathlib import Path

import pytest

import kai_fleet
import kai_fleet_cli
from kai_fleet.settings.files import project

FOLDERS = [Path(it.__file__).parent for it in (kai_fleet, kai_fleet_cli)]


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


def test_no_message_writes_them_by_itself():
    written = [
        f"{file.name}:{text.lineno}"
        for folder in FOLDERS
        for file in folder.rglob("*.py")
        if file != Path(project.__file__)
        for text in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(text, ast.Constant)
        and isinstance(text.value, str)
        and ("make up STACK" in text.value or "make preview STACK" in text.value)
    ]
    assert not written
