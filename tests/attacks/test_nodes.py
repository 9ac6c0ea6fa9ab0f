"""Nodes that their taint keeps for the platform: who is placed there by the host's scheduler."""

from contextlib import suppress

import pytest
from kubernetes.client.exceptions import ApiException

from kai_fleet.cluster.kube.objects import KubeObject
from sandbox.nodes.fake_nodes import EVERY_NODE, NODES, POOL_LABEL, fake_node
from tests.attacks.http import Http
from tests.attacks.objects import control_plane, pod
from tests.engine.sandbox_commands import until

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

NODE = "platform-9"
TOLERATED = [{"key": "dedicated", "operator": "Exists"}]
TAINT = {"key": "dedicated", "value": "platform", "effect": "NoSchedule"}


@pytest.fixture(scope="module", autouse=True)
def node(host):
    """A node of the platform's pool with a taint of another key than the pool's label."""
    admin = Http(host.admin)
    room = {**EVERY_NODE, "cpu": "16", "memory": "64Gi"}
    admin.post(NODES, fake_node(NODE, {POOL_LABEL: "platform"}, room, room, [TAINT]))
    assert until(lambda: KubeObject(admin.get(f"{NODES}/{NODE}")).is_ready, 30)
    yield
    admin.ask("DELETE", f"{NODES}/{NODE}")


@pytest.mark.parametrize("team", ["ml", "tight", "dev", "mig", "nlp", "sim"])
def test_the_control_plane_of_every_team_is_placed_there(host, team):
    template = control_plane(team)
    template["spec"]["tolerations"] = TOLERATED
    labels = template["metadata"]["labels"]
    spec = {"serviceName": team, "selector": {"matchLabels": labels}, "template": template}
    admin, sets = Http(host.admin), f"/apis/apps/v1/namespaces/team-{team}/statefulsets"
    admin.post(sets, {"metadata": {"name": team}, "spec": spec})
    try:
        assert until(lambda: _node_of(admin, team, f"{team}-0") == NODE, 30)
    finally:
        admin.ask("DELETE", f"{sets}/{team}")


@pytest.mark.parametrize("team", ["sim"])
def test_no_other_pod_is_whatever_it_tolerates_and_its_event_says_what_to_write(host, team):
    body = pod(
        team,
        name="elsewhere",
        tolerations=TOLERATED,
        nodeSelector={"kubernetes.io/hostname": NODE},
    )
    api, space = Http(host.accounts[f"vcluster {team}"]), f"/api/v1/namespaces/team-{team}"
    api.post(f"{space}/pods", body)
    try:
        words = f"node {NODE} is not one of the nodes of team-{team}; drop the toleration of its"
        assert until(lambda: any(words in event for event in _events(host, space, "elsewhere")), 30)
        assert _node_of(api, team, "elsewhere") is None
    finally:
        api.ask("DELETE", f"{space}/pods/elsewhere", gracePeriodSeconds="0")


def _node_of(api: Http, team: str, name: str) -> str | None:
    with suppress(ApiException):
        found = api.get(f"/api/v1/namespaces/team-{team}/pods/{name}")["spec"]
        return str(found["nodeName"]) if "nodeName" in found else None
    return None


def _events(host, space: str, name: str) -> list[str]:
    listed = Http(host.admin).items(f"{space}/events")
    return [item["message"] for item in listed if item["involvedObject"]["name"] == name]
