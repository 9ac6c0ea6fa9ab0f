"""Changes that somebody makes by hand in a cluster: edits, then deletions."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from tests.engine.sandbox_commands import until
from tests.faults.case import Case, client_of

QUEUES = ("scheduling.run.ai", "v2", "queues")
GUARD = "kai-fleet-queues-ml"


@dataclass
class Hands:
    """The two clusters, as an administrator reaches them."""

    case: Case
    host: client.ApiClient
    inside: client.ApiClient

    @classmethod
    def of(cls, case: Case) -> Hands:
        return cls(case, client_of(case.host), client_of(case.inside("ml")))

    def guard(self) -> client.AdmissionregistrationV1Api:
        return client.AdmissionregistrationV1Api(self.inside)

    def queue(self, name: str, spec: Any) -> None:
        api = client.CustomObjectsApi(self.inside)
        api.patch_cluster_custom_object(*QUEUES, name, {"spec": spec})

    def remove_queue(self, name: str) -> None:
        client.CustomObjectsApi(self.inside).delete_cluster_custom_object(*QUEUES, name)

    def helm(self, kubeconfig: Any, *arguments: str) -> None:
        command = [str(self.case.tool("helm")), *arguments, "--kubeconfig", str(kubeconfig)]
        subprocess.run(command, check=True, capture_output=True)


@dataclass(frozen=True)
class Drift:
    """A change, and the resource of the program that it is about (a part of its name).

    `doctor` are the check of the doctor that sees it and the name that this tells; None where
    the doctor does not look at it.
    """

    name: str
    resource: str
    change: Callable[[Hands], Any]
    doctor: tuple[str, str] | None = None


def _until_gone(read: Callable[[], Any]) -> None:
    def gone() -> bool:
        try:
            read()
        except ApiException as why:
            assert why.status == 404
            return True
        return False

    until(gone)


def _label(hands: Hands, namespace: str, value: str | None) -> None:
    body = {"metadata": {"labels": {"kai-fleet/team": value}}}
    client.CoreV1Api(hands.host).patch_namespace(namespace, body)


def _quota(hands: Hands, namespace: str, gpus: str) -> None:
    body = {"spec": {"hard": {"requests.nvidia.com/gpu": gpus}}}
    client.CoreV1Api(hands.host).patch_namespaced_resource_quota("gpus", namespace, body)


def delete_namespace(hands: Hands, name: str) -> None:
    core = client.CoreV1Api(hands.host)
    core.delete_namespace(name)
    _until_gone(lambda: core.read_namespace(name))


def uninstall_kai(hands: Hands) -> None:
    hands.helm(hands.case.inside("ml"), "uninstall", "kai-scheduler", "-n", "kai-scheduler")


def _delete_crd(hands: Hands) -> None:
    api = client.ApiextensionsV1Api(hands.inside)
    api.delete_custom_resource_definition("clusterpolicies.nvidia.com")
    _until_gone(lambda: api.read_custom_resource_definition("clusterpolicies.nvidia.com"))


def _delete_guard(hands: Hands) -> None:
    hands.guard().delete_validating_admission_policy(GUARD)


def _delete_binding(hands: Hands) -> None:
    hands.guard().delete_validating_admission_policy_binding(GUARD)


# Of objects that none of the deletions takes.
EDITS = (
    Drift("a team's label", "ml-namespace", lambda h: _label(h, "team-ml", "other")),
    Drift("a team's label taken off", "dev-namespace", lambda h: _label(h, "team-dev", None)),
    Drift("no GPUs for a team", "dev-gpus", lambda h: _quota(h, "team-dev", "0")),
    Drift(
        "a queue's quota",
        "ml-queues",
        lambda h: h.queue("train", {"resources": {"gpu": {"quota": 1}}}),
    ),
)
# While the vCluster is there: what is inside one that is gone nobody can look at.
DELETIONS = (
    Drift(
        "the guard's binding",
        "ml-guard-binding",
        _delete_binding,
        ("guard", GUARD),
    ),
    Drift("the guard", "ml-guard-policy", _delete_guard, ("guard", GUARD)),
    Drift("a CRD", "ml-kai-cluster-policy", _delete_crd),
    Drift("a leaf queue", "ml-queues", lambda h: h.remove_queue("serve"), ("queues", "serve")),
    Drift(
        "a queue with children",
        "ml-queues",
        lambda h: h.remove_queue("default"),
        ("queues", "default"),
    ),
    Drift(
        "KAI's release",
        "ml-kai-release",
        uninstall_kai,
        ("kai-parts", "KAI v0.9.3"),
    ),
    Drift(
        "a team's bound on GPUs",
        "ml-gpus",
        lambda h: client.CoreV1Api(h.host).delete_namespaced_resource_quota("gpus", "team-ml"),
    ),
    Drift(
        "the runtime class",
        "host-gpu-runtime-class",
        lambda h: client.NodeV1Api(h.host).delete_runtime_class("nvidia"),
    ),
    Drift(
        "the GPU stack's namespace with its release",
        "host-gpu-release",
        lambda h: delete_namespace(h, "nvidia-device-plugin"),
    ),
)
