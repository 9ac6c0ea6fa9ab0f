"""What a team stack's account can do to the queues of a host with a KAI: they have no namespace."""

from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from kubernetes.client.exceptions import ApiException

from tests.attacks.host import said
from tests.attacks.http import Http
from tests.engine.sandbox_commands import until

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

_CRDS = Path(__file__).parents[2] / "sandbox/charts/kai-scheduler/crds"
QUEUE_CRD = _CRDS / "scheduling.run.ai_queues.yaml"
QUEUES = "/apis/scheduling.run.ai/v2/queues"


@pytest.fixture(scope="module")
def tree(host):
    """The platform's queues, as objects."""
    admin = Http(host.admin)
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    admin.post(crds, yaml.safe_load(QUEUE_CRD.read_text()))

    def served():
        with suppress(ApiException):
            return admin.items(QUEUES) is not None
        return False

    assert until(served, 30)
    for name, parent in (("all", None), ("nlp", "all"), ("audio", "all"), ("audio-live", "all")):
        admin.post(QUEUES, queue(name, parent))
    yield
    admin.ask("DELETE", f"{crds}/queues.scheduling.run.ai")


def queue(name, parent):
    spec = {"resources": {}, **({"parentQueue": parent} if parent else {})}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    ("method", "name", "body"),
    [
        ("POST", "", queue("nlp-more", "audio")),
        ("POST", "", queue("audio-x", "all")),
        ("POST", "", queue("audio-x", "nlp")),
        ("POST", "", queue("audio-x", None)),
        ("POST", "", queue("audio-live-x", "audio")),
        ("POST", "", queue("audio-x", "audio-live")),
        ("DELETE", "/audio", None),
        ("DELETE", "/audio-live", None),
        ("DELETE", "/nlp", None),
        ("PATCH", "/audio", [{"op": "add", "path": "/spec/parentQueue", "value": "audio-x"}]),
        ("PATCH", "/audio", [{"op": "add", "path": "/spec/priority", "value": 999}]),
        ("PATCH", "/nlp", [{"op": "add", "path": "/spec/priority", "value": 999}]),
    ],
)
def test_a_team_stack_writes_no_queue_but_below_its_own(host, method, name, body):
    with pytest.raises(ApiException) as refused:
        Http(host.accounts["stack audio"]).ask(method, f"{QUEUES}{name}", body, dryRun="All")
    assert refused.value.status == 422 or refused.value.status == 403
    assert "may write only queues named audio or audio-" in said(refused.value)


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    ("method", "name", "body"),
    [
        ("POST", "", queue("audio-x", "audio-x")),
        ("POST", "", queue("audio-x", "audio-y")),
        ("PATCH", "/audio-a", [{"op": "replace", "path": "/spec/parentQueue", "value": "audio-a"}]),
        (
            "PATCH",
            "/audio-a",
            [{"op": "replace", "path": "/spec/parentQueue", "value": "audio-a-b"}],
        ),
    ],
)
def test_a_team_stack_makes_no_ring_of_queues(host, method, name, body):
    """In a ring KAI's scheduler never gets to the top: it would stop for every team."""
    api = Http(host.accounts["stack audio"])
    api.post(QUEUES, queue("audio-a", "audio"))
    api.post(QUEUES, queue("audio-a-b", "audio-a"))
    try:
        with pytest.raises(ApiException) as refused:
            api.ask(method, f"{QUEUES}{name}", body, dryRun="All")
        assert "only below queues with shorter names than its own" in said(refused.value)
    finally:
        api.ask("DELETE", f"{QUEUES}/audio-a-b")
        api.ask("DELETE", f"{QUEUES}/audio-a")


@pytest.mark.usefixtures("tree")
def test_a_queue_that_hangs_below_a_longer_name_already_may_change(host):
    api, admin = Http(host.accounts["stack audio"]), Http(host.admin)
    api.post(QUEUES, queue("audio-research", "audio"))
    admin.post(QUEUES, queue("audio-x", "audio-research"))  # as versions before this one let it
    try:
        priority = [{"op": "add", "path": "/spec/priority", "value": 9}]
        api.ask("PATCH", f"{QUEUES}/audio-x", priority, dryRun="All")
        up = [{"op": "replace", "path": "/spec/parentQueue", "value": "audio"}]
        api.ask("PATCH", f"{QUEUES}/audio-x", up)
    finally:
        api.ask("DELETE", f"{QUEUES}/audio-x")
        api.ask("DELETE", f"{QUEUES}/audio-research")


@pytest.mark.usefixtures("tree")
def test_a_team_stack_writes_queues_below_its_own(host):
    api = Http(host.accounts["stack audio"])
    api.post(QUEUES, queue("audio-train", "audio"))
    api.post(QUEUES, queue("audio-train-night", "audio-train"), dryRun="All")
    api.ask("DELETE", f"{QUEUES}/audio-train")
