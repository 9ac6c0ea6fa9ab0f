"""What stands inside a vCluster: the guard of every namespace, warnings on templates of pods, and
GPUs beside the queues.
"""

from typing import Any

import pytest
from kubernetes import client

from tests.engine.guarded_pods import GUIDES, HALF, IN_TEST, WHOLE, pod, sent
from tests.engine.product import Product, api, project
from tests.engine.sandbox_commands import until
from tests.policies.kai_examples import EXAMPLES

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

VERSION = "v0.16.8"
NOWHERE = {"kai.scheduler/queue": "nowhere"}
RIGHT = pod(labels=IN_TEST, annotations=HALF)
BESIDE = pod(scheduler=None, limits=WHOLE)


@pytest.fixture(scope="module")
def stack(sandbox, tmp_path_factory):
    """The stack `sandbox` with one team in mode virtual."""
    product = Product.of("sandbox", sandbox, project(tmp_path_factory.mktemp("inside") / "project"))

    def one_team(config: Any) -> None:
        for name in [name for name in config["kai-fleet:teams"] if name != "research"]:
            del config["kai-fleet:teams"][name]
        config["kai-fleet:teams"]["research"]["scheduler"]["version"] = VERSION

    product.edit(one_team)
    return product, api(product.up().outputs["kubeconfigs"]["research"])


def test_every_namespace_is_guarded(stack):
    inside = client.CoreV1Api(stack[1])
    message = until(lambda: sent(inside, "default", pod()), 30)
    assert message.endswith("write the label kai.scheduler/queue: test")
    inside.create_namespace({"metadata": {"name": "later"}})
    until(lambda: inside.list_namespaced_service_account("later").items)
    assert "names queue ml" in sent(inside, "later", pod(labels={"kai.scheduler/queue": "ml"}))
    beside = GUIDES["001 research-pod"]  # a whole GPU, and Kubernetes' own scheduler
    assert "beside the queues of team research" in sent(inside, "default", beside)
    for body in GUIDES.values():
        if body is not beside:
            assert sent(inside, "default", body) == ""


def test_every_expression_is_of_the_types_of_what_it_judges(stack):
    """Otherwise `kubectl describe` shows an error of each kind of object."""
    _, inside = stack
    policies = client.AdmissionregistrationV1Api(inside)

    def checked():
        items = policies.list_validating_admission_policy().items
        return items if all(it.status and it.status.type_checking for it in items) else []

    found = {
        it.metadata.name: it.status.type_checking.expression_warnings for it in until(checked, 60)
    }
    assert found == {"kai-fleet-queues-research": None, "kai-fleet-outside-queues-research": None}


def test_kais_own_pods_pass_and_nobody_elses_do(stack):
    inside = client.CoreV1Api(stack[1])
    # As the binder makes it for a GPU that pods share.
    reservation = pod("gpu-reservation-n-x", {"runai-gpu-group": "g"}, None, None, WHOLE)
    for namespace in ("kai-scheduler", "kube-system"):
        assert sent(inside, namespace, reservation) == ""
        assert "where only the platform runs" in sent(inside, namespace, pod(labels=IN_TEST))


@pytest.mark.slow
def test_a_second_update_changes_nothing(stack):
    product, _ = stack
    assert product.up().changed == {}


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
    made = getattr(api_of(inside), f"{create}_with_http_info")
    body = {"metadata": {"name": "w", **metadata}, "spec": spec}
    return str(made("default", body, dry_run="All")[2].get("Warning") or "")


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
    "example", [it for it in EXAMPLES if it.shown_in(VERSION)], ids=lambda it: it.name
)
def test_pods_of_kais_own_examples_are_taken_where_kai_can_tell_their_queue(stack, example):
    _, inside = stack
    core = client.CoreV1Api(inside)
    until(lambda: sent(core, "default", pod()), 30)  # the guard is at work
    assert list(example.pods)
    for made in example.pods:
        said = sent(core, "default", made)
        assert (example.denied in said) if example.denied else said == "", said


def test_the_warning_says_what_the_denial_says(stack):
    _, inside = stack
    core = client.CoreV1Api(inside)
    for wrong in (
        pod(),
        pod(labels=IN_TEST, annotations={"gpu-fraction": "1.5"}),
        pod(labels=IN_TEST, annotations=HALF, limits=WHOLE),
        pod(annotations=HALF, scheduler=None, labels=IN_TEST),
        pod(labels={"runai/queue": "test"}),
    ):
        denial = until(lambda wrong=wrong: sent(core, "default", wrong), 30)
        said = denial.partition("pod p in namespace default")[2]
        assert said
        warning = _applied(inside, "Deployment", wrong).replace('\\"', '"')
        assert f"will be denied: it{said}" in warning
        assert "names queue ," not in warning, "what is not there is said once"


def test_what_a_controller_makes_has_no_warning(stack):
    """A ReplicaSet of a Deployment: who applied the Deployment was told."""
    _, inside = stack
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w", "uid": "u"}
    wrong = pod(labels=NOWHERE)
    assert _applied(inside, "ReplicaSet", wrong)
    assert not _applied(inside, "ReplicaSet", wrong, ownerReferences=[owner])


def _warning(core: client.CoreV1Api) -> str:
    made = core.create_namespaced_pod_with_http_info("default", BESIDE, dry_run="All")
    return str(made[2].get("Warning", ""))


def _allow(product: Product, action: str) -> None:
    product.edit(lambda config: config.update({"kai-fleet:guard": {"outsideQueues": action}}))
    product.up()


def test_gpus_beside_the_queues_are_denied_or_warned_of(stack):
    product, inside = stack
    core = client.CoreV1Api(inside)
    denial = until(lambda: sent(core, "default", BESIDE), 30)
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


@pytest.mark.slow
def test_gpus_beside_the_queues_can_be_allowed(stack):
    product, inside = stack
    core = client.CoreV1Api(inside)
    _allow(product, "allow")
    until(lambda: not _warning(core), 30)
    assert sent(core, "default", BESIDE) == ""
