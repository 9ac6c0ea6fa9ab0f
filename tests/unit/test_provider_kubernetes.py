"""The Kubernetes stand-in over gRPC, against a fake API server."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from pulumi.runtime.proto import provider_pb2
from pulumi.runtime.rpc import UNKNOWN

from sandbox.providers import objects
from sandbox.providers.kubernetes import KubernetesStandIn
from tests.unit.standin_harness import (
    Driver,
    FakeApi,
    Json,
    Secret,
    driven,
    fake_api,
    kubeconfig,
)

NAMESPACE = "kubernetes:core/v1:Namespace"
SECRET = "kubernetes:core/v1:Secret"
QUEUE = "kubernetes:scheduling.run.ai/v2:Queue"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[FakeApi]:
    with fake_api(tmp_path) as found:
        yield found


@pytest.fixture
def driver(api: FakeApi) -> Iterator[Driver]:
    with driven(KubernetesStandIn) as found:
        found.token = NAMESPACE
        found.configure(kubeconfig=kubeconfig(api.url, api.authority))
        yield found


def namespace(name: str | None = "n", **metadata: Any) -> Json:
    named = {"name": name} if name else {}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {**named, **metadata}}


def queue(name: str = "q") -> Json:
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"priority": 100},
    }


def made(driver: Driver, inputs: Json) -> tuple[str, Json, Json]:
    """Checks and creates, as the engine does: the id, the checked inputs, the state."""
    checked, failures = driver.check(inputs)
    assert failures == []
    resource_id, state = driver.create(checked)
    return resource_id, checked, state


def test_names_and_namespaces_are_filled_in(driver: Driver) -> None:
    named, _ = driver.check(namespace(None))
    assert named["metadata"]["name"].startswith("it-")
    assert len(named["metadata"]["name"]) == len("it-") + 8
    assert named["metadata"]["annotations"] == {"pulumi.com/autonamed": "true"}
    assert "namespace" not in named["metadata"]
    # The same name at the next run, though the program still gives none.
    assert driver.check(namespace(None), named)[0] == named

    driver.token = SECRET
    placed, _ = driver.check({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})
    assert placed["metadata"] == {"name": "s", "namespace": "default"}


def test_a_declared_crd_tells_its_kinds_scope_before_it_exists(driver: Driver) -> None:
    driver.token = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
    spec = {"group": "scheduling.run.ai", "scope": "Cluster", "names": {"kind": "Queue"}}
    driver.check(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "queues.scheduling.run.ai"},
            "spec": spec,
        }
    )
    driver.token = QUEUE
    assert driver.check(queue())[0]["metadata"] == {"name": "q"}


def test_create_update_and_no_change(driver: Driver, api: FakeApi) -> None:
    resource_id, checked, state = made(driver, namespace(labels={"a": "1"}))
    assert resource_id == "n"
    assert driver.diff(state, checked).changes == provider_pb2.DiffResponse.DIFF_NONE

    wanted, _ = driver.check(namespace(labels={"a": "2"}), checked)
    answer = driver.diff(state, wanted)
    assert list(answer.detailedDiff) == ["metadata.labels.a"]
    assert not answer.replaces
    driver.update(resource_id, state, wanted)
    [take_over, applied] = api.writes("PATCH")
    # The create's fields go to the manager that applies, else an apply could not remove them.
    moved = take_over[2][0]["value"]
    assert [(m["manager"], m["operation"]) for m in moved] == [(state["__fieldManager"], "Apply")]
    assert applied[1]["fieldManager"] == state["__fieldManager"]
    assert applied[1]["force"] == "false"
    assert api.objects["/api/v1/namespaces/n"]["metadata"]["labels"] == {"a": "2"}


def test_another_name_replaces_and_the_same_name_is_deleted_first(driver: Driver) -> None:
    _, checked, state = made(driver, namespace())
    answer = driver.diff(state, driver.check(namespace("m"), checked)[0])
    assert list(answer.replaces) == ["metadata.name"]
    assert not answer.deleteBeforeReplace

    driver.token = SECRET
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": "a"}
    _, checked, state = made(driver, secret)
    answer = driver.diff(state, driver.check({**secret, "type": "b"}, checked)[0])
    assert list(answer.replaces) == ["type"]
    assert answer.deleteBeforeReplace


def test_what_exists_is_not_taken_over(driver: Driver) -> None:
    made(driver, namespace())
    text = driver.fails(driver.create, namespace())
    assert text.startswith(
        f'resource "{driver.urn()}" was not successfully created by the Kubernetes API server: '
        'things "n" already exists'
    )
    assert "use `pulumi import`" in text


def test_a_preview_changes_nothing_and_the_server_is_asked(driver: Driver, api: FakeApi) -> None:
    resource_id, state = driver.create(namespace(), preview=True)
    assert resource_id == ""
    assert state["metadata"]["name"] == "n"
    assert api.objects == {}
    api.failures = [(422, "Invalid", "metadata.name: Invalid value")]
    assert "Invalid value" in driver.fails(driver.create, namespace(), preview=True)


@pytest.mark.parametrize(
    "failure",
    [
        (404, "NotFound", 'namespaces "later" not found'),
        (409, "AlreadyExists", "to be replaced"),
        (403, "Forbidden", "no dry run for you"),
        (400, "BadRequest", 'admission webhook "a.test" does not support dry run'),
    ],
)
def test_what_a_preview_cannot_know_is_no_error(
    driver: Driver, api: FakeApi, failure: tuple[int, str, str]
) -> None:
    api.failures = [failure]
    assert driver.create(namespace(), preview=True)[1] == namespace()


def test_unknown_inputs_and_unknown_kinds_preview_as_given(driver: Driver) -> None:
    unknown = namespace(labels={"a": UNKNOWN})
    assert driver.create(unknown, preview=True) == ("", unknown)
    driver.token = QUEUE
    assert driver.create(queue(), preview=True) == ("", queue())


def test_a_create_waits_for_its_kind(
    driver: Driver, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.token = QUEUE
    guessed, _ = driver.check(queue())
    assert guessed["metadata"]["namespace"] == "default"
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            api.resources["/apis/scheduling.run.ai/v2"] = [("queues", "Queue", False)]

    monkeypatch.setattr(objects.time, "sleep", pause)
    resource_id, state = driver.create(guessed)
    assert pauses == [1, 2, 4]
    # Cluster-scoped after all, so the guessed namespace is gone.
    assert resource_id == "q"
    assert "namespace" not in state["metadata"]
    assert "no matches for kind" in " ".join(driver.engine.messages)
    checked, _ = driver.check(queue(), guessed)
    assert driver.diff(state, checked).changes == provider_pb2.DiffResponse.DIFF_NONE


def test_a_kind_that_never_comes_is_named(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects.time, "sleep", lambda seconds: None)
    driver.token = QUEUE
    text = driver.fails(driver.create, queue())
    assert 'no matches for kind "Queue" in version "scheduling.run.ai/v2"' in text
    assert "Verify that any required CRDs have been created" in text


def test_a_webhook_that_does_not_answer_fails_a_create_at_once(
    driver: Driver, api: FakeApi
) -> None:
    api.failures = [(500, "InternalError", 'failed calling webhook "queues.scheduling.run.ai"')]
    assert "failed calling webhook" in driver.fails(driver.create, namespace())


def test_what_cannot_change_is_told_by_the_server(driver: Driver, api: FakeApi) -> None:
    """No replacement by itself: the official plugin makes none of a RuntimeClass's handler."""
    driver.token = "kubernetes:node.k8s.io/v1:RuntimeClass"
    given = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "other"}
    resource_id, checked, state = made(driver, {**given, "metadata": {"name": "nvidia"}})
    wanted, _ = driver.check({**checked, "handler": "nvidia"}, checked)
    assert not driver.diff(state, wanted).replaces
    why = (
        'RuntimeClass.node.k8s.io "nvidia" is invalid: '
        'handler: Invalid value: "nvidia": field is immutable'
    )
    for preview in (True, False):
        api.objects["/apis/node.k8s.io/v1/runtimeclasses/nvidia"]["metadata"]["managedFields"] = []
        api.failures = [(422, "Invalid", why)]
        text = driver.fails(driver.update, resource_id, state, wanted, preview=preview)
        assert text == (
            'the Kubernetes API server reported that "nvidia" failed to fully initialize '
            f"or become live: {why}"
        )


def test_secrets_stay_secret_in_the_state(driver: Driver, api: FakeApi) -> None:
    driver.token = SECRET
    inputs = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "default"},
        "stringData": {"token": Secret("hidden")},
    }
    path = "/api/v1/namespaces/default/secrets/s"
    resource_id, checked, state = made(driver, inputs)
    assert api.objects[path]["stringData"] == {"token": "hidden"}
    assert checked["stringData"] == Secret({"token": "hidden"})
    assert state["__inputs"]["stringData"] == Secret({"token": "hidden"})

    encoded = base64.b64encode(b"hidden").decode()
    del api.objects[path]["stringData"]
    api.objects[path]["data"] = {"token": encoded}
    found, state, read = driver.read(resource_id, state, checked)
    assert found == "default/s"
    assert state["data"] == Secret({"token": encoded})
    assert read["data"] == Secret({"token": encoded})
    assert driver.diff(state, checked).changes == provider_pb2.DiffResponse.DIFF_NONE

    api.objects[path]["data"] = {"token": "Y2hhbmdlZA=="}
    _, state, read = driver.read(resource_id, state, checked)
    assert isinstance(read["data"], Secret)
    answer = driver.diff(state, checked)
    assert list(answer.detailedDiff) == ["data.token"]


def test_drift_shows_after_a_refresh(driver: Driver, api: FakeApi) -> None:
    resource_id, checked, state = made(driver, namespace(labels={"a": "1"}))
    api.objects["/api/v1/namespaces/n"]["metadata"]["labels"] = {"a": "by hand", "b": "2"}
    _, state, inputs = driver.read(resource_id, state, checked)
    assert inputs["metadata"]["labels"] == {"a": "by hand"}
    assert list(driver.diff(state, checked).detailedDiff) == ["metadata.labels.a"]


def test_what_is_gone_reads_as_gone(driver: Driver, api: FakeApi) -> None:
    resource_id, checked, state = made(driver, namespace())
    api.objects.clear()
    assert driver.read(resource_id, state, checked)[0] == ""
    driver.delete(resource_id, state)


def test_an_object_of_somebody_else_is_read_whole(driver: Driver, api: FakeApi) -> None:
    made(driver, namespace(labels={"a": "1"}))
    resource_id, state, inputs = driver.read("n", {}, {})
    assert resource_id == "n"
    assert inputs == namespace(labels={"a": "1"})
    assert "managedFields" not in state["metadata"]


def test_a_delete_that_hangs_names_what_holds_it(driver: Driver, api: FakeApi) -> None:
    resource_id, _, state = made(driver, namespace())
    live = api.objects["/api/v1/namespaces/n"]
    live["metadata"]["finalizers"] = ["example.com/never"]
    live["status"] = {
        "conditions": [{"type": "Left", "status": "True", "message": "Some resources remain: pods"}]
    }
    text = driver.fails(driver.delete, resource_id, state, timeout=0.3)
    assert text == "'n' timed out waiting to be Ready"
    heard = " ".join(driver.engine.messages)
    assert "example.com/never" in heard
    assert "Some resources remain: pods" in heard


def test_a_conflict_names_the_way_out(driver: Driver, api: FakeApi) -> None:
    resource_id, _, state = made(driver, namespace())
    api.objects["/api/v1/namespaces/n"]["metadata"]["managedFields"] = [
        {"manager": "other", "operation": "Update"}
    ]
    api.failures = [(409, "Conflict", 'conflict with "other": .metadata.labels.a')]
    text = driver.fails(driver.update, resource_id, state, namespace(labels={"a": "1"}))
    assert "server-side apply field conflict detected" in text
    assert 'had an apply conflict: conflict with "other": .metadata.labels.a' in text


def test_an_unreachable_cluster_previews_and_fails_in_the_plugins_words(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = kubeconfig("https://127.0.0.1:1", api.authority)
    with driven(KubernetesStandIn) as driver:
        driver.token = NAMESPACE
        driver.configure(kubeconfig=gone)
        assert driver.create(namespace(), preview=True)[1] == namespace()
        refused = (
            "unable to load schema information from the API server: "
            'Get "https://127.0.0.1:1/openapi/v2?timeout=32s": '
            "dial tcp 127.0.0.1:1: connect: connection refused"
        )
        assert driver.fails(driver.create, namespace()) == (
            f"configured Kubernetes cluster is unreachable: {refused}"
        )
        read, deleted = (
            driver.fails(driver.read, "n", {}, {}),
            driver.fails(driver.delete, "n", {}),
        )
        assert read.startswith("failed to read resource state due to unreachable cluster.")
        for text in (read, deleted):
            assert text.endswith(
                'the PULUMI_K8S_DELETE_UNREACHABLE environment variable set to "true"'
            )
        driver.token = "kubernetes:helm.sh/v3:Release"
        text = driver.fails(driver.delete, "ns/r", {"name": "r", "namespace": "ns"})
        assert (
            text
            == f"can't delete Helm Release with unreachable cluster. Reason: {json.dumps(refused)}"
        )

    monkeypatch.setenv("PULUMI_K8S_DELETE_UNREACHABLE", "true")
    with driven(KubernetesStandIn) as driver:
        driver.token = NAMESPACE
        driver.configure(kubeconfig=gone)
        assert driver.read("n", {}, {})[0] == ""
        driver.delete("n", {})
        assert any("`deleteUnreachable` option is enabled" in it for it in driver.engine.messages)


def test_a_cluster_that_is_not_the_sandbox_is_refused(api: FakeApi, tmp_path: Path) -> None:
    other = trustme.CA(organization_name="somebody")
    authority = tmp_path / "other.crt"
    authority.write_bytes(other.cert_pem.bytes())
    for config in (kubeconfig(api.url, authority), kubeconfig(api.url)):
        with driven(KubernetesStandIn) as driver:
            text = driver.fails(driver.configure, kubeconfig=config)
            assert f"the cluster at {api.url} is not the sandbox" in text
            assert "pulumi plugin install resource kubernetes 4.34.2" in text


def test_what_the_stand_in_does_not_serve_names_the_official_plugin(driver: Driver) -> None:
    driver.token = "kubernetes:core/v1:NamespacePatch"
    text = driver.fails(driver.check, {})
    assert "`pulumi plugin install resource kubernetes 4.34.2`" in text


ONE, TWO = kubeconfig("https://one"), kubeconfig("https://two")


@pytest.mark.parametrize(
    ("old", "new", "replaces"),
    [
        ({"kubeconfig": ONE}, {"kubeconfig": ONE + "# rotated\n"}, []),
        ({"kubeconfig": ONE}, {"kubeconfig": TWO}, ["kubeconfig"]),
        ({"kubeconfig": ONE}, {"kubeconfig": UNKNOWN}, ["kubeconfig"]),
        ({"kubeconfig": ONE, "clusterIdentifier": "a"}, {"kubeconfig": TWO}, ["kubeconfig"]),
        (
            {"kubeconfig": ONE, "clusterIdentifier": "a"},
            {"kubeconfig": Secret(TWO), "clusterIdentifier": "a"},
            [],
        ),
        (
            {"kubeconfig": ONE, "clusterIdentifier": "a"},
            {"kubeconfig": UNKNOWN, "clusterIdentifier": "a"},
            [],
        ),
        (
            {"kubeconfig": ONE, "clusterIdentifier": "a"},
            {"kubeconfig": ONE, "clusterIdentifier": "b"},
            ["clusterIdentifier"],
        ),
    ],
)
def test_which_provider_settings_replace_everything(
    driver: Driver, old: Json, new: Json, replaces: list[str]
) -> None:
    answer = driver.diff_config(old, new)
    assert answer.changes == provider_pb2.DiffResponse.DIFF_SOME
    assert list(answer.replaces) == replaces


def test_the_kubeconfig_may_be_a_path_and_mistakes_have_words(api: FakeApi, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(kubeconfig(api.url, api.authority))
    with driven(KubernetesStandIn) as driver:
        driver.token = NAMESPACE
        driver.configure(kubeconfig=str(path))
        assert driver.create(namespace())[0] == "n"
    with driven(KubernetesStandIn) as driver:
        driver.token = NAMESPACE
        driver.configure(kubeconfig=str(path), context="other")
        assert 'context "other" does not exist' in driver.fails(driver.create, namespace())
