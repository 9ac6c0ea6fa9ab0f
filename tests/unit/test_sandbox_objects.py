"""What the sandbox writes to APIs: nodes, RuntimeClasses, volumes, KAI's conditions."""

import copy
from typing import Any

from sandbox import kai_operator, volumes
from sandbox.kube_api import Api, ApiError
from sandbox.nodes import fake_node, host_nodes
from sandbox.syncer import selected, sync_nodes, sync_runtime_classes


class Objects(Api):
    """An API in memory: objects by path, lists by the path's beginning, merge patches."""

    def __init__(self, **objects: Any) -> None:
        self.objects: dict[str, Any] = objects
        self.calls: list[str] = []

    def get(self, path: str, selector: str = "") -> Any:
        if path in self.objects:
            return copy.deepcopy(self.objects[path])
        below = [item for name, item in self.objects.items() if name.startswith(path + "/")]
        return {"items": copy.deepcopy(below)}

    def find(self, path: str) -> Any:
        return copy.deepcopy(self.objects.get(path))

    def post(self, path: str, body: Any) -> Any:
        name = f"{path}/{body['metadata']['name']}"
        if name in self.objects:
            raise ApiError(409, "already exists")
        self.calls.append(f"POST {name}")
        self.objects[name] = copy.deepcopy(body)
        return body

    def patch(self, path: str, body: Any) -> Any:
        self.calls.append(f"PATCH {path}")
        _merge(self.objects[path.removesuffix("/status")], body)
        return body

    def delete(self, path: str) -> None:
        self.calls.append(f"DELETE {path}")
        self.objects.pop(path, None)


def _merge(into: dict[str, Any], patch: dict[str, Any]) -> None:
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict):
            _merge(into.setdefault(key, {}), value)
        else:
            into[key] = value


def pool_node(name: str, pool: str, gpus: str = "8") -> dict[str, Any]:
    resources = {"cpu": "4", "nvidia.com/gpu": gpus}
    return fake_node(name, {"pool": pool}, resources, resources, [])


def test_only_nodes_of_the_pool_are_selected() -> None:
    nodes = [pool_node("a", "ml"), pool_node("b", "research")]
    assert [node["metadata"]["name"] for node in selected(nodes, {"pool": "ml"})] == ["a"]
    assert len(selected(nodes, {})) == 2
    assert selected(nodes, {"pool": "ml", "zone": "x"}) == []


def test_nodes_follow_the_host() -> None:
    inside = Objects()
    sync_nodes(inside, [pool_node("a", "ml"), pool_node("b", "ml")])
    assert set(inside.objects) == {"/api/v1/nodes/a", "/api/v1/nodes/b"}
    inside.calls.clear()
    sync_nodes(inside, [pool_node("a", "ml"), pool_node("b", "ml")])
    assert inside.calls == []  # nothing changed, nothing written
    changed = pool_node("a", "vision", gpus="4")
    changed["spec"]["taints"] = [{"key": "k", "effect": "NoSchedule"}]
    sync_nodes(inside, [changed])
    assert set(inside.objects) == {"/api/v1/nodes/a"}
    node = inside.objects["/api/v1/nodes/a"]
    assert node["metadata"]["labels"]["pool"] == "vision"
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    assert node["spec"]["taints"] == [{"key": "k", "effect": "NoSchedule"}]


def test_conditions_are_left_to_the_inner_kwok() -> None:
    inside = Objects()
    sync_nodes(inside, [pool_node("a", "ml")])
    inside.objects["/api/v1/nodes/a"]["status"]["conditions"] = ["of its own"]
    sync_nodes(inside, [pool_node("a", "ml", gpus="4")])
    assert inside.objects["/api/v1/nodes/a"]["status"]["conditions"] == ["of its own"]


def test_runtime_classes_follow_the_host() -> None:
    inside = Objects()
    nvidia = {"metadata": {"name": "nvidia", "uid": "host"}, "handler": "nvidia"}
    sync_runtime_classes(inside, [nvidia])
    path = "/apis/node.k8s.io/v1/runtimeclasses/nvidia"
    assert inside.objects[path]["handler"] == "nvidia"
    assert "uid" not in inside.objects[path]["metadata"]
    sync_runtime_classes(inside, [{**nvidia, "handler": "other"}])
    assert inside.objects[path]["handler"] == "other"
    sync_runtime_classes(inside, [])
    assert path not in inside.objects


def claim(name: str, **changes: Any) -> dict[str, Any]:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "5Gi"}},
        "storageClassName": "sandbox",
    }
    return {
        "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}"},
        "spec": {**spec, **changes},
        "status": {"phase": "Pending"},
    }


def test_waiting_claims_get_a_volume_once() -> None:
    api = Objects(
        **{
            f"{volumes.CLAIMS}/ours": claim("ours"),
            f"{volumes.CLAIMS}/theirs": claim("theirs", storageClassName="fast"),
        }
    )
    volumes.provide(api)
    volume = api.objects[f"{volumes.VOLUMES}/pvc-uid-ours"]
    assert volume["spec"]["claimRef"]["name"] == "ours"
    assert volume["spec"]["capacity"] == {"storage": "5Gi"}
    assert f"{volumes.VOLUMES}/pvc-uid-theirs" not in api.objects
    volume["status"] = {"phase": "Available"}
    api.calls.clear()
    volumes.provide(api)
    assert api.calls == []


def test_released_volumes_go_and_foreign_ones_stay() -> None:
    foreign = {"metadata": {"name": "nfs"}, "spec": {}, "status": {"phase": "Released"}}
    ours = {**volumes.volume_for(claim("gone")), "status": {"phase": "Released"}}
    api = Objects(**{f"{volumes.VOLUMES}/nfs": foreign, f"{volumes.VOLUMES}/pvc-uid-gone": ours})
    volumes.provide(api)
    assert set(api.objects) == {f"{volumes.VOLUMES}/nfs"}


KAI = f"{kai_operator.GROUP}/{kai_operator.OBJECTS[0]}"


def test_kai_is_ready_only_with_its_operator() -> None:
    waiting = {"metadata": {"name": "kai-config", "generation": 2}}
    api = Objects(**{KAI: waiting})
    kai_operator.report_ready(api)
    assert api.calls == []
    available = {"status": {"conditions": [{"type": "Available", "status": "True"}]}}
    api.objects[kai_operator.OPERATOR] = available
    kai_operator.report_ready(api)
    [condition] = api.objects[KAI]["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Ready", "True")
    assert condition["observedGeneration"] == 2
    api.calls.clear()
    kai_operator.report_ready(api)
    assert api.calls == []


def test_every_node_of_the_host_is_in_one_pool() -> None:
    nodes = list(host_nodes())
    names = [node["metadata"]["name"] for node in nodes]
    assert len(names) == len(set(names))
    pools = {node["metadata"]["labels"]["kai-fleet/pool"] for node in nodes}
    assert pools == {"system", "ml", "research", "dev", "vision", "nlp"}
    for node in nodes:
        gpu = "nvidia.com/gpu" in node["status"]["allocatable"]
        assert gpu == (node["metadata"]["labels"].get("nvidia.com/gpu.present") == "true")
        assert gpu == ("nvidia.com/gpu.memory" in node["metadata"]["labels"])
