"""The Kubernetes stand-in over gRPC, against a fake API server."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from provider import wire
from provider.protocol import provider_pb2
from provider.wire import UNKNOWN, Secret
from sandbox.providers import objects
from sandbox.providers.kubernetes import KubernetesPlugin
from tests.unit.provider_harness import Driver, FakeApi, Json, driven, fake_api, kubeconfig

NAMESPACE = "kubernetes:core/v1:Namespace"
SECRET = "kubernetes:core/v1:Secret"
QUEUE = "kubernetes:scheduling.run.ai/v2:Queue"


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with fake_api() as found:
        yield found


@pytest.fixture
def driver(api: FakeApi) -> Iterator[Driver]:
    with driven(KubernetesPlugin) as found:
        found.token = NAMESPACE
        found.configure(kubeconfig=kubeconfig(api.url))
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
    assert text.startswith("Namespace n was not created; the API server says:")
    assert '"n" already exists' in text
    assert f"pulumi import {NAMESPACE}" in text


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
        (500, "InternalError", "failed calling webhook: connection refused"),
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


def test_a_create_waits_for_its_kind_and_for_its_webhook(driver: Driver, api: FakeApi) -> None:
    driver.token = QUEUE
    guessed, _ = driver.check(queue())
    assert guessed["metadata"]["namespace"] == "default"
    api.failures = [(500, "InternalError", 'failed calling webhook "queues.scheduling.run.ai"')]

    api.resources["/apis/scheduling.run.ai/v2"] = []

    def later() -> None:
        time.sleep(0.7)
        api.resources["/apis/scheduling.run.ai/v2"] = [("queues", "Queue", False)]

    threading.Thread(target=later).start()
    resource_id, state = driver.create(guessed)
    # Cluster-scoped after all, so the guessed namespace is gone.
    assert resource_id == "q"
    assert "namespace" not in state["metadata"]
    assert "no matches for kind" in " ".join(driver.engine.messages)
    assert "failed calling webhook" in " ".join(driver.engine.messages)
    checked, _ = driver.check(queue(), guessed)
    assert driver.diff(state, checked).changes == provider_pb2.DiffResponse.DIFF_NONE


def test_a_kind_that_never_comes_is_named(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "_SETTLE_SECONDS", 0.1)
    driver.token = QUEUE
    text = driver.fails(driver.create, queue())
    assert 'no matches for kind "Queue" in version "scheduling.run.ai/v2"' in text
    assert "CustomResourceDefinition is not there" in text


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
    assert checked["stringData"] == {"token": Secret("hidden")}
    assert state["__inputs"]["stringData"] == {"token": Secret("hidden")}

    encoded = base64.b64encode(b"hidden").decode()
    del api.objects[path]["stringData"]
    api.objects[path]["data"] = {"token": encoded}
    found, state, read = driver.read(resource_id, state, checked)
    assert found == "default/s"
    assert state["data"] == Secret({"token": encoded})
    assert read["stringData"] == {"token": Secret("hidden")}
    assert driver.diff(state, checked).changes == provider_pb2.DiffResponse.DIFF_NONE

    api.objects[path]["data"] = {"token": "Y2hhbmdlZA=="}
    _, state, read = driver.read(resource_id, state, checked)
    assert wire.has_secret(read["data"])
    answer = driver.diff(state, checked)
    assert list(answer.detailedDiff) == ["stringData.token"]


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
    assert text.startswith("Namespace n is being deleted and is still there")
    assert "example.com/never" in text
    assert "Some resources remain: pods" in text


def test_a_conflict_names_the_way_out(driver: Driver, api: FakeApi) -> None:
    resource_id, _, state = made(driver, namespace())
    api.objects["/api/v1/namespaces/n"]["metadata"]["managedFields"] = [
        {"manager": "other", "operation": "Update"}
    ]
    api.failures = [(409, "Conflict", 'conflict with "other": .metadata.labels.a')]
    text = driver.fails(driver.update, resource_id, state, namespace(labels={"a": "1"}))
    assert 'conflict with "other"' in text
    assert "pulumi.com/patchForce" in text


def test_an_unreachable_cluster_previews_and_fails_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sandbox.providers.rest._RECONNECT_SECONDS", 0.0)
    with driven(KubernetesPlugin) as driver:
        driver.token = NAMESPACE
        driver.configure(kubeconfig=kubeconfig("http://127.0.0.1:1"))
        assert driver.create(namespace(), preview=True)[1] == namespace()
        text = driver.fails(driver.create, namespace())
        assert "http://127.0.0.1:1" in text
        assert "is unreachable" in text
        assert "PULUMI_K8S_DELETE_UNREACHABLE" in driver.fails(driver.read, "n", {}, {})


def test_what_the_stand_in_does_not_serve_names_the_official_plugin(driver: Driver) -> None:
    driver.token = "kubernetes:core/v1:NamespacePatch"
    assert "pulumi-resource-kubernetes 4.34.2 on PATH" in driver.fails(driver.check, {})


ONE, TWO = kubeconfig("http://one"), kubeconfig("http://two")


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


def test_the_kubeconfig_may_be_a_path_and_mistakes_have_words(api: FakeApi, tmp_path: Any) -> None:
    path = tmp_path / "config"
    path.write_text(kubeconfig(api.url))
    with driven(KubernetesPlugin) as driver:
        driver.token = NAMESPACE
        driver.configure(kubeconfig=str(path))
        assert driver.create(namespace())[0] == "n"
    with driven(KubernetesPlugin) as driver:
        driver.token = NAMESPACE
        driver.configure(kubeconfig=str(path), context="other")
        text = driver.fails(driver.create, namespace())
        assert "no context 'other': its contexts are c" in text
