"""What becomes of what a killed run had begun: imported, uninstalled, rolled back, left alone."""

import datetime

import pytest
from kai_fleet_cli.recovery.interrupted import Judge
from kai_fleet_cli.recovery.live_cluster import LiveCluster, LiveObject

from kai_fleet.releases.helm_record import Forged
from kai_fleet_cli.cluster_reader import NoAnswerError
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery.state import RELEASE, ExportedState, Operation

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

    def __init__(self, live=None, status="absent", silent=False, forged=()):
        self.live, self.status, self.silent, self.records = live, status, silent, forged

    def object(self, inputs, namespace, name):
        if self.silent:
            raise NoAnswerError("it does not answer")
        return self.live

    def release(self, namespace, name):
        return self.status

    def forged(self, namespace, name):
        return list(self.records)


def judged(monkeypatch, cluster, what, *resources, since=None):
    monkeypatch.setattr("kai_fleet_cli.recovery.interrupted.LiveCluster", lambda *_: cluster)
    monkeypatch.setattr("kai_fleet_cli.recovery.interrupted._PATIENCE_SECONDS", 0.0)
    providers = [{"urn": urn, "type": "pulumi:providers:kubernetes"} for urn in (HOST, INSIDE)]
    now = ExportedState({"resources": [*providers, *resources]})
    judge = Judge(now, since, lambda _: None)
    judge.decide(what)
    return judge


def live(by_pulumi=True, made=NOW, label="ml"):
    return LiveObject(
        by_pulumi,
        made,
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "team-ml", "labels": {"kai-fleet/team": label, "more": "x"}},
        },
    )


def test_what_the_state_says_was_begun_and_is_there_is_taken_up(monkeypatch):
    assert judged(monkeypatch, Fake(live()), operation()).imports


def test_what_is_written_onto_a_namespace_of_others_is_simply_written_again(monkeypatch):
    patch = operation(type_="kubernetes:core/v1:NamespacePatch")
    assert not judged(monkeypatch, Fake(live()), patch).decided


@pytest.mark.parametrize(
    "found", [None, live(by_pulumi=False), live(label="other")], ids=["absent", "kubectl", "other"]
)
def test_what_is_not_ours_is_left_alone(monkeypatch, found):
    assert not judged(monkeypatch, Fake(found), operation()).decided


def test_without_the_states_word_only_what_was_made_while_runs_failed_is_ours(monkeypatch):
    assert judged(monkeypatch, Fake(live(made=NOW)), operation(), since=BEFORE).imports
    assert not judged(monkeypatch, Fake(live(made=BEFORE)), operation(), since=NOW).decided


def test_what_is_in_our_own_namespace_is_ours(monkeypatch):
    quota = operation(
        type_="kubernetes:core/v1:ResourceQuota",
        apiVersion="v1",
        kind="ResourceQuota",
        metadata={"name": "gpus", "namespace": "team-ml"},
    )
    there = LiveObject(
        True,
        BEFORE,
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "gpus", "namespace": "team-ml"},
        },
    )
    assert judged(monkeypatch, Fake(there), quota, NAMESPACE, since=NOW).imports
    assert not judged(monkeypatch, Fake(there), quota, since=NOW).decided


def commands(verdict):
    return [str(remedy) for remedy in verdict.remedies]


@pytest.mark.parametrize("status", ["deployed", "pending-install", "failed", "uninstalling"])
def test_a_release_that_is_not_in_the_state_is_uninstalled(monkeypatch, status):
    verdict = judged(monkeypatch, Fake(status=status), release(), NAMESPACE)
    assert commands(verdict) == ["helm uninstall ml --namespace team-ml"]


def test_a_release_in_a_namespace_of_somebody_else_is_left_alone(monkeypatch):
    for status in ("deployed", "failed"):
        assert not judged(monkeypatch, Fake(status=status), release()).decided


def test_a_cut_off_upgrade_is_rolled_back_and_that_of_kai_uninstalled(monkeypatch):
    known = {**release().resource}
    cluster = Fake(status="pending-upgrade")
    verdict = judged(monkeypatch, cluster, release("updating"), known, NAMESPACE)
    assert commands(verdict) == ["helm rollback ml --namespace team-ml"]
    kai = operation("updating", RELEASE, name="kai-scheduler", namespace="kai-scheduler", values={})
    verdict = judged(monkeypatch, cluster, kai, {**kai.resource}, NAMESPACE)
    assert commands(verdict) == ["helm uninstall kai-scheduler --namespace kai-scheduler"]


def test_the_new_release_of_a_cut_off_replacement_is_uninstalled(monkeypatch):
    """The state has the old one, which is gone, and the update would be told that it exists."""
    known = {**release().resource, "pendingReplacement": True}
    (left,) = ExportedState({"resources": [known]}).operations()
    assert left.kind == "replacing"
    verdict = judged(monkeypatch, Fake(status="deployed"), left, known, NAMESPACE)
    assert commands(verdict) == ["helm uninstall ml --namespace team-ml"]
    assert not judged(monkeypatch, Fake(), left, known, NAMESPACE).decided
    begun = release("creating")  # the same, killed a moment earlier
    verdict = judged(monkeypatch, Fake(status="deployed"), begun, known, NAMESPACE)
    assert commands(verdict) == ["helm uninstall ml --namespace team-ml"]


def test_a_release_that_is_there_as_a_whole_is_left_to_the_update(monkeypatch):
    for begun, status in (("updating", "deployed"), ("updating", "failed"), ("deleting", "absent")):
        known = {**release().resource}
        assert not judged(monkeypatch, Fake(status=status), release(begun), known).decided


def test_a_step_that_only_waits_is_simply_done_again(monkeypatch):
    command = operation(type_="command:local:Command")
    assert not judged(monkeypatch, Fake(live()), command).decided


def test_a_silent_host_stops_the_update_and_a_silent_vcluster_does_not(monkeypatch):
    assert judged(monkeypatch, Fake(silent=True), operation()).unanswered
    assert not judged(monkeypatch, Fake(silent=True), operation(provider=INSIDE)).unanswered


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
    for given in ({"kubeconfig": text}, {"kubeconfig": str(file)}, {"context": "b"}):
        cluster = LiveCluster({"context": "b"} | given)
        with pytest.raises(NoAnswerError, match="does not answer"):
            cluster.release("team-ml", "ml")
    with pytest.raises(NoAnswerError, match="has no context nosuch"):
        LiveCluster({"context": "nosuch"})


def test_a_crd_is_known_again_though_the_sdk_spells_its_extensions_otherwise():
    """Else one that a killed run made would stand in the way for good."""
    now = datetime.datetime.now(datetime.UTC)
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    live = LiveObject(True, now, {"spec": {"versions": [{"schema": schema, "served": True}]}})
    given = {"type": "object", "x_kubernetes_preserve_unknown_fields": True}
    assert live.has({"spec": {"versions": [{"schema": given}]}})
    assert not live.has({"spec": {"versions": [{"schema": {**given, "type": "string"}}]}})


def of_vcluster(begun="updating"):
    """A team's vCluster, whose record stands where its tenant may write."""
    found = dict(release(begun).resource)
    found["urn"] = f"urn:pulumi:s::kai-fleet::kai-fleet:index:VirtualCluster${RELEASE}::ml-release"
    return Operation(begun, found)


def test_of_a_vclusters_release_no_hook_is_run(monkeypatch):
    for status, verb in (("pending-upgrade", "rollback"), ("uninstalling", "uninstall")):
        what = of_vcluster()
        verdict = judged(monkeypatch, Fake(status=status), what, dict(what.resource), NAMESPACE)
        assert commands(verdict) == [f"helm {verb} ml --namespace team-ml --no-hooks"]


def test_what_a_tenant_wrote_into_helms_record_is_not_carried_out(monkeypatch):
    """A record that says pending-upgrade would have had it rolled back: to what it says."""
    what = of_vcluster()
    cluster = Fake(status="pending-upgrade", forged=[Forged("sh.helm.release.v1.ml.v9", "lies")])
    with pytest.raises(UserError, match=r"delete secret sh\.helm\.release\.v1\.ml\.v9") as why:
        judged(monkeypatch, cluster, what, dict(what.resource), NAMESPACE)
    assert "Nothing was done" in str(why.value)
