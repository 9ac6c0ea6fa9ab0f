"""What a preview and the first update find on the host, in the doctor's own words."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from kai_fleet_cli.commands import updates
from kai_fleet_cli.doctor import diagnosis
from kai_fleet_cli.doctor.checks import RESOURCES_BEFORE_UPDATE, examine
from kai_fleet_cli.engine import environment, report, runs, workspace
from kai_fleet_cli.recovery.state import State
from kai_fleet_policies.finding import Level
from sandbox import lifecycle
from tests.unit.cli.doctor.doctor_cases import CASES, lab_of
from tests.unit.cli.doctor.doctor_samples import Lab, meta, node
from tests.unit.components.cluster.canned_api import kubeconfig, serving

NAMED = (
    "fewer GPUs than granted",
    "no node of the pool",
    "a StorageClass that is not there",
    "an Ingress class that is not there",
    "a priority class that is not there",
    "a runtime class that is not there",
    "a Kubernetes that is too old",
    "more GPUs than all nodes have",
)


def ahead(lab):
    """The lab's findings before its first update: nothing is there that the stack makes."""
    read = lab.look()
    objects = {
        kind: items for kind, items in read.host.objects.items() if kind in RESOURCES_BEFORE_UPDATE
    }
    states = {name: replace(state, inside=None) for name, state in read.teams.items()}
    read = replace(read, before_update=True, teams=states, host=replace(read.host, objects=objects))
    return [finding for finding in examine(read) if finding.level is not Level.OK]


@pytest.mark.parametrize("case", NAMED)
def test_what_no_update_makes_is_named_before_it_as_the_doctor_names_it_after(case):
    lab = lab_of(case)
    found, checks = ahead(lab), {each.split()[-1] for each in CASES[case]["finds"]}
    assert {finding.check for finding in found} == checks
    assert {*found} <= {*lab.ill()}


def test_what_the_update_makes_is_not_missed_before_it():
    lab = Lab()
    lab.host |= {"runtimeclasses": [], "namespaces": [], "nodes": [node("ml-0", gpus="0")]}
    assert ahead(lab) == []
    lab.settings["gpu"] = {"provider": "none"}
    assert {finding.check for finding in ahead(lab)} == {"nodes", "runtime-class"}


def test_a_network_that_enforces_nothing_is_named_ahead():
    lab = Lab()
    lab.host["daemonsets"] = []
    (found,) = ahead(lab)
    assert (found.check, found.level) == ("network-plugin", Level.ADVISORY)


def test_a_vcluster_without_a_class_for_its_volume_is_named_ahead():
    lab = Lab()
    lab.host["storageclasses"] = []
    (found,) = ahead(lab)
    assert found.message == (
        "needs a volume, and no StorageClass is the default one; write one at"
        " kai-fleet:teams.ml.vcluster.storageClass, or make one the default"
    )
    lab.host["storageclasses"] = [{"metadata": meta("fast")}]
    claim = {
        "controlPlane": {"statefulSet": {"persistence": {"volumeClaim": {"storageClass": "fast"}}}}
    }
    for written in ({"storageClass": "fast"}, {"values": claim}):
        lab.settings["teams"]["ml"]["vcluster"] = written
        assert ahead(lab) == []


@pytest.mark.parametrize("nodes", [[], [node("ml-0", gpus="1")]])
def test_a_pool_that_an_autoscaler_keeps_small_is_no_mistake(nodes):
    lab = Lab()
    lab.host["nodes"] = nodes
    (found,) = ahead(lab)
    assert "where an autoscaler" in found.fix
    lab.settings["teams"]["ml"]["autoscaled"] = True
    assert [found for found in lab.ill() if found.path == "host"] == ahead(lab) == []


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A stack whose team has a pool that no node has, and its host."""
    team = {"scheduler": {"mode": "default"}, "nodePool": {"pool": "mll"}, "gpus": 2}
    config = {"cluster": {"name": "lab", "context": "lab"}, "teams": {"ml": team}}
    keys = {f"kai-fleet:{key}": value for key, value in config.items()}
    (tmp_path / "Pulumi.lab.yaml").write_text(json.dumps({"config": keys}))
    monkeypatch.setattr("kai_fleet_cli.stack_file.reading.ROOT", tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    with serving() as (api, url):
        (tmp_path / "kubeconfig").write_text(kubeconfig(url))
        api.answers["/api/v1/nodes"] = (200, {"items": [{"metadata": meta("a")}]})
        yield api


@pytest.fixture
def engine(monkeypatch):
    """What runs of the engine are asked; `known` is the state of an update."""
    ran, known = [], State()
    opened = environment.Environment()
    monkeypatch.setattr(updates, "for_stack", lambda *_: opened)
    monkeypatch.setattr(workspace, "open_stack", lambda name, _: SimpleNamespace(name=name))

    def run(_, before=None, *, agree=None, **more):
        if before or not ran:
            before() if before else agree(known)
        ran.append(more)
        return report.Report()

    monkeypatch.setattr(runs, "preview", run)
    monkeypatch.setattr(runs, "up", run)
    return ran


@pytest.mark.parametrize("command", [updates.preview, updates.up])
def test_a_preview_and_a_first_update_look_at_the_host_first(command, project, engine, capsys):
    command(stack="lab")
    shown = " ".join(capsys.readouterr().out.split())
    assert "broken host: node pool pool=mll no node with these labels is Ready" in shown
    asked = {path.partition("?")[0].rpartition("/")[2] for _, path in project.asked}
    assert {verb for verb, _ in project.asked} == {"GET"}
    assert asked == {"version", *RESOURCES_BEFORE_UPDATE}
    assert len(engine) == 1


def test_a_host_that_does_not_answer_is_one_line_and_no_error(project, tmp_path, capsys):
    (tmp_path / "kubeconfig").write_text(kubeconfig("http://127.0.0.1:1"))
    diagnosis.print_missing_prerequisites("lab")
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("the host cluster is not looked at: it cannot be connected to")
    team = {"name": "ml", "scheduler": {"mode": "default"}}
    keys = {"kai-fleet:platform": {"stack": "org/other/prod"}, "kai-fleet:team": team}
    (tmp_path / "Pulumi.lab.yaml").write_text(json.dumps({"config": keys}))
    diagnosis.print_missing_prerequisites("lab")
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith("the file of its platform's stack is not in this folder")


IN_SANDBOX = "config: {kai-fleet:cluster: {name: lab, context: kai-fleet-sandbox}}\n"
NOT_READ = {
    "no sandbox": (IN_SANDBOX, "the sandbox is not running; start it with: make up"),
    "values of ESC": ("environment: [lab]\nconfig: {}\n", "takes values of Pulumi ESC"),
    "a file that is gone": (None, "Pulumi.lab.yaml is not there"),
    "a wrong key": (IN_SANDBOX.replace("lab,", "[lab],"), "kai-fleet:cluster.name: "),
}


@pytest.mark.parametrize("case", NOT_READ)
def test_each_cause_for_which_the_host_is_not_looked_at_is_said(
    project, tmp_path, monkeypatch, capsys, case
):
    text, says = NOT_READ[case]
    file = tmp_path / "Pulumi.lab.yaml"
    file.unlink() if text is None else file.write_text(text)
    monkeypatch.setattr(lifecycle, "find", lambda: None)
    diagnosis.print_missing_prerequisites("lab")
    said = capsys.readouterr().out
    assert said.startswith("the host cluster is not looked at: ")
    assert says in said
    assert "platform" not in said
