"""The function that reads a Secret, over gRPC as the engine asks it."""

import pytest

from kai_fleet.provider import SECRET
from kai_fleet.provider.values import plain, struct
from tests.unit.canned_api import kubeconfig, serving
from tests.unit.plugin_process import said, secret, started

PATH = "/api/v1/namespaces/team-ml/secrets/vc-ml"
ASKED = {"namespace": "team-ml", "name": "vc-ml"}


@pytest.fixture(scope="module")
def plugin():
    with started() as plugin:
        yield plugin


@pytest.fixture
def read(plugin):
    """Asks for the Secret, which the API answers as it is told to."""
    with serving() as (api, url):

        def ask(status: int, body: object) -> dict[str, object]:
            api.answers[PATH] = (status, body)
            return plugin.invoke(SECRET, ASKED | {"kubeconfig": kubeconfig(url)})

        yield ask


def test_what_it_holds_is_a_secret_to_the_engine_too(read):
    assert read(200, {"data": {"config": "dGV4dA=="}}) == struct(
        {"data": secret({"config": "dGV4dA=="})}
    )


def test_an_empty_one_holds_nothing(read):
    assert read(200, {}) == struct({"data": secret({})})


def test_one_that_is_not_there_is_an_answer(read):
    assert plain(read(404, {})) == {"problem": "is not there"}


def test_what_hinders_is_said(read):
    problem = "cannot be read: the API answers 403 Forbidden"
    assert plain(read(403, {})) == {"problem": problem, "away": False}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (kubeconfig("http://127.0.0.1:1"), "the API does not answer: it cannot be connected to"),
        ("nonsense: [", "the kubeconfig cannot be used: it is not YAML"),
    ],
)
def test_a_cluster_that_cannot_be_reached_is_an_answer_too(plugin, content, why):
    found = plain(plugin.invoke(SECRET, ASKED | {"kubeconfig": content}))
    assert found["problem"].startswith(f"cannot be read: {why}")
    assert found["away"] is True


def test_other_functions_are_refused_by_name(plugin):
    error = plugin.fails(plugin.invoke, "kai-fleet:index:other", {})
    assert said(error) == "the plugin kai-fleet serves no function kai-fleet:index:other"
