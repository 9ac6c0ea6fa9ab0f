"""What several unit tests share."""

import asyncio

import pytest
from rich.prompt import PromptBase

from kai_fleet_cli.display import terminal
from kai_fleet_cli.teams import state
from kai_fleet_stack import declared
from sandbox.tools import toolbox
from tests.unit.cli.teams.team_project import Project
from tests.unit.components.cluster.canned_api import serving
from tests.unit.kubectl.team_cluster import Team


@pytest.fixture(autouse=True)
def no_event_loop():
    """Have no event loop at the start, as after a test that has run one: order decides nothing."""
    asyncio.set_event_loop(None)


@pytest.fixture(autouse=True)
def no_advice_about_backups(monkeypatch):
    """Have no stack file advised to back up its teams: that rule is tested on its own."""
    monkeypatch.setattr(declared, "is_unsaved", lambda _: False)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with an empty cache, nothing but the basics on PATH, and no publisher in reach."""
    monkeypatch.setenv("KAI_FLEET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KAI_FLEET_RELEASES", "off")
    monkeypatch.setattr(toolbox, "STAND_INS", tmp_path / "stand-ins")
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    monkeypatch.setenv("PATH", str(bin_folder))
    for name in ("sh", "mkdir", "echo", "cat", "chmod", "sleep"):
        (bin_folder / name).symlink_to(f"/bin/{name}")
    return tmp_path


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The lab, whose stack has run as its `updates` say and has these `outputs`."""
    created = Project.of(tmp_path, monkeypatch)
    created.updates, created.outputs = [], {}

    def ask(stack, *asked):
        return created.updates if asked[0] == "history" else created.outputs

    monkeypatch.setattr(state, "stack_command_json", ask)
    return created


@pytest.fixture
def with_own(tmp_path, monkeypatch):
    """The lab, and a team of it with a stack of its own."""
    return Project.of(tmp_path, monkeypatch, own=True)


@pytest.fixture
def at_a_terminal(monkeypatch):
    """Have a person at the terminal, who answers every question so, or presses Ctrl-C or Ctrl-D."""

    def answers(answer):
        def ask(*_, **__):
            if answer in (KeyboardInterrupt, EOFError):
                raise answer
            return answer

        monkeypatch.setattr(terminal, "can_ask", lambda: True)
        monkeypatch.setattr(PromptBase, "ask", ask)

    return answers


@pytest.fixture
def team(tmp_path, monkeypatch, capsys):
    """A team's cluster behind its kubeconfig, and a terminal of 80 columns."""
    with serving() as (handler, url):
        served = Team(handler, url, tmp_path / "team.kubeconfig", capsys)
        monkeypatch.setenv("KUBECONFIG", served.file)
        monkeypatch.setenv("COLUMNS", "80")
        yield served
