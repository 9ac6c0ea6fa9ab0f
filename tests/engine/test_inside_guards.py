"""What stands inside a vCluster, on a stack of two teams: the guard of every namespace, warnings on
templates of pods, GPUs beside the queues; and a team whose GPUs are slices (MIG).
"""

from typing import Any

import pytest
from kubernetes import client

from tests.engine.guarded_pods import (
    GROUPED,
    GUIDES,
    HALF,
    IN_TEST,
    WHOLE,
    WRONG,
    pod,
    relabelled,
    sent,
)
from tests.engine.product import Product, api, project, queues
from tests.engine.sandbox_commands import until
from tests.unit.policies.kai_examples import EXAMPLES

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

VERSION = "v0.16.8"
NOWHERE = {"kai.scheduler/queue": "nowhere"}
RIGHT = pod(labels=IN_TEST, annotations=HALF)
BESIDE = pod(scheduler=None, limits=WHOLE)
SLICE = "nvidia.com/mig-1g.10gb"
CUT = {
    "scheduler": {"mode": "virtual", "version": VERSION},
    "nodePool": {"kai-fleet/pool": "slices"},
    "gpus": {SLICE: 4},
    "queues": {"lab": {}},
}


@pytest.fixture(scope="module")
def created(sandbox, tmp_path_factory):
    """The stack `sandbox` with two teams in mode virtual, and its first update."""
    product = Product.of("sandbox", sandbox, project(tmp_path_factory.mktemp("inside") / "project"))

    def two_teams(config: Any) -> None:
        config.pop("kai-fleet:teamStacks")
        research = config["kai-fleet:teams"]["research"]
        research["scheduler"]["version"] = VERSION
        config["kai-fleet:teams"] = {"research": research, "cut": CUT}

    product.edit(two_teams, named=False)
    return product, product.up()


@pytest.fixture(scope="module")
def stack(created):
    """The stack, and the vCluster of team research, whose guard is at work."""
    product, first = created
    inside = api(first.outputs["kubeconfigs"]["research"])
    until(lambda: sent(client.CoreV1Api(inside), "default", pod()), 30)
    return product, inside


def test_every_namespace_is_guarded(stack):
    inside = client.CoreV1Api(stack[1])
    message = sent(inside, "default", pod())
    assert message.endswith("write the label kai.scheduler/queue: test")
    inside.create_namespace({"metadata": {"name": "later"}})
    until(lambda: inside.list_namespaced_service_account("later").items)
    assert "names queue ml" in sent(inside, "later", pod(labels={"kai.scheduler/queue": "ml"}))
    beside = GUIDES["001 research-pod"]  # a whole GPU, and Kubernetes' own scheduler
    assert "beside the queues of team research" in sent(inside, "default", beside)
    for body in GUIDES.values():
        if body is not beside:
            assert sent(inside, "default", body) == ""


OF_THE_HOST = "W1 a PodGroup of the host"


@pytest.mark.parametrize("name", [name for name in WRONG if name != OF_THE_HOST])
def test_the_pods_that_the_pack_stops_are_denied(stack, name):
    body, words = WRONG[name]
    message = sent(client.CoreV1Api(stack[1]), "default", body)
    assert words in message
    assert "pod p in namespace default" in message


def test_where_every_queue_is_the_teams_a_pod_group_stands_for_one(stack):
    core = client.CoreV1Api(stack[1])
    assert sent(core, "default", GROUPED) == ""
    wrong = pod(labels={"kai.scheduler/queue": "ml"}, annotations={"pod-group-name": "batch"})
    assert "names queue ml" in sent(core, "default", wrong)


@pytest.fixture(scope="module")
def cut(created):
    """The vCluster of the team that has four slices of the pool `slices`."""
    return api(created[1].outputs["kubeconfigs"]["cut"])


def refusal(host: client.CoreV1Api, **limits: str) -> str:
    """What the host says of a pod of the team as its vCluster syncs it; "" where it is let in."""
    body = pod(scheduler=None, limits=limits, nodeName="slices-1")
    del body["metadata"]["annotations"]
    return sent(host, "team-cut", body)


def test_a_team_gets_the_slices_that_it_is_granted(cut, sandbox):
    assert queues(cut)["lab"]["spec"]["resources"]["gpu"]["limit"] == 4, "as KAI counts slices"
    core = client.CoreV1Api(cut)
    body = pod("cut", {"kai.scheduler/queue": "lab"}, limits={SLICE: "2"})
    until(lambda: not sent(core, "default", body), 30)
    core.create_namespaced_pod("default", body)
    until(lambda: core.read_namespaced_pod("cut", "default").spec.node_name == "slices-1", 60)
    host = client.CoreV1Api(api(sandbox.kubeconfig.read_text()))
    assert refusal(host, **{SLICE: "4"}) == ""
    assert "exceeded quota: gpus" in refusal(host, **{SLICE: "5"})
    assert "a MIG profile in gpus" in refusal(host, **{"nvidia.com/mig-3g.40gb": "1"})
    assert "exceeded quota: gpus" in refusal(host, **{"nvidia.com/gpu": "1"})
    beside = pod("beside", scheduler=None, limits={SLICE: "1"})
    assert f"asks for {SLICE} beside the queues" in sent(core, "default", beside)


def test_every_expression_is_of_the_types_of_what_it_judges(stack):
    """Otherwise `kubectl describe` shows an error of each kind of object."""
    _, inside = stack
    policies = client.AdmissionregistrationV1Api(inside)

    def checked():
        items = policies.list_validating_admission_policy().items
        return items if all(item.status and item.status.type_checking for item in items) else []

    found = {
        item.metadata.name: item.status.type_checking.expression_warnings
        for item in until(checked, 60)
    }
    assert found == {
        "kai-fleet-queues-research": None,
        "kai-fleet-outside-queues-research": None,
        "kai-fleet-queue-specs-research": None,
    }


def test_kais_own_pods_pass_and_nobody_elses_do(stack):
    inside = client.CoreV1Api(stack[1])
    # As the binder makes it for a GPU that pods share.
    reservation = pod("gpu-reservation-n-x", {"runai-gpu-group": "g"}, None, None, WHOLE)
    for namespace in ("kai-scheduler", "kube-system"):
        assert sent(inside, namespace, reservation) == ""
        assert "where only the platform runs" in sent(inside, namespace, pod(labels=IN_TEST))


CREATE = {
    "Deployment": (client.AppsV1Api, "create_namespaced_deployment"),
    "StatefulSet": (client.AppsV1Api, "create_namespaced_stateful_set"),
    "ReplicaSet": (client.AppsV1Api, "create_namespaced_replica_set"),
    "Job": (client.BatchV1Api, "create_namespaced_job"),
    "CronJob": (client.BatchV1Api, "create_namespaced_cron_job"),
}


def _applied(inside: client.ApiClient, kind: str, made_of: dict[str, Any], **metadata: Any) -> str:
    """The API server's warnings about a workload named `w`, which it takes."""
    app = {"app": "w"}
    labels = {**made_of["metadata"]["labels"], **app}
    spec: dict[str, Any] = {
        "template": {
            "metadata": {**made_of["metadata"], "labels": labels},
            "spec": {**made_of["spec"], **({"restartPolicy": "Never"} if "Job" in kind else {})},
        }
    }
    if kind == "CronJob":
        spec = {"schedule": "@yearly", "jobTemplate": {"spec": spec}}
    elif kind != "Job":
        spec |= {"selector": {"matchLabels": app}}
    if kind == "StatefulSet":
        spec |= {"serviceName": "w"}
    api_of, create = CREATE[kind]
    created = getattr(api_of(inside), f"{create}_with_http_info")
    body = {"metadata": {"name": "w", **metadata}, "spec": spec}
    return str(created("default", body, dry_run="All")[2].get("Warning") or "")


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet", "Job", "CronJob"])
def test_what_makes_pods_is_taken_with_a_warning(stack, kind):
    _, inside = stack
    wrong = pod(labels=NOWHERE, annotations=HALF)
    warning = until(lambda: _applied(inside, kind, wrong), 30)
    assert f"each pod of {kind} w in namespace default will be denied: it names queue nowhere" in (
        warning
    )
    assert "write the label kai.scheduler/queue: test" in warning
    assert _applied(inside, kind, RIGHT) == ""
    assert _applied(inside, kind, pod(scheduler=None)) == "", "it is nothing to KAI"


@pytest.mark.parametrize(
    "example", [item for item in EXAMPLES if item.shown_in(VERSION)], ids=lambda item: item.name
)
def test_pods_of_kais_own_examples_are_taken_where_kai_can_tell_their_queue(stack, example):
    _, inside = stack
    core = client.CoreV1Api(inside)
    assert list(example.pods)
    for created in example.pods:
        reported = sent(core, "default", created)
        assert (example.denied in reported) if example.denied else reported == "", reported


def test_what_a_controller_makes_has_no_warning(stack):
    """A ReplicaSet of a Deployment: who applied the Deployment was told."""
    _, inside = stack
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w", "uid": "u"}
    wrong = pod(labels=NOWHERE)
    assert _applied(inside, "ReplicaSet", wrong)
    assert not _applied(inside, "ReplicaSet", wrong, ownerReferences=[owner])


def _warning(core: client.CoreV1Api) -> str:
    created = core.create_namespaced_pod_with_http_info("default", BESIDE, dry_run="All")
    return str(created[2].get("Warning", ""))


def _allow(product: Product, action: str) -> None:
    product.edit(lambda config: config.update({"kai-fleet:guard": {"outsideQueues": action}}))
    product.up()


def test_gpus_beside_the_queues_are_denied_or_warned_of(stack):
    product, inside = stack
    core = client.CoreV1Api(inside)
    denial = sent(core, "default", BESIDE)
    assert (
        "pod p asks for nvidia.com/gpu beside the queues of team research;"
        " write schedulerName: kai-scheduler and the label kai.scheduler/queue" in denial
    )
    assert sent(core, "default", pod(labels=IN_TEST, limits=WHOLE)) == ""
    assert sent(core, "default", pod(scheduler=None)) == "", "it asks for no GPU"
    assert sent(core, "kai-scheduler", BESIDE) == "", "KAI's reservation pods are such pods"
    core.create_namespace({"metadata": {"name": "kai-scale-adjust"}})
    until(lambda: core.list_namespaced_service_account("kai-scale-adjust").items)
    assert sent(core, "kai-scale-adjust", BESIDE) == "", "KAI's scaling pods are such pods"

    _allow(product, "warn")
    until(lambda: not sent(core, "default", BESIDE), 30)
    assert "beside the queues of team research" in _warning(core)
    assert "names no queue" in sent(core, "default", pod()), "the queue guard still denies"


def test_a_bound_pod_is_let_be_by_a_guard_that_changes(stack):
    """KAI goes on writing on a pod whose queue is no longer the team's; people do not."""
    product, inside = stack
    core = client.CoreV1Api(inside)
    node = core.list_node().items[0].metadata.name
    assert sent(core, "default", pod("bound", IN_TEST, HALF, nodeName=node), dry=False) == ""

    def rename(config):
        parents = config["kai-fleet:teams"]["research"]["queues"]["default"]["children"]
        parents["other"] = parents.pop("test")

    product.edit(rename)
    product.up()
    remedy = "write the label kai.scheduler/queue: other"
    until(lambda: remedy in sent(core, "default", pod(labels=IN_TEST)), 30)
    written = {"runai-gpu-group": "g1", "kai.scheduler/subgroup-name": "default"}
    received = {"pod-group-name": "pg-1", "received-resource-type": "Fraction"}
    assert relabelled(core, "default", "bound", labels=written, annotations=received) == ""
    moved = relabelled(core, "default", "bound", labels={"kai.scheduler/queue": "ml"})
    assert "names queue ml" in moved
    more = relabelled(core, "default", "bound", annotations={"gpu-fraction": "0.9"})
    assert "names queue test" in more
    assert relabelled(core, "default", "bound", labels={"kai.scheduler/queue": "other"}) == ""
