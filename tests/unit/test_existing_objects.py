"""What the host has already: used, named where it does not fit, and kept once it was made."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pulumi
import pytest

from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.cluster.existing_objects import CRD, RUNTIME_CLASS, ExistingObjects
from kai_fleet.fleet.deployed_state import NAMESPACE, NAMESPACE_PATCH, DeployedState
from kai_fleet.fleet.model import DeclaredKai, DeclaredTeam
from kai_fleet.fleet.queues import DeclaredQueue
from kai_fleet.host.gpu_stack import GpuStack, GpuStackArgs
from kai_fleet.isolation.team_namespace import TeamNamespace, TeamNamespaceArgs, is_of_others
from kai_fleet.isolation.team_places import warn_of_taints
from kai_fleet.kai.kai_scheduler import KaiScheduler, KaiSchedulerArgs
from kai_fleet.kai.scheduling import refuse_different_queues
from kai_fleet.settings.sections.isolation import Isolation
from kai_fleet.settings.sections.kubernetes import Toleration
from kai_fleet.settings.sections.platform import Gpu
from kai_fleet_cli.plan.recorder import record

CLASS = "/apis/node.k8s.io/v1/runtimeclasses/nvidia"
POLICIES = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusterpolicies.nvidia.com"
THERE = {"there": True, "handler": "", "labels": {}}
TEAM = DeclaredTeam("ml", gpus=4, isolation=Isolation())


def state(*resources: tuple[str, str]) -> DeployedState:
    return DeployedState(urns=frozenset(f"urn:pulumi:s::p::{kind}::{n}" for kind, n in resources))


def there(*paths: str, deployed: DeployedState | None = None, **more: Any) -> ExistingObjects:
    answers: dict[str, Any] = dict.fromkeys(paths, THERE | more)
    return ExistingObjects(lambda path: answers.get(path, {}), deployed or DeployedState())


def declared(program: Callable[[], object]) -> set[tuple[str, str]]:
    found = record("lab", {}, program=lambda: program() and None)
    return {(it.type.rpartition(":")[2], it.name) for it in found}


def gpu(provider: Any, existing: ExistingObjects) -> set[tuple[str, str]]:
    return declared(
        lambda: GpuStack("gpu", GpuStackArgs(Gpu(provider=provider), existing=existing))
    )


def kai(existing: ExistingObjects | None, *, operator: bool = False, version: str = "v0.9.20"):
    args = KaiSchedulerArgs(
        DeclaredKai(version),
        ClusterAccess("lab", context="lab"),
        cluster_policy_crd=not operator,
        existing=existing,
    )
    return declared(lambda: KaiScheduler("kai", args))


def place(existing: ExistingObjects) -> set[tuple[str, str]]:
    args = TeamNamespaceArgs(ClusterAccess("lab", context="lab"), TEAM, existing=existing)
    return declared(lambda: TeamNamespace("ml", args))


def test_the_class_that_k3s_ships_is_used():
    found = gpu("device-plugin", there(CLASS, handler="nvidia"))
    assert ("RuntimeClass", "gpu-runtime-class") not in found
    assert ("Release", "gpu-release") in found


def test_a_class_that_is_not_there_is_made():
    assert ("RuntimeClass", "gpu-runtime-class") in gpu("device-plugin", there())


def test_a_class_with_another_handler_is_named_with_what_to_write():
    with pytest.raises(pulumi.RunError, match=r"handler nvidia-cdi.*Write provider: none"):
        gpu("device-plugin", there(CLASS, handler="nvidia-cdi"))


@pytest.mark.parametrize("provider", ["device-plugin", "operator", "none"])
def test_a_class_that_the_stack_made_stays(provider):
    own = there(CLASS, handler="nvidia", deployed=state((RUNTIME_CLASS, "gpu-runtime-class")))
    assert ("RuntimeClass", "gpu-runtime-class") in gpu(provider, own)


def test_a_second_operator_is_not_installed():
    policy = "/apis/nvidia.com/v1/clusterpolicies/cluster-policy"
    with pytest.raises(pulumi.RunError, match="Write provider: none"):
        gpu("operator", there(policy))
    own = there(policy, deployed=state(("kubernetes:helm.sh/v3:Release", "gpu-release")))
    assert ("Release", "gpu-release") in gpu("operator", own)


def test_namespaces_of_the_gpu_stack_and_of_kai_are_used():
    spaces = there("/api/v1/namespaces/nvidia-device-plugin", "/api/v1/namespaces/kai-scheduler")
    for found in (gpu("device-plugin", spaces), kai(spaces)):
        assert not [name for kind, name in found if kind == "Namespace"]
    own = there("/api/v1/namespaces/kai-scheduler", deployed=state((NAMESPACE, "kai-namespace")))
    assert ("Namespace", "kai-namespace") in kai(own)


def test_the_crd_of_an_operator_is_used():
    crd = ("CustomResourceDefinition", "kai-cluster-policy")
    assert crd not in kai(there(POLICIES))
    assert crd in kai(there())
    assert crd in kai(None)


def test_a_crd_that_the_stack_made_stays_when_an_operator_comes_or_kai_changes():
    crd = ("CustomResourceDefinition", "kai-cluster-policy")
    own = there(POLICIES, deployed=state((CRD, "kai-cluster-policy")))
    assert crd in kai(own, operator=True)
    assert crd in kai(own, version="v0.16.8")
    assert crd not in kai(there(), operator=True)


KAI_CLASSES = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}


def with_classes(**values: Any) -> ExistingObjects:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses/"
    answers: dict[str, Any] = {
        f"{path}{name}": THERE | {"value": value}
        for name, value in (KAI_CLASSES | values).items()
        if value is not None
    }
    return ExistingObjects(lambda asked: answers.get(asked, {}), DeployedState())


def release_values(existing: ExistingObjects, version: str = "v0.16.8", **own: Any) -> Any:
    args = KaiSchedulerArgs(
        DeclaredKai(version, values=own), ClusterAccess("lab", context="lab"), existing=existing
    )
    told = record("lab", {}, program=lambda: KaiScheduler("kai", args) and None)
    return next(it.inputs["values"] for it in told if it.name == "kai-release")


def test_priority_classes_of_others_that_fit_are_used():
    off = {"enabled": False}
    assert release_values(with_classes())["defaultPriorityClasses"] == off
    assert "defaultPriorityClasses" not in release_values(there())
    assert release_values(with_classes(train=7), defaultPriorityClasses=off)


def test_those_that_a_release_of_ours_made_are_its_own():
    own = {
        f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}": THERE
        | {"value": value, "release": "kai-scheduler/kai-scheduler"}
        for name, value in KAI_CLASSES.items()
    }
    existing = ExistingObjects(lambda asked: own.get(asked, {}), DeployedState())
    assert "defaultPriorityClasses" not in release_values(existing)


@pytest.mark.parametrize(
    ("changed", "version", "says"),
    [
        ({"train": 1000}, "v0.16.8", "do not fit: train has 1000 in place of 50"),
        ({"inference": None}, "v0.18.0", "do not fit: there is no inference"),
        ({}, "v0.14.7", "kubectl annotate priorityclass build --overwrite"),
    ],
)
def test_priority_classes_of_others_that_do_not_fit_are_named(changed, version, says):
    with pytest.raises(pulumi.RunError) as caught:
        release_values(with_classes(**changed), version)
    assert says in str(caught.value)
    assert "Nothing was made" in str(caught.value)


DEFAULT_QUEUE = DeclaredQueue(
    "default-queue",
    spec={"parentQueue": "default-parent-queue", "resources": {"gpu": {"quota": 4, "limit": -1}}},
    path="kai-fleet:queues.default-queue",
)


@pytest.mark.parametrize(
    ("quota", "labels", "says"),
    [
        (-1, {}, "resources.gpu.quota is -1 there, and 4 here"),
        (4, {}, None),
        (-1, {"kai-fleet/tree": "lab/host-queues"}, None),
    ],
)
def test_default_queues_of_a_kai_that_was_there_are_compared_first(quota, labels, says):
    spec = {
        "parentQueue": "default-parent-queue",
        "resources": {"gpu": {"quota": quota, "limit": -1}},
    }
    path = "/apis/scheduling.run.ai/v2/queues/default-queue"
    existing = there(path, spec=spec, labels=labels)
    if says is None:
        refuse_different_queues([DEFAULT_QUEUE], existing)
        return
    with pytest.raises(pulumi.RunError) as caught:
        refuse_different_queues([DEFAULT_QUEUE], existing)
    assert str(caught.value).startswith("kai-fleet:queues.default-queue: queue default-queue")
    assert says in str(caught.value)


def test_one_key_admits_the_operators_pods_on_gke():
    def made(**more: Any) -> Any:
        args = GpuStackArgs(Gpu(provider="operator", **more), existing=there())
        told = record("lab", {}, program=lambda: GpuStack("gpu", args) and None)
        return [it for it in told if it.type.endswith(":ResourceQuota")]

    assert made() == []
    (quota,) = made(system_priorities=True)
    assert quota.inputs["metadata"]["namespace"] == "gpu-operator"
    (scope,) = quota.inputs["spec"]["scopeSelector"]["matchExpressions"]
    assert scope["scopeName"] == "PriorityClass"
    assert scope["values"] == ["system-node-critical", "system-cluster-critical"]


POOL = {"kai-fleet/pool": "ml"}


@pytest.mark.parametrize(
    ("team", "taints", "warned"),
    [
        ({}, [["dedicated"], ["dedicated"]], True),
        ({}, [["dedicated"], []], False),
        ({}, [["node.kubernetes.io/not-ready"]], False),
        ({"tolerations": (Toleration(key="dedicated"),)}, [["dedicated"]], False),
        ({}, [], False),
    ],
)
def test_a_preview_warns_of_a_pool_whose_taints_are_not_tolerated(
    team, taints, warned, monkeypatch
):
    nodes = [
        {
            "labels": POOL | {"other": "x"},
            "taints": [{"key": key, "value": "ml", "effect": "NoSchedule"} for key in keys],
        }
        for keys in taints
    ]
    nodes.append({"labels": {}, "taints": []})
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", said.append)
    of = DeclaredTeam("ml", path="kai-fleet:teams.ml", node_pool=POOL, **team)
    warn_of_taints(of, there("/api/v1/nodes", nodes=nodes))
    assert bool(said) == warned
    for line in said:
        assert "each of its 2 nodes has a taint (dedicated)" in line
        assert (
            'write tolerations: [{key: "dedicated", value: "ml", effect: "NoSchedule"}] at'
            " kai-fleet:teams.ml" in line
        )


def test_a_namespace_made_beforehand_is_labelled_and_stays():
    found = place(there("/api/v1/namespaces/team-ml"))
    assert ("NamespacePatch", "ml-namespace") in found
    assert ("Namespace", "ml-namespace") not in found
    assert ("Namespace", "ml-namespace") in place(there())


def test_a_namespace_that_is_used_is_used_from_then_on():
    """Also where it has the stack's own labels by now."""
    labelled = {"kai-fleet/team": "ml"}
    deployed = state((NAMESPACE_PATCH, "ml-namespace"))
    used = there("/api/v1/namespaces/team-ml", labels=labelled, deployed=deployed)
    assert ("NamespacePatch", "ml-namespace") in place(used)


def test_a_namespace_that_a_cut_off_update_made_is_the_stacks_own():
    cut_off = there("/api/v1/namespaces/team-ml", labels={"kai-fleet/team": "ml"})
    assert ("Namespace", "ml-namespace") in place(cut_off)


def test_a_namespace_that_a_cut_off_update_labelled_is_still_that_of_others():
    labels = {"kai-fleet/team": "ml", "kai-fleet/namespace": "used"}
    cut_off = there("/api/v1/namespaces/team-ml", labels=labels)
    assert ("NamespacePatch", "ml-namespace") in place(cut_off)


def test_labels_that_do_not_fit_are_named():
    labels = {"pod-security.kubernetes.io/enforce": "privileged", "cost-centre": "7"}
    with pytest.raises(pulumi.RunError) as caught:
        is_of_others(TEAM, there("/api/v1/namespaces/team-ml", labels=labels))
    said = str(caught.value)
    assert "it has pod-security.kubernetes.io/enforce=privileged" in said
    assert (
        "kubectl label namespace team-ml --overwrite pod-security.kubernetes.io/enforce=baseline"
        in said
    )
    assert "cost-centre" not in said


def test_a_state_that_cannot_be_read_makes_nothing_that_of_others():
    """Else the stack's own namespaces would not be declared, and the engine would delete them."""
    unread = DeployedState(readable=False)
    assert ("Namespace", "ml-namespace") in place(
        there("/api/v1/namespaces/team-ml", deployed=unread)
    )


def test_a_cluster_that_does_not_answer_is_told_once_and_asked_for_one_object_only(monkeypatch):
    asked, told = [], []
    monkeypatch.setattr(pulumi.log, "warn", told.append)

    def away(path: str) -> dict[str, Any]:
        asked.append(path)
        return {"problem": "the API does not answer", "away": True}

    found = gpu("device-plugin", ExistingObjects(away, DeployedState()))
    assert ("RuntimeClass", "gpu-runtime-class") in found
    assert asked == [CLASS, CLASS], "once more, and then for nothing else"
    assert told == [
        "the host cluster is not reached: the API does not answer. What it has already is not"
        " known, and an update can change nothing there"
    ], "a preview shows all the same what it would make"


def test_a_cluster_that_refuses_to_tell_is_told_once_and_looks_free(monkeypatch):
    """A user without rights: the preview looked like one of an empty cluster."""
    told = []
    monkeypatch.setattr(pulumi.log, "warn", told.append)
    answers = {"/api/v1/namespaces/kai-scheduler": THERE}
    refusal = {"problem": "the API answers 403 Forbidden", "away": False}
    existing = ExistingObjects(lambda path: answers.get(path, refusal), DeployedState())
    assert ("RuntimeClass", "gpu-runtime-class") in gpu("device-plugin", existing)
    assert told == [
        "what the host cluster has already is not known: the API answers 403 Forbidden to GET"
        f" {CLASS}. What others made there looks free in this run, and an update by this user may"
        " fail. Look with: kubectl auth can-i --list"
    ]
    assert existing.find(NAMESPACE, "kai-scheduler"), "what may be read is read"


def test_a_connection_that_breaks_once_does_not_make_what_is_there_look_free():
    answers = iter([{"problem": "reset", "away": True}, {"there": True, "handler": "other"}])
    with pytest.raises(pulumi.RunError, match="handler other"):
        gpu("device-plugin", ExistingObjects(lambda path: next(answers), DeployedState()))


def test_labels_of_the_stack_file_get_onto_a_used_namespace_and_have_to_fit():
    team = replace(TEAM, labels={"cost-centre": "8"})
    used = there("/api/v1/namespaces/team-ml")
    args = TeamNamespaceArgs(ClusterAccess("lab", context="lab"), team, existing=used)
    found = record("lab", {}, program=lambda: TeamNamespace("ml", args) and None)
    (patch,) = (it for it in found if it.type.endswith(":NamespacePatch"))
    assert patch.inputs["metadata"]["labels"]["cost-centre"] == "8"
    other = there("/api/v1/namespaces/team-ml", labels={"cost-centre": "7"})
    with pytest.raises(pulumi.RunError, match="it has cost-centre=7"):
        is_of_others(team, other)
