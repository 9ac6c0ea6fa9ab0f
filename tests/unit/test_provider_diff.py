from __future__ import annotations

from typing import Any

import pytest
from pulumi.runtime.proto import provider_pb2
from pulumi.runtime.rpc import UNKNOWN

from kai_fleet.provider.paths import parsed, spelled
from sandbox.providers import diff
from sandbox.providers.cluster import Kind

KINDS = provider_pb2.PropertyDiff


def found(old: Any, live: Any, new: Any) -> dict[str, int]:
    return {spelled(path): kind for path, kind in diff.changes(old, live, new)}


def test_only_what_the_program_set_is_compared() -> None:
    live = {"spec": {"a": 1, "filled in": 2}, "status": {"phase": "x"}}
    assert found({"spec": {"a": 1}}, live, {"spec": {"a": 1}}) == {}


def test_added_changed_and_removed() -> None:
    old = {"spec": {"a": 1, "b": 1, "list": [1, 2]}}
    new = {"spec": {"b": 2, "c": 3, "list": [1, 5, 6]}}
    assert found(old, old, new) == {
        "spec.a": KINDS.DELETE,
        "spec.b": KINDS.UPDATE,
        "spec.c": KINDS.ADD,
        "spec.list[1]": KINDS.UPDATE,
        "spec.list[2]": KINDS.ADD,
    }


def test_drift_of_the_live_object_is_a_change() -> None:
    inputs = {"spec": {"replicas": 2, "paused": True}}
    assert found(inputs, {"spec": {"replicas": 5}}, inputs) == {
        "spec.replicas": KINDS.UPDATE,
        "spec.paused": KINDS.ADD,
    }


def test_true_is_not_one() -> None:
    assert found({"a": 1}, {"a": 1}, {"a": True}) == {"a": KINDS.UPDATE}


def test_what_the_server_leaves_out_because_it_is_empty_is_no_change() -> None:
    inputs = {"spec": {"hostNetwork": False, "labels": {}, "none": None}}
    assert found(inputs, {"spec": {}}, inputs) == {}


@pytest.mark.parametrize(
    ("given", "spelled"),
    [(2, "2"), ("1000m", "1"), ("1024Mi", "1Gi"), (0.5, "500m"), ("1e3", None), ("3", None)],
)
def test_quantities_in_the_servers_spelling(given: Any, spelled: str | None) -> None:
    inputs = {"spec": {"hard": {"cpu": given}}}
    live = {"spec": {"hard": {"cpu": spelled or "7"}}}
    assert (found(inputs, live, inputs) == {}) is (spelled is not None)
    # After a refresh the inputs are the server's.
    assert (found(live, live, inputs) == {}) is (spelled is not None)


def test_a_label_is_a_text_and_not_a_quantity() -> None:
    old, new = {"metadata": {"labels": {"v": "1.0"}}}, {"metadata": {"labels": {"v": "1"}}}
    assert found(old, old, new) == {"metadata.labels.v": KINDS.UPDATE}


def test_an_unknown_is_a_change() -> None:
    assert found({"a": 1}, {"a": 1}, {"a": UNKNOWN, "b": UNKNOWN}) == {
        "a": KINDS.UPDATE,
        "b": KINDS.ADD,
    }


def test_paths_are_spelled_as_pulumi_does() -> None:
    path = ("metadata", "annotations", "pulumi.com/x", "list", 0)
    assert spelled(path) == 'metadata.annotations["pulumi.com/x"].list[0]'
    assert parsed(spelled(path)) == path


def answer(kind: Kind, old: Any, new: Any, ignored: tuple[str, ...] = ()) -> Any:
    changes = list(diff.changes(old, old, new))
    return diff.response(kind, changes, list(ignored))


@pytest.mark.parametrize(
    ("kind", "path", "replaces"),
    [
        (Kind("v1", "Namespace"), "metadata.name", True),
        (Kind("v1", "Namespace"), "metadata.labels.a", False),
        (Kind("v1", "Secret"), "type", True),
        (Kind("v1", "Secret"), "data.key", True),
        (Kind("v1", "ConfigMap"), "data.key", True),
        (Kind("batch/v1", "Job"), "spec.template.spec.restartPolicy", True),
        (Kind("batch/v1", "Job"), "spec.suspend", False),
        (Kind("apps/v1", "Deployment"), "spec.selector.matchLabels.app", True),
        (Kind("node.k8s.io/v1", "RuntimeClass"), "handler", False),
        (Kind("storage.k8s.io/v1", "StorageClass"), "provisioner", True),
        (Kind("storage.k8s.io/v1", "StorageClass"), "reclaimPolicy", False),
        (Kind("v1", "Pod"), "spec.schedulerName", True),
        (Kind("v1", "Pod"), "spec.tolerations", False),
        (Kind("rbac.authorization.k8s.io/v1", "RoleBinding"), "roleRef.name", True),
        (Kind("scheduling.run.ai/v2", "Queue"), "spec.parentQueue", False),
    ],
)
def test_what_cannot_change_in_place_replaces(kind: Kind, path: str, replaces: bool) -> None:
    def nested(value: str) -> Any:
        for step in reversed(path.split(".")):
            value = {step: value}  # type: ignore[assignment]
        return value

    result = answer(kind, nested("old"), nested("new"))
    assert list(result.detailedDiff) == [path]
    assert (list(result.replaces) == [path]) is replaces


def test_ignored_changes_are_left_out() -> None:
    old, new = {"spec": {"a": {"x": 1}, "b": 1}}, {"spec": {"a": {"x": 2}, "b": 2}}
    kind = Kind("v1", "Namespace")
    assert list(answer(kind, old, new, ("spec.a",)).detailedDiff) == ["spec.b"]
    assert answer(kind, old, new, ("spec",)).changes == provider_pb2.DiffResponse.DIFF_NONE
