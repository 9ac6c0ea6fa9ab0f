"""The stand-in for KAI's scheduler: which pods get a node, and how GPUs are shared."""

from typing import Any

import pytest

from kai_usage.keys import GPU_GROUP as GROUP
from sandbox.control_plane.kube_api import RefusedError
from sandbox.kai.binder import DEPLOYMENTS, POD_GROUPS, PODS, QUEUES, RESERVATIONS, KaiBinder
from sandbox.nodes.fake_nodes import fake_node
from tests.unit.sandbox.test_sandbox_objects import Objects

AVAILABLE = {"conditions": [{"type": "Available", "status": "True"}]}


class Cluster(Objects):
    """Pods of every namespace in one list, and bindings that take effect."""

    def get(self, path: str, **query: str) -> Any:
        if path != PODS:
            return super().get(path, **query)
        return {"items": [o for name, o in self.objects.items() if "/pods/" in name]}

    def find(self, path: str) -> Any:
        if path == f"{POD_GROUPS}/podgroups":
            return {"items": [o for name, o in self.objects.items() if "/podgroups/" in name]}
        return super().find(path)

    def post(self, path: str, body: Any) -> Any:
        if not path.endswith("/binding"):
            return super().post(path, body)
        pod = self.objects.get(path.removesuffix("/binding"))
        if pod is None:
            raise RefusedError(404, "Not Found")
        pod["spec"]["nodeName"] = body["target"]["name"]
        return body


def cluster(gpus: int = 2, kai: bool = True, memory: str = "10000", nodes: int = 1) -> Cluster:
    found = Cluster()
    for number in range(nodes):
        room = {"cpu": "8", "memory": "8Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
        node = fake_node(f"n{number}", {"nvidia.com/gpu.memory": memory}, room, room, [])
        node["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        found.objects[f"/api/v1/nodes/n{number}"] = node
    if kai:
        for name in ("scheduler", "binder"):
            found.objects[f"{DEPLOYMENTS}/{name}"] = {
                "metadata": {"name": name},
                "status": AVAILABLE,
            }
        for name, spec in (("top", {}), ("leaf", {"parentQueue": "top"})):
            found.objects[f"{QUEUES}/{name}"] = {"metadata": {"name": name}, "spec": spec}
    return found


def add(api: Cluster, name: str, queue: str | None = "leaf", requests=None, **annotations) -> Any:
    pod = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "labels": {"kai.scheduler/queue": queue} if queue else {},
            "annotations": {key.replace("_", "-"): value for key, value in annotations.items()},
        },
        "spec": {
            "schedulerName": "kai-scheduler",
            "containers": [{"resources": {"requests": requests or {}}}],
        },
    }
    api.objects[f"/api/v1/namespaces/default/pods/{name}"] = pod
    return pod


def node_of(pod):
    return pod["spec"].get("nodeName")


def reserved(api):
    return [name for name in api.objects if name.startswith(f"{RESERVATIONS}/")]


@pytest.mark.parametrize(
    ("queue", "bound"), [("leaf", "n0"), ("top", None), ("no", None), (None, None)]
)
def test_only_pods_of_leaf_queues_get_a_node(queue, bound):
    api = cluster()
    pod = add(api, "a", queue)
    KaiBinder(api).play()
    assert node_of(pod) == bound


def test_nothing_is_bound_while_kai_is_not_there():
    api = cluster(kai=False)
    pod = add(api, "a")
    KaiBinder(api).play()
    assert node_of(pod) is None


def test_fractions_share_a_gpu_until_it_is_full():
    api = cluster(gpus=2)
    parts = {"a": "0.7", "b": "0.2", "c": "0.5"}
    pods = [add(api, name, gpu_fraction=part) for name, part in parts.items()]
    KaiBinder(api).play()
    first, second, third = (pod["metadata"]["labels"][GROUP] for pod in pods)
    assert first == second != third
    assert len(reserved(api)) == 2, "each shared GPU is held by one reservation pod"


def test_a_gpu_is_whole_or_shared_but_not_both():
    api = cluster(gpus=1)
    whole = add(api, "a", requests={"nvidia.com/gpu": "1"})
    half = add(api, "b", gpu_fraction="0.5")
    KaiBinder(api).play()
    assert node_of(whole) == "n0"
    assert node_of(half) is None
    (condition,) = half["status"]["conditions"]
    assert "no node of the sandbox has room" in condition["message"]


def test_memory_counts_against_the_gpus_own():
    api = cluster(gpus=1, memory="10000")
    parts = {"a": "7000", "b": "3000", "c": "1000"}
    most, rest, more = (add(api, name, gpu_memory=part) for name, part in parts.items())
    KaiBinder(api).play()
    assert [node_of(pod) for pod in (most, rest, more)] == ["n0", "n0", None]


def test_processors_and_node_selectors_count():
    api = cluster(nodes=2)
    large = [add(api, name, requests={"cpu": "5"}) for name in "abc"]
    picky = add(api, "d")
    picky["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n1"}
    elsewhere = add(api, "e")
    elsewhere["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n9"}
    KaiBinder(api).play()
    assert [node_of(pod) for pod in large] == ["n0", "n1", None]
    assert (node_of(picky), node_of(elsewhere)) == ("n1", None)


def test_a_shared_gpu_is_given_back_with_its_last_pod():
    api = cluster(gpus=1)
    binder = KaiBinder(api)
    add(api, "a", gpu_fraction="0.5")
    add(api, "b", gpu_fraction="0.5")
    binder.play()
    del api.objects["/api/v1/namespaces/default/pods/a"]
    binder.play()
    assert len(reserved(api)) == 1
    del api.objects["/api/v1/namespaces/default/pods/b"]
    binder.play()
    assert reserved(api) == []


def test_the_hosts_kai_places_pods_of_a_vcluster_without_one():
    host, inside = cluster(gpus=1), cluster(gpus=1, kai=False)
    binder = KaiBinder(inside, host, "team-ml", "ml")
    pod = add(inside, "a", gpu_fraction="0.5")
    binder.play()
    assert node_of(pod) == "n0"
    (group,) = (name for name in host.objects if "/podgroups/" in name)
    assert group.startswith(f"{POD_GROUPS}/namespaces/team-ml/")
    assert len(reserved(host)) == 1
    assert reserved(inside) == []
    binder.leave()
    assert reserved(host) == []
    assert not [name for name in host.objects if "/podgroups/" in name]


def test_vclusters_of_one_host_do_not_get_the_same_gpu():
    host = cluster(gpus=1)
    first, second = cluster(gpus=1, kai=False), cluster(gpus=1, kai=False)
    mine, other = add(first, "a", gpu_fraction="0.5"), add(second, "b", gpu_fraction="0.5")
    KaiBinder(first, host, "team-a", "a").play()
    KaiBinder(second, host, "team-b", "b").play()
    assert (node_of(mine), node_of(other)) == ("n0", None)
