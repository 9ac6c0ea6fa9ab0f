"""How the doctor asks: only GET, within its time, and in words where there is no answer."""

from __future__ import annotations

import json
import time

import pytest
from typer.testing import CliRunner

from kai_fleet.cli.__main__ import app
from kai_fleet.cli.doctor.gather import Sources, gather
from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import Refused, Unreachable
from tests.unit.canned_api import kubeconfig, serving


@pytest.fixture
def server():
    with serving() as both:
        yield both


def test_pages_are_read_to_the_end(server):
    api, url = server

    def page(path):
        more = "continue=" in path
        name = "b" if more else "a"
        return {
            "items": [{"metadata": {"name": name}}],
            "metadata": {} if more else {"continue": "x"},
        }

    api.answers["/api/v1/pods"] = (200, page)
    found = Api.of_kubeconfig(kubeconfig(url)).list("/api/v1/pods")
    assert [item["metadata"]["name"] for item in found] == ["a", "b"]


def test_a_refusal_has_its_status(server):
    api, url = server
    api.answers["/api/v1/pods"] = (403, {})
    with pytest.raises(Refused) as why:
        Api.of_kubeconfig(kubeconfig(url)).list("/api/v1/pods")
    assert why.value.status == 403


def test_a_slow_api_is_given_up_in_time(server):
    api, url = server
    api.delay = 5.0
    begun = time.monotonic()
    with pytest.raises(Unreachable, match="does not answer in time"):
        Api.of_kubeconfig(kubeconfig(url), in_all=0.3).get("/version")
    assert time.monotonic() - begun < 2


def test_the_time_is_for_all_questions_together(server):
    api, url = server
    api.delay = 0.15
    reader = Api.of_kubeconfig(kubeconfig(url), in_all=0.4)
    with pytest.raises(Unreachable):
        for _ in range(10):
            reader.get("/version")
    assert len(api.asked) <= 4


def test_nobody_there_is_a_sentence():
    with pytest.raises(Unreachable, match=r"cannot be connected to: .*refused"):
        Api.of_kubeconfig(kubeconfig("http://127.0.0.1:1")).get("/version")


@pytest.mark.parametrize("text", ["", "{}", "[]", "a: [", "clusters: 3"])
def test_a_kubeconfig_that_is_none_is_a_sentence(text):
    with pytest.raises(Unreachable, match="kubeconfig cannot be used"):
        Api.of_kubeconfig(text)


def test_only_get_is_ever_asked_and_what_may_not_be_read_is_said(server):
    api, url = server
    team = {"metadata": {"name": "team-ml", "labels": {"kai-fleet/team": "ml"}}}
    api.answers |= {
        "/api/v1/namespaces": (200, {"items": [team]}),
        "/api/v1/nodes": (403, {}),
    }
    look = gather(Sources(host=lambda: Api.of_kubeconfig(kubeconfig(url))))
    assert {verb for verb, _ in api.asked} == {"GET"}
    assert not [path for _, path in api.asked if "watch=" in path]
    assert list(look.host.unreadable) == ["nodes"]
    assert look.teams["ml"].unreached == "its Secret vc-ml is not there"


def test_credentials_that_are_not_accepted_are_said(server):
    api, url = server
    api.answers["/version"] = (401, {})
    with pytest.raises(Unreachable, match="does not accept the credentials"):
        gather(Sources(host=lambda: Api.of_kubeconfig(kubeconfig(url))))


def test_an_api_server_that_fails_is_not_reached(server):
    api, url = server
    api.answers["/version"] = (503, {})
    with pytest.raises(Unreachable, match="it answers 503"):
        gather(Sources(host=lambda: Api.of_kubeconfig(kubeconfig(url))))


def doctor(*arguments):
    return CliRunner().invoke(app, ["doctor", *arguments])


def test_a_host_that_is_not_reached_is_exit_2_and_no_traceback(tmp_path, monkeypatch):
    file = tmp_path / "kubeconfig"
    file.write_text(kubeconfig("http://127.0.0.1:1"))
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(file))
    ran = doctor("--context", "lab", "--json")
    read = json.loads(ran.stdout)
    assert (ran.exit_code, read["exitCode"], read["healthy"]) == (2, 2, False)
    (finding,) = read["findings"]
    fields = {"check", "health", "cluster", "subject", "cause", "fix", "count", "subjects"}
    assert set(finding) == fields
    assert "its API is not reached: it cannot be connected to" in finding["cause"]
    assert "secret-token" not in ran.stdout


def test_a_stack_that_there_is_not_is_exit_2():
    ran = doctor("--stack", "nosuch")
    assert ran.exit_code == 2
    assert "stacks with a file: dev, prod, sandbox, sandbox-host" in ran.output.replace("\n", " ")


def test_a_team_that_there_is_not_names_those_that_there_are():
    ran = doctor("--stack", "prod", "--team", "nosuch")
    assert ran.exit_code == 2
    assert "stack prod has no team nosuch; its teams: " in ran.output.replace("\n", " ")


def test_a_healthy_cluster_is_exit_0(server, tmp_path, monkeypatch):
    _, url = server
    file = tmp_path / "kubeconfig"
    file.write_text(kubeconfig(url))
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(file))
    ran = doctor("--context", "lab")
    assert ran.exit_code == 0
    assert "the cluster is healthy" in ran.output


def test_a_kubeconfig_that_only_the_stacks_state_has_is_asked_for_there(tmp_path, monkeypatch):
    (tmp_path / "Pulumi.far.yaml").write_text(
        "config:\n  kai-fleet:cluster: {name: far, kubeconfig: {secure: 'v1:x'}}\n"
    )
    monkeypatch.setattr("kai_fleet.cli.stack_file.reading.ROOT", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))  # no pulumi there
    ran = doctor("--stack", "far", "--json")
    (finding,) = json.loads(ran.stdout)["findings"]
    assert ran.exit_code == 2
    assert "its kubeconfig is a secret of the stack" in finding["cause"]
    assert "give --context" in finding["cause"]


def test_a_forbidden_secret_leads_to_the_stacks_state(server):
    api, url = server
    team = {"metadata": {"name": "team-ml", "labels": {"kai-fleet/team": "ml"}}}
    api.answers |= {
        "/api/v1/namespaces": (200, {"items": [team]}),
        "/api/v1/namespaces/team-ml/secrets/vc-ml": (403, {}),
    }
    look = gather(
        Sources(
            host=lambda: Api.of_kubeconfig(kubeconfig(url)),
            kubeconfigs=lambda: {"ml": kubeconfig(url)},
        )
    )
    assert look.teams["ml"].inside is not None


def test_findings_are_a_table_for_people(tmp_path, monkeypatch):
    file = tmp_path / "kubeconfig"
    file.write_text(kubeconfig("http://127.0.0.1:1"))
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(file))
    ran = doctor("--context", "lab")
    assert "broken" in ran.output
    assert "→ look with: `kubectl --context lab version`" in " ".join(ran.output.split())
    assert "the cluster could not be looked at" in ran.output


def test_who_may_read_nothing_is_not_told_that_all_works(server, tmp_path):
    api, url = server
    api.answers = {"/version": (200, {})}
    api.otherwise = (403, {})
    file = tmp_path / "kubeconfig"
    file.write_text(kubeconfig(url))
    done = CliRunner().invoke(app, ["doctor", "--kubeconfig", str(file)])
    assert "nothing could be checked, for want of the rights to read it" in done.output
    assert "works" not in done.output
