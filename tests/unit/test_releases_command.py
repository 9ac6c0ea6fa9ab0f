"""`fleet releases`: what is known, and where each team could go."""

import pytest
from typer.testing import CliRunner

from kai_fleet.releases import KAI, VCLUSTER, support, vcluster_support
from kai_fleet_cli.__main__ import app
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.teams import stack_state


@pytest.fixture(autouse=True)
def nobody_to_ask(monkeypatch):
    def nothing(stack):
        raise UserError("no engine here")

    monkeypatch.setattr(stack_state, "read", nothing)


def runs(monkeypatch, version):
    state = stack_state.StackState({"ml": version})
    monkeypatch.setattr(stack_state, "read", lambda *_: state)


def test_every_version_is_listed_with_its_support():
    ran = CliRunner().invoke(app, ["releases"])
    assert ran.exit_code == 0
    lines = ran.stdout.splitlines()
    for version in [*KAI, "v0.20.1"]:
        said = f"KAI {version:<9} {support(version).words}"
        assert any(line.partition("; not advised")[0] == said for line in lines)
    for version in VCLUSTER:
        said = f"vCluster {version:<9} {vcluster_support(version).words}"
        assert any(line.startswith(said) for line in lines)
    assert "KAI v0.20.1   retracted: its chart is that of v0.10.2" in lines


def test_what_gets_fixes_and_is_not_advised_is_listed_with_the_reason():
    lines = CliRunner().invoke(app, ["releases"]).stdout.splitlines()
    assert {it.split(" not advised: ")[1] for it in lines if "KAI v0.18.0 " in it} == {
        "v0.18.1 repairs vulnerabilities of it"
    }
    assert {it.split(" not advised: ")[1] for it in lines if "vCluster v0.37.0 " in it} == {
        "never run with this program"
    }
    assert sum("not advised" in it for it in lines) == 2


def test_what_runs_and_is_not_advised_is_not_called_the_newest(monkeypatch):
    runs(monkeypatch, "v0.18.0")
    said = CliRunner().invoke(app, ["releases", "--stack", "prod"]).stdout
    (line,) = (it for it in said.splitlines() if it.startswith("ml runs KAI v0.18.0"))
    assert line.endswith("; not advised: v0.18.1 repairs vulnerabilities of it)")


def test_a_stacks_teams_are_told_where_they_could_go():
    ran = CliRunner().invoke(app, ["releases", "--stack", "prod"])
    assert "research is to run KAI v0.14.7" in ran.stdout
    assert "v0.14.7 → v0.16.9: helm upgrades it in place" in ran.stdout
    assert "- no engine here" in ran.output


def test_what_runs_counts_and_not_what_the_file_says(monkeypatch):
    runs(monkeypatch, "v0.7.11")
    said = CliRunner().invoke(app, ["releases", "--stack", "prod"]).stdout
    assert (
        "ml runs KAI v0.7.11 (no support dates are published for line v0.7); v0.7.11 → v0.16.9: "
        in said
    )
    assert "so the release is replaced" in said
    assert "research is to run KAI v0.14.7" in said
