"""What the sandbox writes to APIs: nodes, RuntimeClasses, volumes, KAI's conditions."""

import copy
from typing import Any

from kai_fleet import releases
from sandbox.control_plane import volumes
from sandbox.control_plane.kube_api import AdminApi, RefusedError
from sandbox.kai import kai_operator
from sandbox.nodes.fake_nodes import fake_node
from sandbox.vcluster.syncer import sync_nodes


class Objects(AdminApi):
    """An API in memory: objects by path, lists by the path's beginning, merge patches."""

    def __init__(self, **objects: Any) -> None:
        self.objects: dict[str, Any] = objects
        self.calls: list[str] = []

    def get(self, path: str, **query: str) -> Any:
        if path in self.objects:
            return copy.deepcopy(self.objects[path])
        below = [item for name, item in self.objects.items() if name.startswith(path + "/")]
        return {"items": copy.deepcopy(below)}

    def find(self, path: str) -> Any:
        if path in self.objects or not any(name.startswith(f"{path}/") for name in self.objects):
            return copy.deepcopy(self.objects.get(path))
        return self.get(path)

    def post(self, path: str, body: Any) -> Any:
        name = f"{path}/{body['metadata']['name']}"
        if name in self.objects:
            raise RefusedError(409, "Conflict")
        self.calls.append(f"POST {name}")
        self.objects[name] = copy.deepcopy(body)
        if path == kai_operator.CONFIGS:
            self.objects[name]["metadata"]["uid"] = "given-by-the-server"
        return body

    def patch(self, path: str, body: Any) -> Any:
        self.calls.append(f"PATCH {path}")
        _merge(self.objects[path.removesuffix("/status")], body)
        return body

    def apply(self, path: str, body: Any) -> None:
        """As the API server: a status is written by its own path only, conditions by others."""
        self.calls.append(f"APPLY {path}")
        name, new = path.removesuffix("/status"), copy.deepcopy(body)
        status = self.objects.get(name, {}).get("status", {})
        if path.endswith("/status"):
            self.objects[name]["status"] = {**status, **new["status"]}
        else:
            self.objects[name] = {**new, "status": status}

    def set_condition(self, path: str, condition: Any) -> None:
        self.calls.append(f"PATCH {path}/status")
        status = self.objects[path].setdefault("status", {})
        others = [
            entry for entry in status.get("conditions", []) if entry["type"] != condition["type"]
        ]
        status["conditions"] = [*others, dict(condition)]

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


def claim(name: str, **changes: Any) -> dict[str, Any]:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "5Gi"}},
        "storageClassName": "sandbox",
    }
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "annotations": {volumes.NODE: "ml-1"},
        },
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


def test_a_claim_that_no_pod_waits_for_gets_none() -> None:
    early = claim("early")
    del early["metadata"]["annotations"]
    api = Objects(**{f"{volumes.CLAIMS}/early": early})
    volumes.provide(api)
    assert api.calls == []


def test_released_volumes_go_and_foreign_ones_stay() -> None:
    foreign = {"metadata": {"name": "nfs"}, "spec": {}, "status": {"phase": "Released"}}
    ours = {**volumes.volume_for(claim("gone")), "status": {"phase": "Released"}}
    api = Objects(**{f"{volumes.VOLUMES}/nfs": foreign, f"{volumes.VOLUMES}/pvc-uid-gone": ours})
    volumes.provide(api)
    assert set(api.objects) == {f"{volumes.VOLUMES}/nfs"}


def operator(version: str) -> dict[str, Any]:
    """The Deployment of KAI's operator, as the stand-in chart declares it, and available."""
    containers = [{"image": f"stand-in.invalid/kai-scheduler/operator:{version}"}]
    return {
        "metadata": {"name": "kai-operator", "labels": {"kai-fleet/stand-in": "true"}},
        "spec": {"template": {"spec": {"containers": containers}}},
        "status": {"conditions": [{"type": "Available", "status": "True"}]},
    }


def of_kai(kind: str, name: str) -> dict[str, Any]:
    metadata = {"name": name, "uid": f"uid-{name}", "generation": 2}
    return {"apiVersion": "kai.scheduler/v1", "kind": kind, "metadata": metadata}


def installed(version: str, **more: Any) -> Objects:
    """An API as Helm leaves it."""
    return Objects(
        **{
            kai_operator.OPERATOR: operator(version),
            kai_operator.CONFIG: of_kai("Config", "kai-config"),
            **more,
        }
    )


def parts(api: Objects) -> set[str]:
    path = f"{kai_operator.DEPLOYMENTS}/"
    return {name.removeprefix(path) for name in api.objects if name.startswith(path)}


def test_the_operator_makes_its_versions_parts_and_then_says_that_it_is_ready() -> None:
    api = installed("v0.16.8", **{kai_operator.SHARD: of_kai("SchedulingShard", "default")})
    kai_operator.play(api)
    assert parts(api) == set(releases.KAI["v0.16.8"].deployments)
    assert "status" not in api.objects[kai_operator.CONFIG], "not before they are available"
    for name in parts(api):
        api.objects[f"{kai_operator.DEPLOYMENTS}/{name}"]["status"] = operator("")["status"]
    kai_operator.play(api)
    for path in (kai_operator.CONFIG, kai_operator.SHARD):
        [condition] = api.objects[path]["status"]["conditions"]
        assert (condition["type"], condition["observedGeneration"]) == ("Ready", 2)
    api.calls.clear()
    kai_operator.play(api)
    assert api.calls == []


def test_an_operator_that_is_not_available_does_nothing() -> None:
    api = installed("v0.16.8")
    del api.objects[kai_operator.OPERATOR]["status"]
    kai_operator.play(api)
    assert api.calls == []


def test_an_operator_of_v0_9_waits_for_cluster_policies() -> None:
    api = installed("v0.9.3")
    kai_operator.play(api)
    assert parts(api) == {"kai-operator"}
    api.objects[f"{kai_operator.CRDS}/clusterpolicies.nvidia.com"] = {}
    kai_operator.play(api)
    assert parts(api) == set(releases.KAI["v0.9.3"].deployments)


def test_a_deleted_config_takes_its_parts_and_webhooks_along() -> None:
    api = installed("v0.16.8")
    kai_operator.play(api)
    assert [name for name in api.objects if "webhookconfigurations/" in name]
    del api.objects[kai_operator.CONFIG]
    kai_operator.play(api)
    assert parts(api) == {"kai-operator"}
    assert not [name for name in api.objects if "webhookconfigurations/" in name]
