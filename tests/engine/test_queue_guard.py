"""The guard at admission: the same pods that the pack stops, sent straight to the API server."""

from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from kubernetes import client

from kai_fleet.guards.policies import NAME_LABEL, declare
from kai_fleet.guards.queue_guard import inside
from tests.engine.bare_engine import new_stack
from tests.engine.guarded_pods import (
    GROUPED,
    GUIDES,
    HALF,
    IN_TEST,
    WRONG,
    pod,
    relabelled,
    sent,
)
from tests.engine.product import api
from tests.engine.sandbox_commands import kubectl, until

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

NAMESPACES = ("guarded", "audited", "grouped", "free")


@pytest.fixture(scope="module")
def core(sandbox):
    return client.CoreV1Api(api(sandbox.kubeconfig.read_text()))


@pytest.fixture(scope="module")
def guard(sandbox, core, tmp_path_factory):
    """Brings the guards of two namespaces of the host up, with the queues that a test says."""
    made = new_stack(sandbox, tmp_path_factory.mktemp("guard"), "guard")
    for name in NAMESPACES:
        core.create_namespace({"metadata": {"name": name}})

    def up(*queues: str) -> None:
        made.up(program=_guards(queues))

    up("test")
    _until_denied(core, "guarded", pod())
    return up


def _guards(queues: tuple[str, ...]) -> Callable[[], None]:
    def program() -> None:
        opts = pulumi.ResourceOptions()
        teams = {"guarded": {}, "audited": {"mode": "audit"}, "grouped": {"pod_groups": True}}
        for team, args in teams.items():
            policies, bindings = inside(team, queues, {"outside": "allow", **args})
            for body in bindings.values():  # else they hold in every namespace
                only = {"namespaceSelector": {"matchLabels": {NAME_LABEL: team}}}
                body["spec"]["matchResources"] |= only
            declare(team, policies, bindings, opts)

    return program


def _until_denied(core: client.CoreV1Api, namespace: str, body: dict[str, Any]) -> str:
    """A policy takes a moment until every request is held against it, and until it has its bounds;
    before that everything is denied.
    """

    def message() -> str:
        try:
            return sent(core, namespace, body)
        except AssertionError as why:
            assert "no params found" in str(why)
            return ""

    return str(until(message, 30))


@pytest.mark.parametrize("name", WRONG)
def test_the_pods_that_the_pack_stops_are_denied(guard, core, name):
    body, words = WRONG[name]
    message = sent(core, "guarded", body)
    assert words in message
    assert "pod p in namespace guarded" in message
    assert sent(core, "free", body) == "", "the guard is for its namespace only"


def test_a_denial_names_the_queue_and_the_allowed_ones(guard, core):
    message = sent(core, "guarded", pod(labels={"kai.scheduler/queue": "ml"}))
    assert message.endswith(
        "pod p in namespace guarded names queue ml, which is no leaf queue of team guarded;"
        " write the label kai.scheduler/queue: test"
    )


@pytest.mark.parametrize("name", GUIDES)
def test_the_guides_pods_pass(guard, core, name):
    assert sent(core, "guarded", GUIDES[name]) == ""


def test_where_every_queue_is_the_teams_a_pod_group_stands_for_one(guard, core):
    assert "names no queue" in _until_denied(core, "grouped", pod())
    assert sent(core, "grouped", GROUPED) == ""
    wrong = pod(labels={"kai.scheduler/queue": "ml"}, annotations={"pod-group-name": "batch"})
    assert "names queue ml" in sent(core, "grouped", wrong)


def test_kubectl_shows_the_same(guard, sandbox):
    with pytest.raises(AssertionError, match="names queue nowhere, which is no leaf queue"):
        kubectl(
            sandbox,
            "run",
            "p",
            "-n=guarded",
            "--image=ubuntu",
            "--labels=kai.scheduler/queue=nowhere",
            '--overrides={"spec":{"schedulerName":"kai-scheduler"}}',
        )


def test_the_deployment_of_guide_004_gets_its_pods(guard, core):
    labels = {"app": "vllm-test-07"}
    container = {
        "name": "vllm",
        "image": "vllm/vllm-openai:latest",
        "command": ["/bin/sh", "-c"],
        "args": ["vllm serve Qwen/Qwen2.5-1.5B-Instruct --gpu-memory-utilization=0.7"],
    }
    template = {
        "metadata": {"labels": labels | IN_TEST, "annotations": {"gpu-fraction": "0.7"}},
        "spec": {"schedulerName": "kai-scheduler", "containers": [container]},
    }
    client.AppsV1Api(core.api_client).create_namespaced_deployment(
        "guarded",
        {
            "metadata": {"name": "vllm-test-07", "labels": labels},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        },
    )
    until(lambda: core.list_namespaced_pod("guarded", label_selector="app=vllm-test-07").items)


def test_audit_mode_lets_pods_pass_with_a_warning(guard, core):
    assert sent(core, "audited", pod()) == ""
    _, _, headers = core.create_namespaced_pod_with_http_info("audited", pod(), dry_run="All")
    assert "names no queue on the pod itself" in headers["Warning"]


def test_a_bound_pod_is_let_be_by_a_guard_that_changes(guard, core):
    """KAI goes on writing on a pod whose queue is no longer the team's; people do not."""
    node = core.list_node().items[0].metadata.name
    assert sent(core, "guarded", pod("bound", IN_TEST, HALF, nodeName=node), dry=False) == ""
    guard("other")
    message = _until_denied(core, "guarded", pod(labels=IN_TEST))
    assert "write the label kai.scheduler/queue: other" in message
    written = {"runai-gpu-group": "g1", "kai.scheduler/subgroup-name": "default"}
    received = {"pod-group-name": "pg-1", "received-resource-type": "Fraction"}
    assert relabelled(core, "guarded", "bound", labels=written, annotations=received) == ""
    moved = relabelled(core, "guarded", "bound", labels={"kai.scheduler/queue": "ml"})
    assert "names queue ml" in moved
    more = relabelled(core, "guarded", "bound", annotations={"gpu-fraction": "0.9"})
    assert "names queue test" in more
    assert relabelled(core, "guarded", "bound", labels={"kai.scheduler/queue": "other"}) == ""
    guard("test")
