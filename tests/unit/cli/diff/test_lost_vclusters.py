"""A vCluster that is another one than the last update saw: known by its UID, and said by name."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import yaml

from kai_fleet.cluster.kube import identity
from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.probes import vcluster as probe
from kai_fleet.cluster.probes.wait import NotReadyError
from kai_fleet.names import IDENTITY, PROVIDERS, QUEUES
from kai_fleet.one_run import REMOVE_VARIABLE
from kai_fleet_cli.commands import updates
from kai_fleet_cli.diff import lost_vclusters
from kai_fleet_cli.doctor import read
from kai_fleet_cli.doctor.checks import examine
from kai_fleet_cli.doctor.read import Source
from kai_fleet_cli.plan import recorder
from kai_fleet_cli.recovery.state import KnownVcluster, State
from kai_fleet_policies.finding import Level
from kai_fleet_stack.settings.loading import load
from tests.unit.cli.doctor.doctor_cases import lab_of
from tests.unit.cli.doctor.doctor_samples import SETTINGS, Lab
from tests.unit.cli.teams.team_project import LAB
from tests.unit.components.cluster import vcluster_secrets
from tests.unit.components.cluster.canned_api import kubeconfig, serving
from tests.unit.components.vcluster.test_vcluster_kubeconfig import Found, good, waited

SECRET = "/api/v1/namespaces/team-ml/secrets/vc-ml"
SYSTEM = "/api/v1/namespaces/kube-system"


def state(uid="old", server="https://127.0.0.1:1", teams=("ml",)):
    """The state after an update of the lab, where ml's vCluster had that UID and server."""
    written = yaml.safe_load(LAB)["config"]
    settings = {key.removeprefix("kai-fleet:"): value for key, value in written.items()}
    resources = {}
    planned = recorder.record("lab", settings)
    inside = next(item.urn for item in planned if item.urn.endswith(f"{PROVIDERS}kubernetes::ml"))
    for item in planned:
        if item.name.endswith(IDENTITY) and item.name.removesuffix(IDENTITY) not in teams:
            continue  # no update has waited for it
        inputs = dict(item.inputs)
        if item.name == f"ml{IDENTITY}":
            place = inputs["environment"] | {"VCLUSTER_SERVER": server}
            inputs |= {"triggers": [uid], "environment": place}
        provider = f"{item.provider}::id" if item.provider else ""
        resources[item.urn] = {
            "urn": item.urn,
            "type": item.type,
            "parent": item.parent,
            "provider": provider,
            "inputs": inputs,
            "deletedWith": inside if item.type == QUEUES else "",
        }
    return State(resources)


def test_the_state_knows_which_vcluster_it_was():
    known = state("old", "https://10.0.0.5:30001")
    ml = known.vclusters["ml"]
    assert (ml.uid, ml.namespace, ml.server) == ("old", "team-ml", "https://10.0.0.5:30001")
    (item,) = lost_vclusters.summary_lines(lost_vclusters.lost_contents(known, {"ml": "new"}))
    assert (item.team, item.subject) == ("ml", "vCluster ml")
    assert "everything that was in the old one is lost: KAI v" in item.words
    assert "queues default, serve and train, and all that its users made. If there" in item.words


@pytest.mark.parametrize(("uid", "lost"), [("new", ["ml"]), ("old", [])])
def test_an_update_that_filled_another_one_says_what_was_lost(uid, lost):
    """Nobody could say it before: the namespace was gone, and with it the vCluster."""
    known = state("old")
    urn = next(urn for urn in known.resources if urn.endswith(f"::ml{IDENTITY}"))
    gone = SimpleNamespace(urn=urn.replace("::ml", "::nlp"), new=None)
    new = SimpleNamespace(urn=urn, new=SimpleNamespace(inputs={"triggers": [uid]}))
    found = lost_vclusters.summary_lines(
        lost_vclusters.refilled_contents(known, [gone, new]), advice=""
    )
    assert [item.team for item in found] == lost
    assert all(item.words.endswith("and all that its users made") for item in found)


def test_objects_of_the_teams_files_are_named():
    known = state()
    inside = next(urn for urn in known.resources if urn.endswith(f"{PROVIDERS}kubernetes::ml"))
    for kind, name in (("apps/v1:Deployment", "ml/demo/web"), ("core/v1:Pod", "nlp/default/a")):
        urn = f"urn:pulumi:lab::kai-fleet::kubernetes:{kind}::{name}"
        provider = f"{inside if name.startswith('ml') else inside.replace('::ml', '::nlp')}::id"
        item = {"urn": urn, "type": f"kubernetes:{kind}", "provider": provider}
        known.resources[urn] = item
    lost = lost_vclusters.lost_contents(known, {"ml": "new"})["ml"]
    assert ", Deployment demo/web, and all that its users made" in lost
    assert "Pod" not in lost


@pytest.mark.parametrize("uids", [{"ml": "old"}, {}, {"other": "new"}])
def test_the_same_one_and_one_that_does_not_answer_say_nothing(uids):
    assert lost_vclusters.lost_contents(state("old"), uids) == {}


@pytest.fixture
def clusters():
    """A host and ml's vCluster, whose address the last update saw."""
    with serving() as (host, url), vcluster_secrets.serving() as (inside, at):
        host.answers[SECRET] = (200, {"data": vcluster_secrets.data()})
        inside.answers[SYSTEM] = (200, {"metadata": {"uid": "new-1"}})
        source = Source(load(SETTINGS).settings, lambda: Api.of_kubeconfig(kubeconfig(url)))
        yield host, inside, source, {"ml": KnownVcluster("urn", "old", "team-ml", at)}


def test_each_vcluster_is_asked_for_nothing_but_its_uid(clusters):
    host, inside, source, known = clusters
    assert read.vcluster_uids(source, known) == {"ml": "new-1"}
    assert (host.asked, inside.asked) == ([("GET", SECRET)], [("GET", SYSTEM)])
    assert read.vcluster_uids(source, {}) == {}


@pytest.mark.parametrize(
    ("where", "path", "answer"),
    [
        ("host", SECRET, (404, {})),
        ("host", SECRET, (403, {})),
        ("host", SECRET, (429, {})),
        ("host", SECRET, (500, {})),
        ("host", SECRET, (200, {"data": {"config": "bm9uZQ=="}})),
        ("inside", SYSTEM, (404, {})),
        ("inside", SYSTEM, (401, {})),
        ("inside", SYSTEM, (503, {})),
        ("inside", SYSTEM, (200, b"<html>")),
        ("inside", SYSTEM, (200, {"metadata": {"uid": "a b"}})),
        ("inside", SYSTEM, (200, {"metadata": 3})),
    ],
)
def test_what_was_not_read_is_no_other_vcluster(clusters, where, path, answer):
    host, inside, source, known = clusters
    {"host": host, "inside": inside}[where].answers[path] = answer
    assert read.vcluster_uids(source, known) == {}


def test_neither_is_one_whose_address_another_has_now(clusters):
    _, _, source, known = clusters
    with vcluster_secrets.serving("nlp") as (_, at):
        assert read.vcluster_uids(source, {"ml": replace(known["ml"], server=at)}) == {}
    gone = replace(known["ml"], server="https://127.0.0.1:1")
    assert read.vcluster_uids(source, {"ml": gone}) == {}
    away = Source(source.settings, lambda: Api.of_kubeconfig(kubeconfig("http://127.0.0.1:1")))
    assert read.vcluster_uids(away, known) == {}


def test_one_that_hangs_delays_nobody(clusters, monkeypatch):
    _, inside, source, known = clusters
    inside.delay = 5.0
    assert identity.LOOK_SECONDS <= 3.0
    monkeypatch.setattr(identity, "LOOK_SECONDS", 0.2)
    assert read.vcluster_uids(source, known) == {}


def test_an_update_looks_at_it_and_a_file_that_is_refused_is_the_programs(clusters, monkeypatch):
    _, _, source, known = clusters
    monkeypatch.setattr(read, "source_of_stack", lambda _: source)
    (item,) = updates.lost_vcluster_lines("lab", state("old", known["ml"].server))
    assert item.team == "ml"
    assert updates.lost_vcluster_lines("lab", state("new-1", known["ml"].server)) == []

    def refused(_):
        raise updates.UserError("no such file")

    monkeypatch.setattr(read, "source_of_stack", refused)
    assert updates.lost_vcluster_lines("lab", state("old", known["ml"].server)) == []


def test_where_nobody_can_be_asked_only_the_teams_that_lose_nothing_else_wait(capsys):
    others = lost_vclusters.summary_lines({"ml": "KAI v0.16.8", "nlp": "KAI v0.9.3"})
    assert [item.team for item in updates.without_undecided("lab", others, ["nlp"])] == ["nlp"]
    out, err = capsys.readouterr()
    assert "vCluster ml is another one" in out and "nlp" not in out
    assert "the other teams go on. To agree: .venv/bin/fleet up --stack lab --yes ml" in err
    assert updates.without_undecided("lab", others, ["lab"]) == others
    assert capsys.readouterr() == ("", "")


def ill(lab):
    found = examine(replace(lab.look(), lost={"ml": "KAI v0.16.8 and all that its users made"}))
    return [finding for finding in found if finding.level is not Level.OK]


INSIDE = ("an absent queue", "no queue", "a full queue", "sharing is off")


@pytest.mark.parametrize("case", INSIDE)
def test_the_doctor_says_one_cause_and_nothing_that_follows_from_it(case):
    lab = lab_of(case)
    assert lab.ill()
    (finding,) = ill(lab)
    assert (finding.check, finding.path, finding.subject) == ("vcluster", "ml", "vCluster ml")
    assert "is another one than the last update saw" in finding.cause
    assert "KAI v0.16.8 and all that its users made" in finding.cause
    assert "which asks first: `make up STACK=lab`" in finding.fix


def test_the_doctor_says_it_first_and_what_is_on_the_host_too():
    lab = Lab()
    lab.ml = {"nodes": lab.ml["nodes"]}
    lab.host["storageclasses"] = []
    lab.host["daemonsets"] = []
    found = ill(lab)
    assert found[0].subject == "vCluster ml"
    assert {each.path for each in found[1:]} == {"host"}


def test_the_doctor_knows_it_from_state_and_vcluster(clusters):
    host, inside, source, known = clusters
    port = int(known["ml"].server.rpartition(":")[2])
    service = {"metadata": {"name": "ml", "namespace": "team-ml"}}
    service |= {"spec": {"type": "NodePort", "ports": [{"nodePort": port}]}}
    host.answers["/api/v1/services"] = (200, {"items": [service]})
    spaces = [{"metadata": {"name": "kube-system", "uid": "new-1"}}]
    inside.answers["/api/v1/namespaces"] = (200, {"items": spaces})
    access = {"type": "NodePort", "host": "127.0.0.1"}
    settings = load({**SETTINGS, "vcluster": {"access": access}}).settings
    for uid, lost in (("old", ["ml"]), ("new-1", [])):
        looked = replace(source, settings=settings, read_state=lambda uid=uid: state(uid))
        assert [*read.read_clusters(looked).lost] == lost
    inside.answers["/api/v1/namespaces"] = (429, {})
    looked = replace(source, settings=settings, read_state=lambda: state("old"))
    assert read.read_clusters(looked).lost == {}


def other():
    return {**good(), "cluster": "f00d"}


def test_a_program_leaves_another_vcluster_alone_until_somebody_agrees(monkeypatch, caplog):
    refused = Found(other(), waited("3"))
    assert refused.number == "4", "the wait runs, and refuses"
    environment = refused.engine.inputs["ml-ready", "Command"]["environment"]
    assert "vCluster ml is another one than the last update saw" in environment["VCLUSTER_REFUSAL"]
    assert f"for plain pulumi {REMOVE_VARIABLE}=ml" in environment["VCLUSTER_REFUSAL"]
    for named in ("dev, ml", "lab"):
        monkeypatch.setenv(REMOVE_VARIABLE, named)
        agreed = Found(other(), waited("3"))
        assert agreed.number == "4"
        assert not agreed.engine.inputs["ml-ready", "Command"]["environment"]["VCLUSTER_REFUSAL"]


@pytest.mark.parametrize("answer", [good(), {**good(), "cluster": "0d9f"}])
def test_the_same_vcluster_and_a_silent_one_are_not_waited_for_again(answer):
    found = Found(answer, waited("3"))
    assert found.number == "3"
    assert not found.engine.inputs["ml-ready", "Command"]["environment"]["VCLUSTER_REFUSAL"]


def test_a_preview_warns_and_shows_what_an_agreed_update_makes_anew(monkeypatch, caplog):
    found = Found(other(), waited("3"), preview=True)
    assert found.cluster == "0d9f"
    assert "vCluster ml is another one" in caplog.text
    monkeypatch.setenv(REMOVE_VARIABLE, "ml")
    assert Found(other(), waited("3"), preview=True).cluster == "f00d"


def test_a_wait_that_is_to_refuse_asks_no_cluster(monkeypatch):
    for key in ("NAME", "NAMESPACE", "ACCESS"):
        monkeypatch.setenv(f"VCLUSTER_{key}", "ml")
    monkeypatch.setenv("VCLUSTER_REFUSAL", "vCluster ml is another one")
    monkeypatch.setattr(probe, "cluster", lambda: pytest.fail("it was asked"))
    with pytest.raises(NotReadyError, match="vCluster ml is another one"):
        probe.wait()


def test_an_update_that_met_another_one_says_that_the_old_one_is_lost(caplog):
    before = json.dumps({"server": "https://1.2.3.4:443", "uid": "before"})
    known = waited("3")
    step = next(item for item in known.values() if "stdout" in item["outputs"])
    step["outputs"]["stdout"] = before
    Found(good(), known)
    assert "vCluster ml is another one than the last update saw: everything that was" in caplog.text
