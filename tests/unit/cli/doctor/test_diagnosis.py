"""A run of the doctor: exit codes, what people and programs read, and whose fault it is."""

import json

import pytest
from typer.testing import CliRunner

from kai_fleet_cli.app import app
from kai_fleet_cli.doctor.diagnosis import Diagnosis, ExitCode
from kai_fleet_cli.doctor.faults import Fault, without_effects
from kai_fleet_policies.finding import Level
from tests.unit.cli.doctor.doctor_cases import CASES, lab_of
from tests.unit.components.cluster.canned_api import kubeconfig, serving


def causes_of(**effect_of):
    """The causes of faults by subject, of which each names the one that it is an effect of."""
    faults = [
        Fault(Level.MANDATORY, "ml", name, "", f"{name} fails", effect_of=cause)
        for name, cause in effect_of.items()
    ]
    return [fault.cause for fault in without_effects({("x", "ml"): faults})["x", "ml"]]


def test_an_effect_of_an_effect_is_named_at_the_first_cause():
    chain = {"deployment": "pod", "pod": "node", "node": "switch", "switch": "", "job": "pod"}
    (cause,) = causes_of(**chain)
    names = "node (ml), pod (ml), deployment (ml) and job (ml)"
    assert cause == f"switch fails. What fails for that: {names}"


def test_an_effect_of_what_has_a_fault_of_its_own_is_named_there_too():
    pods = [
        Fault(Level.MANDATORY, "ml", "pod", "", "has no node", effect_of="node"),
        Fault(Level.MANDATORY, "ml", "pod", "", "names no queue"),
        Fault(Level.MANDATORY, "ml", "node", "", "is gone"),
        Fault(Level.MANDATORY, "ml", "job", "", "fails", effect_of="pod"),
    ]
    found = [fault.cause for fault in without_effects({("x", "ml"): pods})["x", "ml"]]
    assert found == [
        "names no queue. What fails for that: job (ml)",
        "is gone. What fails for that: pod (ml) and job (ml)",
    ]


@pytest.fixture
def server():
    with serving() as both:
        yield both


@pytest.fixture
def doctor(tmp_path, monkeypatch):
    """Run the doctor on a stack without teams, whose context is of this kubeconfig."""
    file, cluster = tmp_path / "kubeconfig", {"name": "lab", "context": "lab"}
    config = {"config": {"kai-fleet:cluster": cluster}}
    (tmp_path / "Pulumi.lab.yaml").write_text(json.dumps(config))
    monkeypatch.setattr("kai_fleet_cli.stack_file.reading.ROOT", tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(file))

    def run(content, *arguments):
        file.write_text(content)
        return CliRunner().invoke(app, ["doctor", "--stack", "lab", *arguments])

    return run


def code(lab):
    return Diagnosis("lab", tuple(lab.ill())).exit_code


@pytest.mark.parametrize("case", CASES)
def test_what_a_tenant_did_wrong_inside_does_not_make_the_stack_broken(case):
    lab = lab_of(case)
    broken = any(" broken " in found for found in CASES[case]["finds"])
    assert code(lab) is (ExitCode.BROKEN if broken else ExitCode.HEALTHY)
    lab.gone.add("gpus")
    assert code(lab) is ExitCode.BROKEN


def test_a_host_that_is_not_reached_is_exit_2_and_no_traceback(doctor):
    ran = doctor(kubeconfig("http://127.0.0.1:1"), "--json")
    read = json.loads(ran.stdout)
    assert (ran.exit_code, read["exitCode"], read["healthy"]) == (2, 2, False)
    (finding,) = read["findings"]
    keys = {"check", "level", "path", "kind", "name", "cause", "fix", "commands"}
    assert set(finding) == keys
    assert finding["fix"] == "look with: `kubectl --context lab version`"
    assert finding["commands"] == ["kubectl --context lab version"]
    assert "its API is not reached: it cannot be connected to" in finding["cause"]
    assert "secret-token" not in ran.stdout


def test_a_team_that_there_is_not_names_those_that_there_are():
    ran = CliRunner().invoke(app, ["doctor", "--stack", "prod", "--team", "nosuch"])
    assert ran.exit_code == 2
    assert "stack prod has no team nosuch; its teams: " in ran.output.replace("\n", " ")


def test_a_healthy_cluster_is_exit_0(server, doctor):
    api, url = server
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    api.answers["/api/v1/nodes"] = (200, {"items": [{"metadata": {"name": "a"}, "status": ready}]})
    ran = doctor(kubeconfig(url))
    assert ran.exit_code == 0, ran.output
    assert "stack lab is healthy" in ran.output


def test_findings_are_a_table_for_people(doctor):
    ran = doctor(kubeconfig("http://127.0.0.1:1"))
    assert "→ look with: `kubectl --context lab version`" in " ".join(ran.output.split())


def test_a_kubeconfig_that_only_the_stacks_state_has_is_asked_for_there(
    doctor, tmp_path, monkeypatch
):
    (tmp_path / "Pulumi.lab.yaml").write_text(
        "config:\n  kai-fleet:cluster: {name: far, kubeconfig: {secure: 'v1:x'}}\n"
    )
    monkeypatch.setenv("PATH", str(tmp_path))  # no pulumi there
    ran = doctor("", "--json")
    (finding,) = json.loads(ran.stdout)["findings"]
    assert ran.exit_code == 2
    assert "its kubeconfig is a secret of the stack" in finding["cause"]
    assert "give --context" in finding["cause"]


def test_who_may_read_nothing_is_not_told_that_all_works(server, doctor):
    api, url = server
    api.answers = {"/version": (200, {})}
    api.otherwise = (403, {})
    done = doctor(kubeconfig(url))
    assert done.exit_code == 3
    words = " ".join(done.output.split())
    assert "stack lab is not known to be healthy: nothing of host may be read" in words
    assert json.loads(doctor(kubeconfig(url), "--json").stdout)["healthy"] is False


def test_what_is_no_kubernetes_api_is_not_healthy(server, doctor):
    done = doctor(kubeconfig(server[1]), "--json")
    assert done.exit_code == 2
    assert "no Kubernetes API" in json.loads(done.stdout)["findings"][0]["cause"]


def test_it_does_not_go_on_anonymously_without_its_credential_plugin(server, doctor):
    api, url = server
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin"}
    done = doctor(kubeconfig(url, user={"exec": plugin}), "--json")
    assert done.exit_code == 2
    text = " ".join(f"{done.output} {done.exception}".split())
    assert "plugin no-such-plugin of user me gives nothing: log in or install it" in text
    assert api.asked == []
    assert json.loads(done.stdout)["healthy"] is False
