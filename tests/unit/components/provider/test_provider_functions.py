"""The functions that read a Secret and an object of the host, over gRPC as the engine asks them."""

import pytest

from kai_fleet.names import EXISTING, SECRET
from kai_fleet.provider import PluginError
from kai_fleet.provider import plugin as served
from kai_fleet.provider.values import python_values, struct
from tests.unit.components.cluster import vcluster_secrets
from tests.unit.components.cluster.canned_api import kubeconfig, serving
from tests.unit.components.provider.plugin_process import secret, started

CLASS = "/apis/node.k8s.io/v1/runtimeclasses/nvidia"
PRIORITY = "/apis/scheduling.k8s.io/v1/priorityclasses/train"
NOTES = {"meta.helm.sh/release-name": "kai", "meta.helm.sh/release-namespace": "gpu"}
TAINT = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
NODES = [{"metadata": {"labels": {"pool": "ml"}}, "spec": {"taints": [TAINT]}}]
NAMES = {"namespace": "team-ml", "name": "vc-ml"}
NAMED = {"metadata": {"name": "ml", "namespace": "team-ml"}}  # a Service without a port
BARE = {"there": True, "labels": {}, "release": "None/None"}
BARE |= {"handler": None, "value": None, "spec": {}, "version": None}
REFUSED = "the API answers 403 Forbidden"


@pytest.fixture(scope="module")
def plugin():
    with started() as plugin:
        yield plugin


@pytest.fixture
def read(plugin):
    """Asks a function, of a cluster that answers so."""
    with serving() as (api, url):

        def ask(function, status, body, **arguments):
            api.otherwise = (status, body)
            return plugin.invoke(function, {**arguments, "kubeconfig": kubeconfig(url)})

        yield ask


@pytest.mark.parametrize(
    ("path", "status", "body", "answer"),
    [
        (
            CLASS,
            200,
            {"handler": "nvidia", "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}},
            BARE | {"handler": "nvidia", "labels": {"a": "b"}},
        ),
        ("/api", 200, {"kind": "APIVersions", "versions": ["v1"]}, BARE),
        ("/serves-a-version", 200, {"gitVersion": "v1.36.3"}, BARE | {"version": "v1.36.3"}),
        (CLASS, 404, {}, {"there": False}),
        (CLASS, 403, {}, {"problem": REFUSED, "away": False, "denied": True}),
        (
            PRIORITY,
            200,
            {"value": 50, "metadata": {"annotations": NOTES}},
            BARE | {"value": 50, "release": "gpu/kai"},
        ),
        (
            "/api/v1/nodes",
            200,
            {"items": NODES},
            {"there": True, "nodes": [{"labels": {"pool": "ml"}, "taints": [TAINT]}]},
        ),
    ],
)
def test_of_an_object_is_told_what_may_not_fit(read, path, status, body, answer):
    assert python_values(read(EXISTING, status, body, path=path)) == answer


@pytest.mark.parametrize("data", [{"config": "dGV4dA=="}, {}])
def test_what_a_secret_holds_is_secret_to_the_engine_too(read, data):
    assert read(SECRET, 200, {"data": data}, **NAMES) == struct({"data": secret(data)})


@pytest.mark.parametrize(
    ("answer", "found"),
    [((200, {"metadata": {"uid": "0d9f"}}), {"cluster": "0d9f"}), ((503, {}), {}), ((404, {}), {})],
)
def test_with_a_secret_comes_which_vcluster_answers_at_a_server(read, answer, found):
    data = vcluster_secrets.data()
    with vcluster_secrets.serving() as (inside, server):
        inside.answers["/api/v1/namespaces/kube-system"] = answer
        asked = {**NAMES, "server": server, "vcluster": "ml", "access": "NodePort", "host": ""}
        assert python_values(read(SECRET, 200, {**NAMED, "data": data}, **asked)) == {
            "data": data,
            **found,
        }
    gone = python_values(read(SECRET, 200, {**NAMED, "data": data}, **asked))
    assert gone == {"data": data}, "one that does not answer says nothing"
    planted = {"data": {"config": "bm9uZQ=="}}
    assert python_values(read(SECRET, 200, {**NAMED, **planted}, **asked)) == planted


@pytest.mark.parametrize(
    ("status", "body", "found"),
    [
        (200, {"spec": {"ports": [{"nodePort": 30007}]}}, {"server": "https://10.0.0.5:30007"}),
        (200, {"spec": {"ports": [{}]}}, {}),
        (404, {}, {}),
        (403, {}, {}),
    ],
)
def test_with_a_secret_comes_where_its_service_is_now(plugin, status, body, found):
    data = vcluster_secrets.data()
    asked = {**NAMES, "server": "https://10.0.0.5:1", "vcluster": "ml"}
    asked |= {"access": "NodePort", "host": "10.0.0.5"}
    service = {"metadata": {"name": "ml", "namespace": "team-ml"}, **body}
    with serving() as (api, url):
        api.answers["/api/v1/namespaces/team-ml/secrets/vc-ml"] = (200, {"data": data})
        api.answers["/api/v1/namespaces/team-ml/services/ml"] = (status, service)
        answer = python_values(plugin.invoke(SECRET, {**asked, "kubeconfig": kubeconfig(url)}))
    assert answer == {"data": data, **found}


def test_the_service_of_one_that_answers_is_not_read(plugin):
    data = vcluster_secrets.data()
    with vcluster_secrets.serving() as (inside, server), serving() as (api, url):
        inside.answers["/api/v1/namespaces/kube-system"] = (200, {"metadata": {"uid": "0d9f"}})
        path = "/api/v1/namespaces/team-ml/secrets/vc-ml"
        api.answers[path] = (200, {"data": data})
        asked = {**NAMES, "server": server, "vcluster": "ml", "access": "NodePort", "host": ""}
        answer = python_values(plugin.invoke(SECRET, {**asked, "kubeconfig": kubeconfig(url)}))
    assert answer == {"data": data, "cluster": "0d9f"}
    assert api.asked == [("GET", path)]


def test_what_hinders_is_an_answer(read):
    assert python_values(read(SECRET, 404, {}, **NAMES)) == {"problem": "is not there"}
    problem = f"cannot be read: {REFUSED}"
    refused = {"problem": problem, "away": False, "denied": True}
    assert python_values(read(SECRET, 403, {}, **NAMES)) == refused


@pytest.mark.parametrize("function", [SECRET, EXISTING])
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (kubeconfig("http://127.0.0.1:1"), "the API does not answer: it cannot be connected to"),
        ("nonsense: [", "the kubeconfig cannot be used: it is not YAML"),
    ],
)
def test_a_cluster_that_cannot_be_reached_is_an_answer_too(plugin, function, content, why):
    asked = {**NAMES, "path": CLASS, "kubeconfig": content}
    found = python_values(plugin.invoke(function, asked))
    assert found["problem"].startswith(f"{'cannot be read: ' if function == SECRET else ''}{why}")
    assert found["away"] is True


def fails(*arguments):
    raise OSError("no port is free")


@pytest.mark.parametrize(
    ("serve", "says"), [(fails, "no port is free"), (lambda *arguments: None, "TimeoutError")]
)
@pytest.mark.timeout(20)
def test_a_provider_in_this_process_that_does_not_start_is_not_waited_for(monkeypatch, serve, says):
    monkeypatch.setattr(served, "serve", serve)
    monkeypatch.setattr(served, "_START_SECONDS", 0.1, raising=False)
    with pytest.raises(PluginError, match=f"the provider does not start in this process: .*{says}"):
        served.serve_here()
