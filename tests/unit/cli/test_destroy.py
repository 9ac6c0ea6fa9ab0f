"""`fleet destroy`: what it asks, what it tells, and what refuses before anything goes."""

from types import SimpleNamespace

import pytest

from kai_fleet_cli.commands import sandbox as sandbox_commands
from sandbox import lifecycle


def test_without_a_terminal_nothing_is_even_opened_and_the_command_is_named(project, monkeypatch):
    monkeypatch.setattr(
        "kai_fleet_cli.engine.workspace.open_stack", lambda *_: pytest.fail("opened")
    )
    ran = project.run("destroy", "-s", "lab")
    assert ran.code == 1
    assert ran.refusal == (
        "stack lab and every team in it would be gone; there is no terminal to ask at, so write"
        " --yes: .venv/bin/fleet destroy --stack lab --yes"
    )


def test_the_command_that_it_names_removes(project):
    command = project.run("destroy", "-s", "lab", "--refresh").refusal.rpartition(
        ".venv/bin/fleet "
    )[2]
    ran = project.run(*command.split())
    assert ran.code == 0, ran.refusal
    assert project.engine.asked == ["destroy lab"]


@pytest.mark.parametrize(("answer", "asked"), [("lab", ["destroy lab"]), ("y", []), ("no", [])])
def test_at_a_terminal_the_name_is_typed(project, at_a_terminal, answer, asked):
    at_a_terminal(answer)
    ran = project.run("destroy", "-s", "lab")
    assert (ran.refusal == "nothing is changed") == (not asked)
    assert project.engine.asked == asked


def test_the_question_tells_which_teams_go(with_own, at_a_terminal):
    at_a_terminal("no")
    printed = with_own.run("destroy", "-s", "lab").out
    assert "  team ml goes: its vCluster, every pod and every volume in it" in printed
    assert "  team vision loses its namespace: destroy its own stack first" in printed


@pytest.mark.parametrize(("arguments", "code"), [((), 1), (("--yes",), 0)])
def test_a_sandbox_with_a_stack_in_it_is_not_taken_down_unasked(
    project, monkeypatch, arguments, code
):
    (project.root / "stack").write_text("lab\n")
    down = []
    monkeypatch.setattr(lifecycle, "find", lambda: SimpleNamespace(directory=project.root))
    monkeypatch.setattr(lifecycle, "down", down.append)
    monkeypatch.setattr(sandbox_commands, "require_sandbox", lambda: None)
    ran = project.run("sandbox", "down", *arguments)
    assert (ran.code, len(down)) == (code, 1 - code)
    if code:
        assert ran.refusal.endswith("write --yes: .venv/bin/fleet sandbox down --yes")
