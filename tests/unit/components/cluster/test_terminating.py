"""A namespace that is deleted and does not go: what keeps it, in a run and in the doctor."""

import time
from types import SimpleNamespace

import pytest
from pulumi import automation

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.cluster.terminating import causes, live
from kai_fleet_cli import hosts
from kai_fleet_cli.doctor.checks import leftovers
from kai_fleet_cli.doctor.snapshot import Cluster
from kai_fleet_cli.engine import deletions
from kai_fleet_cli.engine.deletions import Deletions
from kai_fleet_policies.finding import Command
from kai_usage.times import moment
from tests.unit.cli.recovery.test_held_up import HOST, SPACE, explained, going
from tests.unit.components.cluster.canned_api import kubeconfig, serving

NOW = moment("2026-11-28T20:41:00Z")  # a minute after the deletion
DELETED = {"deletionTimestamp": "2026-11-28T20:40:00Z"}
LATER = "2099-01-01T00:00:00Z"
SPACES = "/api/v1/namespaces/team-ml"
# As Kubernetes writes them, v1.27 to v1.36.
METRICS = "external.metrics.k8s.io/v1beta1"
UNSERVED = (
    "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server"
    f" APIs: {METRICS}: stale GroupVersion discovery: {METRICS}"
)
DISCOVERY = "NamespaceDeletionDiscoveryFailure"
GONE = "APIService v1beta1.external.metrics.k8s.io is of Service keda/keda-metrics, which is gone"
DELETE = "delete apiservice v1beta1.external.metrics.k8s.io"
NO_FINALIZERS = '--type merge -p \'{"metadata":{"finalizers":null}}\''


def api_service(name, reason="ServiceNotFound", status="False"):
    available = {"type": "Available", "status": status, "reason": reason}
    spec = {"service": {"namespace": "keda", "name": "keda-metrics"}}
    return {"metadata": {"name": name}, "spec": spec, "status": {"conditions": [available]}}


def pod(name, node, seconds="2026-11-28T20:40:30Z"):
    return {"metadata": {"name": name, "deletionTimestamp": seconds}, "spec": {"nodeName": node}}


def node(name, ready):
    return {
        "metadata": {"name": name},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


SERVICES = [
    api_service("v1beta1.metrics.k8s.io", status="True"),
    api_service("v1.of.others", "MissingEndpoints"),
    api_service("v1beta1.external.metrics.k8s.io"),
]
STATES = {
    "an APIService whose Service is gone": (
        going(UNSERVED, DISCOVERY),
        {"apiservices": SERVICES},
        [(GONE, DELETE)],
    ),
    "an APIService that does not answer": (
        going(UNSERVED, DISCOVERY),
        {"apiservices": [api_service("v1beta1.external.metrics.k8s.io", "MissingEndpoints")]},
        [
            (
                "APIService v1beta1.external.metrics.k8s.io does not answer: see that Service"
                f" keda/keda-metrics answers, or, if it is gone for good, {DELETE}",
                "",
            )
        ],
    ),
    "APIServices that may not be read": (going(UNSERVED, DISCOVERY), {}, [(UNSERVED, "")]),
    "pods on a node that is gone": (
        going("Some resources are remaining: pods. has 3 resource instances"),
        {
            "pods": [pod("a", "n1"), pod("b", "n1"), pod("c", "n2"), pod("d", "n1", LATER)],
            "nodes": [node("n1", "Unknown"), node("n2", "True")],
        },
        [
            (
                "node n1 does not answer, and pods a and b are on it. Start it; if it is gone for"
                " good, take its pods off",
                "taint node n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
            )
        ],
    ),
    "finalizers": (
        going("Some resources are remaining: services. has 3 resource instances"),
        {
            "services": [
                {"metadata": {"name": "a", "finalizers": ["x.y/z"], **DELETED}},
                {"metadata": {"name": "b", "finalizers": ["kubernetes.io/pvc"], **DELETED}},
                {"metadata": {"name": "c", "finalizers": ["x.y/z"], "deletionTimestamp": LATER}},
            ]
        },
        [("finalizers keep services a", f"patch services/a -n team-ml {NO_FINALIZERS}")],
    ),
    "a finalizer of its own": (
        going("", finalizers=["x.y/z"]),
        {},
        [
            (
                "finalizer x.y/z keeps the namespace itself",
                f"patch namespace/team-ml {NO_FINALIZERS}",
            )
        ],
    ),
    "a webhook that refuses": (
        going('admission webhook "a.b" denied the request', "NamespaceDeletionContentFailure"),
        {},
        [('admission webhook "a.b" denied the request', "")],
    ),
    "what ends by itself": (
        going("Some resources are remaining: pods. has 1 resource instances"),
        {"pods": [pod("a", "n1", LATER)], "nodes": [node("n1", "Unknown")]},
        [],
    ),
}


@pytest.fixture(params=STATES)
def broken(request):
    """A host with such a namespace: the namespace, its API, and what is to be said."""
    space, objects, expected = STATES[request.param]
    paths = {
        "apiservices": "/apis/apiregistration.k8s.io/v1/apiservices",
        "nodes": "/api/v1/nodes",
    }
    with serving() as (api, url):
        version = {"preferredVersion": {"groupVersion": "apiregistration.k8s.io/v1"}}
        api.answers["/apis/apiregistration.k8s.io"] = (200, version)
        api.answers[SPACES] = (200, space)
        for plural, items in objects.items():
            api.answers[paths.get(plural, f"{SPACES}/{plural}")] = (200, {"items": items})
        yield SimpleNamespace(space=space, url=url, objects=objects, expected=expected)


def test_what_keeps_a_namespace_is_named_with_the_command(broken):
    read = live(Api.of_kubeconfig(kubeconfig(broken.url)))
    found = causes(KubeObject(broken.space), read, NOW)
    assert [(each.words, each.kubectl) for each in found] == broken.expected


def test_the_doctor_says_the_same(broken):
    spaced = {"metadata": {"namespace": "team-ml"}}
    objects = {"namespaces": [broken.space]}
    for plural, items in broken.objects.items():
        of_space = {} if plural in ("nodes", "apiservices") else spaced["metadata"]
        objects[plural] = [{**item, "metadata": {**item["metadata"], **of_space}} for item in items]
    cluster = Cluster("host", objects=objects, now=NOW, kubectl="kubectl --context prod")
    found = list(leftovers.stuck(cluster, None))
    assert len(found) == bool(broken.expected)
    for words, command in broken.expected:
        assert words in found[0].cause
        assert Command(f"kubectl --context prod {command}") in found[0].fix or not command


def test_the_end_of_a_run_names_it_with_the_command(broken):
    space = {"urn": SPACE, "type": "kubernetes:core/v1:Namespace", "provider": f"{HOST}::id"}
    space["inputs"] = {"kind": "Namespace", "metadata": {"name": "team-ml"}}
    for message in ("timed out waiting for the condition", "object is being deleted: x exists"):
        said = explained(message, SPACE, space, host=broken.url)
        assert "namespace team-ml does not go" in said
        for words, command in broken.expected:
            assert words in said
            assert f"Repair it with: kubectl {command}" in said or not command


def test_what_is_to_be_made_in_it_is_told_of_the_namespace(broken):
    quota = {"urn": SPACE, "type": "kubernetes:core/v1:ResourceQuota", "provider": f"{HOST}::id"}
    quota["inputs"] = {"kind": "ResourceQuota", "metadata": {"name": "x", "namespace": "team-ml"}}
    refused = "forbidden: unable to create new content in namespace team-ml because it is being"
    said = explained(f"{refused} terminated", SPACE, quota, host=broken.url)
    assert "namespace team-ml does not go" in said


def event(kind, op="delete"):
    old = {"urn": SPACE, "type": "kubernetes:core/v1:Namespace", "parent": "", "provider": HOST}
    old["inputs"] = {"metadata": {"name": "team-ml"}}
    step = {"op": op, "urn": SPACE, "type": old["type"], "provider": f"{HOST}::id", "old": old}
    content = {"metadata": step, "status": 1, "steps": 1}
    return automation.EngineEvent.from_json({"sequence": 1, "timestamp": 0, kind: content})


@pytest.fixture
def looked(broken, monkeypatch, capsys):
    """What is said while the engine waits for a namespace, within a second."""
    monkeypatch.setattr(deletions, "_LOOK_SECONDS", 0.05)
    opened = Api.of_kubeconfig(kubeconfig(broken.url))
    monkeypatch.setattr(hosts, "host_of_stack", lambda _: opened)

    def run(op="delete"):
        watching = Deletions(SimpleNamespace(name="prod"))
        watching.note(event("resourcePreEvent", op))
        time.sleep(1.0)
        watching.note(event("resOutputsEvent", op))
        watching.close()
        return capsys.readouterr().err

    return run


def test_it_is_said_at_once_and_once_while_the_engine_waits(broken, looked):
    said = looked()
    assert said.count("namespace team-ml does not go") == bool(broken.expected)
    for words, command in broken.expected:
        assert words in said
        assert f"Meanwhile run: kubectl {command}" in said or not command
    assert looked("update") == ""


def test_an_api_service_that_does_not_answer_is_a_warning_before(broken):
    cluster = Cluster("host", objects={"apiservices": SERVICES, "namespaces": []})
    found = list(leftovers.api_services(cluster, None))
    assert [each.name for each in found] == ["v1.of.others", "v1beta1.external.metrics.k8s.io"]
    assert GONE in found[1].cause
    assert found[1].fix == (Command(f"kubectl {DELETE}"),)
