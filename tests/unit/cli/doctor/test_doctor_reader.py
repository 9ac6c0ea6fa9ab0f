"""How the doctor asks: only GET, within its time, and in words where there is no answer."""

import json
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import UnreachableError
from kai_fleet_cli.app import app
from kai_fleet_cli.doctor.checks import examine
from kai_fleet_cli.doctor.read import Source, read_clusters
from kai_fleet_stack.settings.loading import load
from tests.unit.cli.doctor.doctor_samples import SETTINGS
from tests.unit.components.cluster import vcluster_secrets
from tests.unit.components.cluster.canned_api import kubeconfig, serving


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


def seen(url):
    """A snapshot of the doctor's samples' stack, read from a server."""
    access = {"type": "NodePort", "host": "127.0.0.1"}
    settings = load({**SETTINGS, "vcluster": {"access": access}}).settings
    assert settings is not None
    return read_clusters(Source(settings, lambda: Api.of_kubeconfig(kubeconfig(url))))


@pytest.mark.parametrize("text", ["", "[]", "a: [", "clusters: 3"])
def test_a_kubeconfig_that_is_none_is_a_sentence(text):
    with pytest.raises(UnreachableError, match="kubeconfig cannot be used"):
        Api.of_kubeconfig(text)


def test_only_get_is_ever_asked_and_what_may_not_be_read_is_said(server):
    api, url = server
    api.answers["/api/v1/nodes"] = (403, {})
    look = seen(url)
    assert {verb for verb, _ in api.asked} == {"GET"}
    assert not [path for _, path in api.asked if "watch=" in path]
    assert list(look.host.unreadable) == ["nodes"]
    assert look.teams["ml"].unreached == "its Secret vc-ml is not there"


@pytest.mark.parametrize(
    ("status", "words"), [(401, "does not accept the credentials"), (503, "it answers 503")]
)
def test_an_api_server_that_refuses_or_fails_is_not_reached(server, status, words):
    api, url = server
    api.answers["/version"] = (status, {})
    with pytest.raises(UnreachableError, match=words):
        seen(url)


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


def vcluster(port, data):
    service = {
        "metadata": {"name": "ml", "namespace": "team-ml"},
        "spec": {"type": "NodePort", "ports": [{"nodePort": port}]},
    }
    space = {"metadata": {"name": "team-ml", "labels": {"kai-fleet/team": "ml"}}}
    return {
        "/api/v1/namespaces": (200, {"items": [space]}),
        "/api/v1/services": (200, {"items": [service]}),
        "/api/v1/namespaces/team-ml/secrets/vc-ml": (200, {"data": data}),
    }


def test_a_vcluster_is_asked_by_what_it_wrote_itself(server):
    api, url = server
    with vcluster_secrets.serving() as (_, inside):
        api.answers |= vcluster(int(inside.rpartition(":")[2]), vcluster_secrets.data())
        team = seen(url).teams["ml"]
    assert team.inside is not None
    assert team.certificate_ends is not None
    assert team.certificate_ends > datetime.now(UTC)


def test_what_somebody_else_wrote_is_a_finding_with_what_mends_it(server):
    api, url = server
    document = vcluster_secrets.config()
    document["users"][0]["user"]["exec"] = vcluster_secrets.USER["exec"]
    api.answers |= vcluster(1, vcluster_secrets.data(document))
    look = seen(url)
    assert look.teams["ml"].foreign
    (found,) = [item for item in examine(look) if item.subject == "kubeconfig of vCluster ml"]
    assert (found.check, found.level, found.path) == ("vcluster", "mandatory", "host")
    assert "Secret vc-ml has in its key config what vCluster does not write there" in found.cause
    assert "Somebody who can write in the namespace of team ml wrote it" in found.cause
    assert found.commands == (
        "kubectl -n team-ml delete secret vc-ml",
        "kubectl -n team-ml rollout restart statefulset ml",
    )


@pytest.mark.parametrize(
    "pods",
    [
        {"items": [{"metadata": {"name": "a"}, "spec": "x", "status": {"conditions": [3]}}]},
        {"items": [{"metadata": {"name": "a", "creationTimestamp": "never"}, "spec": {}}]},
        {"items": "pods"},
        {"items": [None, 3, {"metadata": 3}]},
    ],
)
def test_what_a_tenants_own_api_server_answers_breaks_nothing(server, pods):
    api, url = server
    with vcluster_secrets.serving() as (own, inside):
        api.answers |= vcluster(int(inside.rpartition(":")[2]), vcluster_secrets.data())
        own.answers |= {"/api/v1/pods": (200, pods), "/api/v1/events": (200, pods)}
        found = examine(seen(url))
    assert {item.check for item in found} >= {"vcluster"}


def test_names_that_no_kubernetes_gives_get_into_no_command(server):
    api, url = server
    evil = "a; touch marker"
    pod = {"metadata": {"name": evil, "namespace": "default"}, "status": {"phase": "Pending"}}
    well = {"metadata": {"name": "b", "labels": {"kai.scheduler/queue": "`x`", "app": "y"}}}
    with vcluster_secrets.serving() as (own, inside):
        api.answers |= vcluster(int(inside.rpartition(":")[2]), vcluster_secrets.data())
        own.answers |= {"/api/v1/pods": (200, {"items": [pod, well]})}
        look = seen(url)
    (kept,) = look.teams["ml"].inside.all("pods")
    assert kept["metadata"] == {"name": "b", "labels": {"app": "y"}}
    assert not [item for item in examine(look) if "touch" in str(item.record())]


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
