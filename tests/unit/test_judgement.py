"""What becomes of what a killed run had begun: taken up, uninstalled, unlocked, or left alone."""

from __future__ import annotations

import datetime
from contextlib import ExitStack

import pytest

from fleet.recovery.judgement import Judge
from fleet.recovery.live_objects import Cluster, Live, Unanswered
from fleet.recovery.state import RELEASE, Operation, State

HOST = "urn:pulumi:s::kai-fleet::kai-fleet:index:Platform$pulumi:providers:kubernetes::host"
INSIDE = (
    "urn:pulumi:s::kai-fleet::kai-fleet:index:Team$kai-fleet:index:VirtualCluster"
    "$pulumi:providers:kubernetes::ml"
)
NOW = datetime.datetime(2026, 11, 21, 12, tzinfo=datetime.UTC)
BEFORE = NOW - datetime.timedelta(hours=1)


def operation(begun="creating", type_="kubernetes:core/v1:Namespace", provider=HOST, **inputs):
    inputs = inputs or {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "team-ml", "labels": {"kai-fleet/team": "ml"}},
    }
    name = "urn:pulumi:s::kai-fleet::kubernetes:x::thing"
    return Operation(
        begun, {"urn": name, "type": type_, "inputs": inputs, "provider": f"{provider}::id"}
    )


def release(begun="creating"):
    return operation(begun, RELEASE, name="ml", namespace="team-ml", values={})


NAMESPACE = {
    "urn": "urn:ns",
    "type": "kubernetes:core/v1:Namespace",
    "id": "team-ml",
    "provider": f"{HOST}::id",
}


class Fake:
    """A cluster that has this."""

    def __init__(self, live=None, status=("absent", 0), silent=False):
        self.live, self.status, self.silent = live, status, silent
        self.unlocked = []

    def object(self, inputs, namespace, name):
        if self.silent:
            raise Unanswered("it does not answer")
        return self.live

    def release(self, namespace, name):
        return self.status

    def unlock(self, *what):
        self.unlocked.append(what)


def judged(monkeypatch, cluster, what, *resources, since=None):
    monkeypatch.setattr("fleet.recovery.judgement.Cluster", lambda *_: cluster)
    now = State({"deployment": {"resources": list(resources)}})
    providers = {HOST: {}, INSIDE: {}}
    said = []
    judge = Judge(now, lambda: providers, ExitStack(), since, said.append)
    judge.decide(what)
    return judge.verdict


def live(by_pulumi=True, made=NOW, label="ml"):
    return Live(
        by_pulumi,
        made,
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "team-ml", "labels": {"kai-fleet/team": label, "more": "x"}},
        },
    )


def test_what_the_state_says_was_begun_and_is_there_is_taken_up(monkeypatch):
    assert judged(monkeypatch, Fake(live()), operation()).adopted


@pytest.mark.parametrize(
    "found", [None, live(by_pulumi=False), live(label="other")], ids=["absent", "kubectl", "other"]
)
def test_what_is_not_ours_is_left_alone(monkeypatch, found):
    assert not judged(monkeypatch, Fake(found), operation()).decided


def test_without_the_states_word_only_what_was_made_while_runs_failed_is_ours(monkeypatch):
    assert judged(monkeypatch, Fake(live(made=NOW)), operation(), since=BEFORE).adopted
    assert not judged(monkeypatch, Fake(live(made=BEFORE)), operation(), since=NOW).decided


def test_what_is_in_our_own_namespace_is_ours(monkeypatch):
    quota = operation(
        type_="kubernetes:core/v1:ResourceQuota",
        apiVersion="v1",
        kind="ResourceQuota",
        metadata={"name": "gpus", "namespace": "team-ml"},
    )
    there = Live(
        True,
        BEFORE,
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "gpus", "namespace": "team-ml"},
        },
    )
    assert judged(monkeypatch, Fake(there), quota, NAMESPACE, since=NOW).adopted
    assert not judged(monkeypatch, Fake(there), quota, since=NOW).decided


def test_an_installed_release_is_taken_up_and_half_a_one_is_uninstalled(monkeypatch):
    assert judged(monkeypatch, Fake(status=("deployed", 1)), release(), NAMESPACE).adopted
    for status in ("pending-install", "failed", "uninstalling"):
        verdict = judged(monkeypatch, Fake(status=(status, 1)), release(), NAMESPACE)
        assert verdict.half_made and not verdict.adopted


def test_a_release_in_a_namespace_of_somebody_else_is_left_alone(monkeypatch):
    assert not judged(monkeypatch, Fake(status=("deployed", 1)), release()).decided
    assert not judged(monkeypatch, Fake(status=("failed", 1)), release()).decided


def test_a_lock_of_helm_is_taken_off(monkeypatch):
    cluster = Fake(status=("pending-upgrade", 4))
    known = {**release().resource}
    verdict = judged(monkeypatch, cluster, release("updating"), known, NAMESPACE)
    assert cluster.unlocked == [("team-ml", "ml", 4)]
    assert verdict.unlocked and not verdict.gone


def test_a_release_that_was_uninstalled_leaves_the_state(monkeypatch):
    verdict = judged(monkeypatch, Fake(), release("deleting"), {**release().resource})
    assert verdict.gone


def test_a_step_that_only_waits_is_simply_done_again(monkeypatch):
    command = operation(type_="command:local:Command")
    assert not judged(monkeypatch, Fake(live()), command).decided


def test_a_silent_host_stops_the_update_and_a_silent_vcluster_does_not(monkeypatch):
    assert judged(monkeypatch, Fake(silent=True), operation()).unanswered
    assert not judged(monkeypatch, Fake(silent=True), operation(provider=INSIDE)).unanswered


def test_a_state_takes_up_a_release_with_the_inputs_that_it_had():
    state = State({"deployment": {"resources": []}})
    state.adopt(release())
    (adopted,) = state.resources
    assert adopted["id"] == "team-ml/ml"
    assert adopted["outputs"]["name"] == "ml"
    assert adopted["outputs"]["__inputs"]["plaintext"]


def test_a_release_with_secrets_is_taken_up_without_writing_them_down():
    state = State({"deployment": {"resources": []}})
    state.adopt(operation(type_=RELEASE, name="ml", namespace="team-ml", values={"a": "[secret]"}))
    assert "outputs" not in state.resources[0]


def test_a_cluster_is_reached_by_a_content_a_path_or_the_environment(tmp_path, monkeypatch):
    text = "\n".join(
        [
            "apiVersion: v1",
            "kind: Config",
            "current-context: a",
            "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:9'}}]",
            "contexts: [{name: a, context: {cluster: a}}, {name: b, context: {cluster: a}}]",
            "users: []",
        ]
    )
    file = tmp_path / "config"
    file.write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(file))
    with ExitStack() as stack:
        for given in ({"kubeconfig": text}, {"kubeconfig": str(file)}, {"context": "b"}):
            cluster = Cluster({"context": "b"} | given, stack)
            with pytest.raises(Unanswered, match="does not answer"):
                cluster.release("team-ml", "ml")
        with pytest.raises(Unanswered, match="cannot be used"):
            Cluster({"context": "nosuch"}, stack)


def test_a_crd_is_known_again_though_the_sdk_spells_its_extensions_otherwise():
    """Else one that a killed run made would stand in the way for good."""
    now = datetime.datetime.now(datetime.UTC)
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    live = Live(True, now, {"spec": {"versions": [{"schema": schema, "served": True}]}})
    given = {"type": "object", "x_kubernetes_preserve_unknown_fields": True}
    assert live.has({"spec": {"versions": [{"schema": given}]}})
    assert not live.has({"spec": {"versions": [{"schema": {**given, "type": "string"}}]}})
