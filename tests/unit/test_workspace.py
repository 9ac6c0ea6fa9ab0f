"""What is known of the CLI and of a stack is not asked again."""

from pathlib import Path

import pytest

from fleet.environment import CLI_VERSION
from fleet.recording import PROJECT
from fleet.workspace import Workspace


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A CLI that writes down what it is asked, and the file that it writes to."""
    log = tmp_path / "asked"
    cli = tmp_path / "pulumi"
    cli.write_text(f'#!/bin/sh\necho "$@" >> {log}\necho v3.190.0\n')
    cli.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    log.touch()
    return log


def workspace(tmp_path: Path, **variables: str) -> Workspace:
    backend = {"PULUMI_BACKEND_URL": f"file://{tmp_path / 'state'}"}
    return Workspace(tmp_path, {**backend, **variables}, lambda: None)


def test_a_version_that_is_known_is_not_asked(asked, tmp_path):
    assert workspace(tmp_path, **{CLI_VERSION: "3.190.0"}).pulumi_version == "3.190.0"
    assert asked.read_text() == ""


@pytest.mark.parametrize("said", ["", "of no known version"])
def test_another_one_is(asked, tmp_path, said):
    assert workspace(tmp_path, **{CLI_VERSION: said}).pulumi_version == "3.190.0"
    assert asked.read_text() == "version\n"


def test_a_stack_whose_state_is_here_is_not_asked_for(asked, tmp_path):
    opened = workspace(tmp_path, **{CLI_VERSION: "3.190.0"})
    opened.select_stack("dev")
    assert "stack select --stack dev" in asked.read_text()
    asked.write_text("")
    folder = tmp_path / "state" / ".pulumi" / "stacks" / PROJECT
    folder.mkdir(parents=True)
    (folder / "dev.json").touch()
    opened.select_stack("dev")
    assert asked.read_text() == ""


def test_attributes_that_a_kill_left_empty_are_removed(asked, tmp_path):
    folder = tmp_path / "state" / ".pulumi" / "stacks" / PROJECT
    folder.mkdir(parents=True)
    files = {"dev.json": "{}", "dev.json.attrs": "", "dev.json.bak.attrs": "{}"}
    files |= {"platform.json": "{}", "platform.json.attrs": ""}  # a team stack reads its outputs
    for name, text in files.items():
        (folder / name).write_text(text)
    workspace(tmp_path, **{CLI_VERSION: "3.190.0"}).select_stack("dev")
    left = sorted(path.name for path in folder.iterdir())
    assert left == ["dev.json", "dev.json.bak.attrs", "platform.json"]
