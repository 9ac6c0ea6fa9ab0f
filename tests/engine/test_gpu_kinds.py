"""A team whose GPUs are slices (MIG): its pods get them, and no more and no others."""

from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from tests.engine.guarded_pods import pod
from tests.engine.product import Product, api, project, queues
from tests.engine.sandbox_commands import until

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]
SLICE = "nvidia.com/mig-1g.10gb"
IN_LAB = {"kai.scheduler/queue": "lab"}


@pytest.fixture(scope="module")
def inside(sandbox, tmp_path_factory):
    """The vCluster of the one team, which has four slices of the pool `slices`."""
    product = Product.of("sandbox", sandbox, project(tmp_path_factory.mktemp("mig") / "project"))

    def one_team(config: Any) -> None:
        config.pop("kai-fleet:teamStacks")
        config["kai-fleet:teams"] = {
            "research": {
                "scheduler": {"mode": "virtual", "version": "v0.16.8"},
                "nodePool": {"kai-fleet/pool": "slices"},
                "gpus": {SLICE: 4},
                "queues": {"lab": {}},
            }
        }

    product.edit(one_team, named=False)
    return api(product.up().outputs["kubeconfigs"]["research"])


def refusal(host: client.CoreV1Api, **limits: str) -> str:
    """What the host says of a pod as the vCluster syncs it; "" where it is let in."""
    body = pod(scheduler=None, limits=limits, nodeName="slices-1")
    del body["metadata"]["annotations"]
    try:
        host.create_namespaced_pod("team-research", body, dry_run="All")
    except ApiException as why:
        return str(why.body)
    return ""


def test_its_queue_may_hold_what_kai_counts_for_the_slices(inside):
    assert queues(inside)["lab"]["spec"]["resources"]["gpu"]["limit"] == 4


def test_a_pod_with_slices_gets_a_node(inside):
    core = client.CoreV1Api(inside)
    core.create_namespaced_pod("default", pod("cut", IN_LAB, limits={SLICE: "2"}))
    until(lambda: core.read_namespaced_pod("cut", "default").spec.node_name == "slices-1", 60)


def test_the_host_lets_in_what_is_granted_and_no_more(inside, sandbox):
    host = client.CoreV1Api(api(sandbox.kubeconfig.read_text()))
    assert refusal(host, **{SLICE: "4"}) == ""
    assert "exceeded quota: gpus" in refusal(host, **{SLICE: "5"})
    assert "a MIG profile in gpus" in refusal(host, **{"nvidia.com/mig-3g.40gb": "1"})
    assert "exceeded quota: gpus" in refusal(host, **{"nvidia.com/gpu": "1"})


def test_a_pod_beside_the_queues_is_refused_inside(inside):
    with pytest.raises(ApiException, match=f"asks for {SLICE} beside the queues"):
        client.CoreV1Api(inside).create_namespaced_pod(
            "default", pod("beside", scheduler=None, limits={SLICE: "1"})
        )
