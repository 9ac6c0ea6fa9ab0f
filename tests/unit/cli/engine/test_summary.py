"""The end of an update on a screen."""

import io
from contextlib import redirect_stdout
from types import SimpleNamespace

from kai_fleet.names import TEAM
from kai_fleet_cli.display.terminal import pulumi_first
from kai_fleet_cli.engine.report import Report, show_teams


def test_on_80_columns_no_name_and_no_address_is_broken(capsys):
    team, server = "research-and-development-of-models", "https://a-long-name.example.org:31000"
    about = {"mode": "virtual", "scheduler": "v0.16.8", "gpus": 8, "server": server}
    queues = [f"department-{number}-of-the-laboratory" for number in range(4)]
    report = Report(outputs={"teams": {team: {**about, "queues": queues}}})
    show_teams("lab", report, ("nodes",), compared=False)
    text = capsys.readouterr().out
    assert all(word in text for word in (team, server, "KAI v0.16.8", *queues))


def end_of(steps, monkeypatch, tools=""):
    """What an update of these steps ends with, where `tools` is the PATH of the shell."""
    monkeypatch.setenv("PATH", str(tools))
    about = {"mode": "virtual", "scheduler": "v0.16.8", "gpus": 8, "server": "https://a:1"}
    teams = {"ml": {**about, "queues": []}, "nlp": {**about, "queues": []}}
    report = Report(outputs={"teams": teams})
    report.steps = [step(*each) for each in steps]
    with redirect_stdout(io.StringIO()) as out:
        show_teams("lab", report, (), compared=False)
    return out.getvalue()


def step(name, op, kind=TEAM):
    urn = f"urn:pulumi:lab::kai-fleet::{kind}::{name}"
    return SimpleNamespace(urn=urn, type=kind, op=op)


def test_how_to_reach_a_team_is_said_once_and_of_the_new_one(monkeypatch):
    first = end_of([("ml", "create"), ("nlp", "create")], monkeypatch)
    assert "fleet team kubeconfig ml --stack lab" in first
    assert "fleet team kubeconfig nlp --stack lab" in end_of(
        [("ml", "same"), ("nlp", "create")], monkeypatch
    )
    changed = ("nlp", "update", "kubernetes:helm.sh/v3:Release")
    for steps in ([("ml", "same"), changed], [("ml", "same"), ("nlp", "same")]):
        assert "Next" not in end_of(steps, monkeypatch)


def test_a_shell_that_does_not_find_pulumi_is_told_how_to_have_it(tmp_path, monkeypatch):
    first = 'eval "$(.venv/bin/fleet sandbox env)"'
    assert first in end_of([("ml", "same")], monkeypatch)
    assert first in pulumi_first("Repair it with:\npulumi stack rm --force lab")
    assert not pulumi_first("run: make up STACK=lab")
    tool = tmp_path / "pulumi"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    assert "sandbox env" not in end_of([("ml", "same")], monkeypatch, tmp_path)
