"""Objects by the Kubernetes provider on PATH, official or stand-in, on the real API server."""

from __future__ import annotations

import base64
import json
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest
from pulumi import automation

from tests.engine.bare_engine import Engine, changed

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def crd(plural: str) -> k8s.apiextensions.v1.CustomResourceDefinition:
    kind = plural.capitalize()
    schema = {"type": "object", "x_kubernetes_preserve_unknown_fields": True}
    return k8s.apiextensions.v1.CustomResourceDefinition(
        plural,
        metadata={"name": f"{plural}.providers.test"},
        spec={
            "group": "providers.test",
            "scope": "Cluster",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}
                    },
                }
            ],
        },
    )


def test_a_namespace_a_crd_and_its_objects(engine: Engine, unique: str) -> None:
    def program(quota: str = "5", gpus: int = 2, name: str = "first") -> None:
        namespace = k8s.core.v1.Namespace(unique, metadata={"name": unique})
        k8s.core.v1.ResourceQuota(
            "quota",
            metadata={"name": "gpus", "namespace": namespace.metadata.name},
            spec={"hard": {"requests.nvidia.com/gpu": gpus, "limits.cpu": "2000m"}},
        )
        defined = crd(unique)
        k8s.apiextensions.CustomResource(
            "object",
            api_version="providers.test/v1",
            kind=unique.capitalize(),
            metadata={"name": f"{unique}-{name}"},
            spec={"resources": {"gpu": {"quota": quota, "limit": -1}}},
            opts=pulumi.ResourceOptions(depends_on=[defined]),
        )

    previewed = engine.preview(program)
    assert previewed == {"create": 5}
    assert engine.kubectl("get", "namespace", unique, "--ignore-not-found") == ""

    assert engine.up(program) == {"create": 5}
    of = (f"{unique}.providers.test", f"{unique}-first")
    assert engine.field(".spec.resources.gpu.quota", *of) == "5"
    assert engine.field(".metadata.namespace", *of) == ""
    assert engine.field(".spec.hard", "resourcequota", "gpus", "-n", unique) == (
        '{"limits.cpu":"2","requests.nvidia.com/gpu":"2"}'
    )

    assert engine.up(program) == {"same": 5}

    assert changed(engine.up(lambda: program(quota="7"))) == {"update": 1}
    assert engine.field(".spec.resources.gpu.quota", *of) == "7"

    engine.kubectl("patch", *of, "--type=merge", "-p", '{"spec":{"resources":null}}')
    engine.refresh()
    assert changed(engine.up(lambda: program(quota="7"))) == {"update": 1}
    assert engine.field(".spec.resources.gpu.quota", *of) == "7"

    assert changed(engine.up(lambda: program(quota="7", name="second"))) == {"replace": 1}
    assert engine.field(".metadata.name", *of[:1]) == ""
    assert engine.field(".items[*].metadata.name", *of[:1]) == f"{unique}-second"

    engine.destroy()
    assert engine.kubectl("get", "namespace", unique, "--ignore-not-found") == ""
    assert engine.kubectl("get", "crd", f"{unique}.providers.test", "--ignore-not-found") == ""


def test_a_removed_field_goes_and_foreign_fields_stay(engine: Engine, unique: str) -> None:
    def program(labels: dict[str, str]) -> None:
        k8s.core.v1.Namespace(unique, metadata={"name": unique, "labels": labels})

    engine.up(lambda: program({"a": "1", "b": "1"}))
    engine.kubectl("label", "namespace", unique, "foreign=kept", "--field-manager=another")
    engine.kubectl("label", "namespace", unique, "by-hand=gone")  # kubectl's fields are taken over
    assert changed(engine.up(lambda: program({"a": "2"}))) == {"update": 1}
    labels = json.loads(engine.field(".metadata.labels", "namespace", unique))
    assert labels["a"] == "2"
    assert {"b", "by-hand"}.isdisjoint(labels)
    assert labels["foreign"] == "kept"


def test_an_object_deleted_by_hand_comes_back_after_a_refresh(engine: Engine, unique: str) -> None:
    def program() -> None:
        k8s.core.v1.ServiceAccount("account", metadata={"name": unique, "namespace": "default"})

    engine.up(program)
    engine.kubectl("delete", "serviceaccount", unique, "-n", "default")
    assert engine.refresh().get("delete") == 1
    assert engine.up(program).get("create") == 1


def test_names_are_made_where_none_is_given(engine: Engine, unique: str) -> None:
    def program(data: str = "one") -> None:
        made = k8s.core.v1.ConfigMap(unique, data={"key": data})
        pulumi.export("name", made.metadata.name)

    engine.up(program)
    first = engine.stack.outputs()["name"].value
    assert first.startswith(f"{unique}-")
    assert len(first) == len(unique) + 9
    assert engine.field(".data.key", "configmap", first, "-n", "default") == "one"
    # Its content is fixed, and its name is free: the new one comes before the old one goes.
    assert changed(engine.up(lambda: program("two"))) == {"replace": 1}
    second = engine.stack.outputs()["name"].value
    assert second != first
    assert engine.kubectl("get", "configmap", first, "--ignore-not-found") == ""


def test_a_secret_stays_secret(engine: Engine, unique: str) -> None:
    value = f"hidden-{unique}"

    def program() -> None:
        made = k8s.core.v1.Secret(
            "made",
            metadata={"name": unique, "namespace": "default"},
            string_data={"token": pulumi.Output.secret(value)},
        )
        read = k8s.core.v1.Secret.get("read", made.id)
        pulumi.export("token", read.data["token"])

    encoded = base64.b64encode(value.encode()).decode()
    engine.up(program)
    assert engine.field(".data.token", "secret", unique, "-n", "default") == encoded
    assert engine.stack.outputs()["token"].value == encoded
    assert engine.stack.outputs()["token"].secret
    assert value not in engine.printed
    for text in (value, encoded):
        assert text not in engine.state()
    assert changed(engine.up(program)) == {}
    engine.refresh()
    assert changed(engine.up(program)) == {}
    assert encoded not in engine.state()


def test_a_deployment_and_a_job_are_waited_for(engine: Engine, unique: str) -> None:
    def template(policy: str) -> dict[str, Any]:
        return {
            "metadata": {"labels": {"app": unique}},
            "spec": {"restartPolicy": policy, "containers": [{"name": "c", "image": "fake"}]},
        }

    def program(replicas: int = 2) -> None:
        k8s.apps.v1.Deployment(
            "deployment",
            metadata={"name": unique, "namespace": "default"},
            spec={
                "replicas": replicas,
                "selector": {"matchLabels": {"app": unique}},
                "template": template("Always"),
            },
        )
        k8s.batch.v1.Job(
            "job",
            metadata={"name": unique, "namespace": "default"},
            spec={"template": template("Never")},
        )

    engine.up(program)
    assert engine.field(".status.availableReplicas", "deployment", unique) == "2"
    assert engine.field(".status.succeeded", "job", unique) == "1"
    assert changed(engine.up(lambda: program(3))) == {"update": 1}
    assert engine.field(".status.availableReplicas", "deployment", unique) == "3"


def test_what_never_gets_ready_is_kept_and_tried_again(engine: Engine, unique: str) -> None:
    def program(seconds: str = "3", replicas: int = 1) -> None:
        k8s.apps.v1.Deployment(
            "stuck",
            metadata={
                "name": unique,
                "namespace": "default",
                "annotations": {"pulumi.com/timeoutSeconds": seconds},
            },
            spec={
                "replicas": replicas,
                "selector": {"matchLabels": {"app": unique}},
                "template": {
                    "metadata": {"labels": {"app": unique}},
                    "spec": {
                        "nodeSelector": {"no-such": "node"},
                        "containers": [{"name": "c", "image": "fake"}],
                    },
                },
            },
        )

    assert unique in engine.fails(program)
    assert unique in engine.state()
    assert changed(engine.up(lambda: program(replicas=0))) == {"update": 1}


def test_an_object_that_exists_is_not_taken_over(engine: Engine, unique: str) -> None:
    engine.kubectl("create", "namespace", unique)
    try:
        text = engine.fails(lambda: k8s.core.v1.Namespace("n", metadata={"name": unique}))
        assert f'namespaces "{unique}" already exists' in text
        assert unique not in engine.state()
    finally:
        engine.kubectl("delete", "namespace", unique)


def test_a_field_that_cannot_change_is_refused_and_replaces_nothing(
    engine: Engine, unique: str
) -> None:
    def program(handler: str) -> None:
        k8s.node.v1.RuntimeClass("class", metadata={"name": unique}, handler=handler)

    engine.up(lambda: program("one"))
    assert (
        f'RuntimeClass.node.k8s.io "{unique}" is invalid: '
        'handler: Invalid value: "two": field is immutable'
    ) in engine.fails(lambda: program("two"))
    assert engine.field(".handler", "runtimeclass", unique) == "one"


def test_the_server_refuses_at_preview(engine: Engine) -> None:
    def program() -> None:
        k8s.core.v1.Namespace("wrong", metadata={"name": "Not_A_Name"})

    with pytest.raises(automation.CommandError) as caught:
        engine.preview(program)
    assert "Not_A_Name" in str(caught.value)
