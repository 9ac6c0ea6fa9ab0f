"""How the doctor reads: by GET alone, again what a server puts off, and what of it is not known."""

import time
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import UnreachableError
from kai_fleet_cli.doctor import read
from kai_fleet_cli.doctor.checks import examine
from kai_fleet_cli.doctor.read import READS, Source, read_clusters
from kai_fleet_cli.hosts import HostAddress
from kai_fleet_cli.recovery.state import State
from kai_fleet_policies.finding import Level
from kai_fleet_stack.settings.loading import load
from tests.unit.cli.doctor.doctor_samples import SETTINGS, Lab
from tests.unit.components.cluster import vcluster_secrets
from tests.unit.components.cluster.canned_api import kubeconfig, serving

BUSY = "429 Too Many Requests"


@pytest.fixture
def server():
    with serving() as both:
        yield both


def seen(url):
    """A snapshot of the doctor's samples' stack, read from a server."""
    access = {"type": "NodePort", "host": "127.0.0.1"}
    settings = load({**SETTINGS, "vcluster": {"access": access}}).settings
    assert settings is not None
    return read_clusters(Source(settings, lambda: Api.of_kubeconfig(kubeconfig(url))))


@pytest.mark.parametrize("text", ["", "[]", "3", '{"deployment": {"resources": [{}]}}'])
def test_a_state_of_another_form_is_an_empty_one(text, monkeypatch):
    monkeypatch.setattr(read, "pulumi_output", lambda *_: text)
    assert read._state(HostAddress("lab", None, {})) == State()


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


@pytest.mark.parametrize(
    "answer",
    [
        (429, {}),
        (403, {}),
        (500, {}),
        (503, {}),
        (200, {"items": [], "metadata": {"continue": "next"}}),
    ],
)
def test_a_list_that_the_server_does_not_give_whole_is_not_read(answer):
    with serving() as (api, url):
        api.answers |= {READS["namespaces"]: (200, {"items": []}), READS["nodes"]: answer}
        api.retry_after = "3600"
        look = seen(url)
    assert list(look.host.unreadable) == ["nodes"]
    found = [each for each in examine(look) if each.kind == "read access to"]
    (said,) = (each for each in found if "nodes" in each.name)
    assert ("may" in said.fix or "give this user" in said.fix) == (answer[0] == 403)


@pytest.mark.parametrize("kinds", [("services",), ()])
def test_a_vcluster_whose_way_in_could_not_be_read_is_not_broken(kinds):
    with serving() as (api, url), vcluster_secrets.serving() as (_, inside):
        api.answers |= vcluster(int(inside.rpartition(":")[2]), vcluster_secrets.data())
        secret = "/api/v1/namespaces/team-ml/secrets/vc-ml"
        api.answers[READS[kinds[0]].format("") if kinds else secret] = (403, {})
        sets = {"items": [{"metadata": {"name": "ml", "namespace": "team-ml"}}]}
        sets["items"][0] |= {"spec": {"replicas": 1}, "status": {"readyReplicas": 1}}
        api.answers[READS["statefulsets"].format("")] = (200, sets)
        look = seen(url)
    (found,) = [each for each in examine(look) if each.subject == "vCluster ml"]
    assert (found.level, found.check) == (Level.ADVISORY, "vcluster")
    assert "cannot be read" in found.cause


def test_a_vcluster_that_does_not_list_its_namespaces_is_read_all_the_same():
    with serving() as (api, url), vcluster_secrets.serving() as (tenants, inside):
        api.answers |= vcluster(int(inside.rpartition(":")[2]), vcluster_secrets.data())
        tenants.answers |= {path.format(""): (200, {"items": []}) for path in READS.values()}
        tenants.answers[READS["namespaces"]] = (403, {})
        look = seen(url)
    assert look.teams["ml"].inside.unread("namespaces")


def lists(times, wait, total_seconds=20.0):
    """What a server answers that puts a list off so many times, and how often it was asked."""
    with serving() as (api, url):
        asked = []

        def answer(_):
            asked.append(time.monotonic())
            api.answers["/api/v1/nodes"] = (429 if len(asked) < times else 200, answer)
            return {"items": [{"metadata": {"name": "a"}}]}

        api.answers["/api/v1/nodes"] = (429, answer)
        api.retry_after = wait
        client = Api.of_kubeconfig(kubeconfig(url), total_seconds=total_seconds)
        return client.lists({"nodes": "/api/v1/nodes"}, 1), asked


def test_what_is_put_off_is_asked_again_when_the_server_says():
    (found, refused), asked = lists(2, "1")
    assert ([*found], refused, len(asked)) == (["nodes"], {}, 3)
    assert all(later - sooner >= 1 for sooner, later in pairwise(asked))


@pytest.mark.parametrize("wait", ["3600", "60"])
def test_a_server_that_asks_for_more_time_than_there_is_is_not_waited_for(wait):
    (found, refused), asked = lists(9, wait)
    assert (found, len(asked)) == ({}, 1)
    assert str(refused["nodes"]) == BUSY


def test_a_host_that_stays_busy_is_no_unreached_host():
    """There is time left for the lists that it gives."""
    with serving() as (api, url):
        api.answers |= {path.format("").partition("?")[0]: (429, {}) for path in READS.values()}
        api.answers[READS["namespaces"]] = (200, {"items": []})
        host = Api.of_kubeconfig(kubeconfig(url), total_seconds=2.0)
        look = read_clusters(Source(Lab().look().settings, lambda: host))
    assert look.host.unreadable.keys() == READS.keys() - {"namespaces"}
