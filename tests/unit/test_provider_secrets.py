"""The function that reads a Secret, over gRPC as the engine asks it."""

from __future__ import annotations

import pytest

from provider.queue_plugin import QueuePlugin
from provider.tokens import SECRET
from provider.wire import Secret
from tests.unit.canned_api import kubeconfig, serving
from tests.unit.provider_harness import driven

PATH = "/api/v1/namespaces/team-ml/secrets/vc-ml"
ASKED = {"namespace": "team-ml", "name": "vc-ml"}


@pytest.fixture
def read():
    """Asks for the Secret, which the API answers as it is told to."""
    with serving() as (api, url), driven(QueuePlugin) as plugin:

        def ask(status: int, body: object) -> dict[str, object]:
            api.answers[PATH] = (status, body)
            return plugin.invoke(SECRET, ASKED | {"kubeconfig": kubeconfig(url)})

        yield ask


def test_what_it_holds_is_a_secret_to_the_engine_too(read):
    assert read(200, {"data": {"config": "dGV4dA=="}}) == {"data": Secret({"config": "dGV4dA=="})}


def test_an_empty_one_holds_nothing(read):
    assert read(200, {}) == {"data": Secret({})}


def test_one_that_is_not_there_is_an_answer(read):
    assert read(404, {}) == {"problem": "is not there"}


def test_what_hinders_is_said(read):
    assert read(403, {}) == {"problem": "cannot be read: the API answers 403 Forbidden"}


def test_no_api_is_an_answer_too():
    with driven(QueuePlugin) as plugin:
        nobody = kubeconfig("http://127.0.0.1:1")
        found = plugin.invoke(SECRET, ASKED | {"kubeconfig": nobody})
    assert found == {"problem": "cannot be read: the API does not answer (NewConnectionError)"}


def test_other_functions_are_refused_by_name():
    with driven(QueuePlugin) as plugin:
        said = plugin.fails(plugin.invoke, "kai-fleet:index:other", {})
    assert said == "the plugin of kai-fleet does not serve the function kai-fleet:index:other"
