"""`fleet destroy`: what it asks, what it tells, and what refuses before anything goes."""

import shlex
from dataclasses import replace
from types import SimpleNamespace

import pytest
from kai_fleet_cli.recovery.live_cluster import LiveCluster

from kai_fleet_cli import cluster_reader
from kai_fleet_cli.commands import sandbox as sandbox_commands
from kai_fleet_cli.display.terminal import Screen
from kai_fleet_cli.recovery.state import ExportedState
from sandbox import lifecycle

URN = "urn:pulumi:lab::kai-fleet::"
HOST = f"{URN}pulumi:providers:kubernetes::host"
SPACE = "kai-fleet:index:TeamNamespace"
KUBECONFIG = "of ml"


def team(name, **more):
    return {"urn": f"{URN}kai-fleet:index:Team::{name}", "type": "kai-fleet:index:Team", **more}


def space(name):
    kind = "kubernetes:core/v1:Namespace"
    return {
        "urn": f"{URN}{SPACE}${kind}::{name}-namespace",
        "type": kind,
        "parent": f"{URN}{SPACE}::{name}",
        "provider": f"{HOST}::an-id",
        "inputs": {"metadata": {"name": f"team-{name}"}},
    }


def inside(name):
    path = "kai-fleet:index:Team$kai-fleet:index:VirtualCluster$pulumi:providers:kubernetes"
    return {"urn": f"{URN}{path}::{name}", "type": "pulumi:providers:kubernetes"}


PROVIDER = {"urn": HOST, "type": "pulumi:providers:kubernetes", "inputs": {"context": "lab"}}


@pytest.fixture
def lab(project, monkeypatch):
    """Team ml, in whose vCluster are three pods and a volume, and team dev, whose is silent."""
    resources = [PROVIDER, space("ml"), space("dev"), team("ml"), team("dev"), inside("ml")]
    project.engine.deployed["lab"] = ExportedState({"resources": resources})
    project.resources = resources
    rebuilt = ("kai_fleet_cli.recovery.state.rebuild", lambda text: (KUBECONFIG, []))
    monkeypatch.setattr(*rebuilt)
    monkeypatch.setattr(cluster_reader.ClusterReader, "pods", lambda it: [{}] * 3)
    monkeypatch.setattr(cluster_reader.ClusterReader, "claims", lambda it: [{}])
    return project


def at_a_terminal(monkeypatch, answer):
    standard = Screen.standard
    monkeypatch.setattr(Screen, "standard", lambda: replace(standard(), asks=True))
    monkeypatch.setattr("rich.prompt.Prompt.ask", lambda question, **_: answer)


def test_without_a_terminal_nothing_is_even_opened_and_the_command_is_named(lab, monkeypatch):
    monkeypatch.setattr("kai_fleet_cli.engine.runs.stack", lambda *_: pytest.fail("opened"))
    ran = lab.run("destroy", "-s", "lab")
    assert ran.code == 1
    assert ran.refusal == (
        "stack lab and every team in it would be gone; there is no terminal to ask at, so write"
        " --yes: .venv/bin/fleet destroy --stack lab --yes"
    )


def test_the_command_that_it_names_removes(lab):
    command = lab.run("destroy", "-s", "lab", "--refresh").refusal.rpartition(".venv/bin/fleet ")[2]
    ran = lab.run(*command.split())
    assert ran.code == 0, ran.refusal
    assert lab.engine.asked == ["destroy lab"]


@pytest.mark.parametrize(("answer", "asked"), [("lab", ["destroy lab"]), ("y", []), ("no", [])])
def test_at_a_terminal_the_name_is_typed(lab, monkeypatch, answer, asked):
    at_a_terminal(monkeypatch, answer)
    ran = lab.run("destroy", "-s", "lab")
    assert (ran.refusal == "nothing is changed") == (not asked)
    assert lab.engine.asked == asked


def test_the_question_tells_which_teams_go_with_how_many_pods_and_volumes(lab, monkeypatch):
    at_a_terminal(monkeypatch, "no")
    printed = lab.run("destroy", "-s", "lab").out
    assert "Stack lab goes with all that it made: 6 resources" in printed
    assert "  team ml: its vCluster, 3 pods and 1 volume now" in printed
    assert "  team dev: its vCluster, every pod and every volume in it; it does not an" in printed


def test_what_is_protected_refuses_before_the_first_deletion(lab):
    resources = lab.engine.deployed["lab"].resources
    resources.append(team("kept'; reboot #", protect=True))
    ran = lab.run("destroy", "-s", "lab", "--yes")
    assert "stack lab has 1 protected resource, and Pulumi deletes none: kept'" in ran.refusal
    assert ran.refusal.endswith(
        f"pulumi state unprotect --stack lab {shlex.quote(resources[-1]['urn'])}"
    )
    assert lab.engine.asked == []


@pytest.fixture
def granting(with_own, monkeypatch):
    """The lab, whose namespace team-vision holds what `held` has."""
    resources = [PROVIDER, space("ml"), team("ml"), space("vision")]
    with_own.engine.deployed["lab"] = ExportedState({"resources": resources})
    with_own.held, with_own.looked = ["vision"], []

    def vclusters(cluster, namespace):
        with_own.looked.append(namespace)
        return with_own.held

    monkeypatch.setattr(LiveCluster, "__init__", lambda *_: None)
    monkeypatch.setattr(LiveCluster, "vclusters", vclusters)
    return with_own


def test_team_stacks_that_still_run_refuse_and_the_command_for_them_works(granting):
    ran = granting.run("destroy", "-s", "lab", "--yes")
    assert "(vision: namespace team-vision holds the vCluster vision)" in ran.refusal
    assert granting.engine.asked == []
    assert granting.looked == ["team-vision"], "a team of the stack itself goes with it"
    _, _, command = ran.refusal.rpartition("Destroy these first: .venv/bin/fleet ")
    assert granting.run(*command.split()).code == 0
    granting.held = []
    assert granting.run("destroy", "-s", "lab", "--yes").code == 0
    assert granting.engine.asked == ["destroy lab-vision", "destroy lab"]


def test_a_host_that_does_not_answer_is_told_of(granting, monkeypatch, capsys):
    def silent(cluster, namespace):
        raise cluster_reader.NoAnswerError("it does not answer")

    monkeypatch.setattr(LiveCluster, "vclusters", silent)
    ran = granting.run("destroy", "-s", "lab", "--yes")
    assert ran.code == 0
    assert "whether team vision's own stack still runs is not known: it does not answer" in ran.out


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
