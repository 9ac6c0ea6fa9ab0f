"""A stand-in for KAI's scheduler, binder and pod-grouper, none of which runs in the sandbox.

It binds a pod of an existing leaf queue to a node with room, shares GPUs as the annotations say,
and creates the PodGroups and reservation pods that a reader of the guides looks for. It knows no
quotas, no priorities, no gangs and no preemption: what it binds, KAI might still keep waiting.
"""

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from kai_fleet.cluster.kube.objects import KubeObject
from kai_usage.keys import GPU_GROUP as GROUP
from kai_usage.keys import POD_GROUP, QUEUE_LABEL, SCHEDULER
from kai_usage.keys import RESERVATIONS as RESERVED
from sandbox.control_plane.kube_api import AdminApi, Object, RefusedError
from sandbox.kai.gpu_room import Room, gpu_request_of, groups, rooms
from sandbox.nodes.fake_nodes import NODES

PODS: Final = "/api/v1/pods"
QUEUES: Final = "/apis/scheduling.run.ai/v2/queues"
POD_GROUPS: Final = "/apis/scheduling.run.ai/v2alpha2"
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/kai-scheduler/deployments"
RESERVATIONS: Final = f"/api/v1/namespaces/{RESERVED}/pods"
# Whose pods a PodGroup or a reservation is for: "" of the cluster itself, or a vCluster's.
OF: Final = "kai-fleet/stand-in-for"
_TEMPLATES: Final = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
_NO_ROOM: Final = yaml.safe_load(_TEMPLATES)["no_room"]
_SCHEDULERS: Final = ("scheduler", "kai-scheduler-default")


@dataclass(frozen=True)
class Place:
    """Where pods are, and where the KAI that schedules them keeps its own objects.

    `name` and `namespace` are a vCluster's and that of its host where the host's KAI schedules,
    and empty where KAI is in the same cluster as the pods.
    """

    pods: AdminApi
    kai: AdminApi
    name: str = ""
    namespace: str = ""


class KaiBinder:
    """The stand-in for one cluster; `host`'s KAI schedules where none is inside."""

    def __init__(
        self, inside: AdminApi, host: AdminApi | None = None, namespace: str = "", name: str = ""
    ) -> None:
        self.own = Place(inside, inside)
        self.on_host = None if host is None else Place(inside, host, name, namespace)
        self._to_tidy = True  # an earlier process may have left objects

    def play(self) -> None:
        """Reconcile once: bind waiting pods, release what is unused. Raises KubeError."""
        listed = self.own.pods.get(PODS)["items"]
        pods = [pod for pod in listed if pod["spec"].get("schedulerName") == SCHEDULER]
        waiting = [pod for pod in pods if _waits(pod)]
        if waiting:
            for place in (self.own, self.on_host):
                if place is not None and _schedules(place.kai):
                    _bind(place, listed, waiting)
                    break
        if pods or self._to_tidy:
            _tidy(self.own, listed)
            if self.on_host is not None:
                _tidy(self.on_host, listed)
            self._to_tidy = bool(pods)

    def leave(self) -> None:
        """Release what pods of a removed vCluster hold on its host. Raises KubeError."""
        if self.on_host is not None:
            _tidy(self.on_host, [])


def _schedules(api: AdminApi) -> bool:
    """Whether a scheduler and a binder of KAI are reported available."""
    up = {
        each["metadata"]["name"]
        for each in api.served(DEPLOYMENTS)
        if KubeObject(each).is_true("Available")
    }
    return "binder" in up and bool(up.intersection(_SCHEDULERS))


def _waits(pod: Object) -> bool:
    return not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]


def _bind(place: Place, listed: list[Object], waiting: list[Object]) -> None:
    leaves = _leaves(place.kai)
    # On a host, those of all its vClusters hold GPUs.
    reserved = [] if place.kai is place.pods else place.kai.served(RESERVATIONS)
    free = rooms(place.pods.get(NODES)["items"], listed, reserved)
    for pod in sorted(waiting, key=lambda pod: str(pod["metadata"].get("creationTimestamp"))):
        queue = pod["metadata"].get("labels", {}).get(QUEUE_LABEL)
        if queue not in leaves:
            continue  # KAI leaves it Pending, in most versions without an event
        try:
            _group(place, pod, queue)
            if not any(_placed(place, pod, room) for room in free):
                _report_no_room(place.pods, pod)
        except RefusedError as why:
            if why.status not in (404, 409):  # deleted, or another client was quicker
                raise


def _leaves(kai: AdminApi) -> set[str]:
    queues = kai.served(QUEUES)
    parents = {queue["spec"].get("parentQueue") for queue in queues}
    return {queue["metadata"]["name"] for queue in queues} - parents


def _path(pod: Object) -> str:
    metadata = pod["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"


def _group(place: Place, pod: Object, queue: str) -> None:
    """Create a PodGroup for each pod, as KAI does for pods without a Job."""
    metadata = pod["metadata"]
    name = f"pg-{metadata['name']}-{metadata['uid']}"
    if metadata.get("annotations", {}).get(POD_GROUP) == name:
        return
    namespace = place.namespace or metadata["namespace"]  # beside the pod, as its scheduler sees it
    body: Object = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace, "labels": {OF: place.name}},
        "spec": {"minMember": 1, "queue": queue},
    }
    if place.kai is place.pods:  # then it goes with the pod by itself
        owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"]}
        body["metadata"]["ownerReferences"] = [{**owner, "uid": metadata["uid"]}]
    place.kai.ensure(f"{POD_GROUPS}/namespaces/{namespace}/podgroups", body)
    place.pods.patch(_path(pod), {"metadata": {"annotations": {POD_GROUP: name}}})
    metadata.setdefault("annotations", {})[POD_GROUP] = name


def _placed(place: Place, pod: Object, room: Room) -> bool:
    if not room.fits(pod):
        return False
    node = str(room.node["metadata"]["name"])
    request = gpu_request_of(pod)
    if request.shared:
        chosen = room.shareable(request)
        if chosen is None:
            return False
        assigned = [group or _reserve(place, node, room) for group in chosen]
        labels = {f"{GROUP}/{group}": group for group in assigned}
        if len(assigned) == 1:
            labels = {GROUP: assigned[0]}
        place.pods.patch(_path(pod), {"metadata": {"labels": labels}})
        pod["metadata"].setdefault("labels", {}).update(labels)
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    metadata = {"name": pod["metadata"]["name"]}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
    place.pods.post(f"{_path(pod)}/binding", binding)
    room.take(pod)
    return True


def _reserve(place: Place, node: str, room: Room) -> str:
    """Take a whole GPU of the node for a new group, by a reservation pod as KAI creates it."""
    group = str(uuid.uuid4())
    body: Object = yaml.safe_load(_TEMPLATES)["reservation"]
    body["metadata"]["name"] = f"gpu-reservation-{node}-{group[:5]}"
    body["metadata"]["labels"] |= {GROUP: group, OF: place.name}
    body["metadata"]["annotations"] = {"run.ai/reserve_for_gpu_index": f"GPU-{group}"}
    body["spec"]["nodeName"] = node
    place.kai.post(RESERVATIONS, body)
    room.take(body, reservation=True)
    return group


def _report_no_room(api: AdminApi, pod: Object) -> None:
    conditions = pod.get("status", {}).get("conditions", [])
    if not any(each.get("message") == _NO_ROOM["message"] for each in conditions):
        api.set_condition(_path(pod), _NO_ROOM)


def _tidy(place: Place, listed: list[Object]) -> None:
    """Delete reservation pods of GPUs that no pod shares, and PodGroups whose pod is gone."""
    used = {
        group
        for pod in listed
        if not KubeObject(pod).has_ended and pod["metadata"]["namespace"] != RESERVED
        for group in groups(pod)
    }
    if place.kai is place.pods:
        reserved = [pod for pod in listed if pod["metadata"].get("labels", {}).get(OF) == ""]
    else:
        reserved = _for_place(place, place.kai.served(RESERVATIONS))
        named = {pod["metadata"].get("annotations", {}).get(POD_GROUP) for pod in listed}
        for group in _for_place(place, place.kai.served(f"{POD_GROUPS}/podgroups")):
            metadata = group["metadata"]
            if metadata["name"] not in named:
                where = f"{POD_GROUPS}/namespaces/{metadata['namespace']}/podgroups"
                place.kai.delete(f"{where}/{metadata['name']}")
    for pod in reserved:
        if not used.intersection(groups(pod)):
            place.kai.delete(_path(pod))


def _for_place(place: Place, items: list[Object]) -> list[Object]:
    return [each for each in items if each["metadata"].get("labels", {}).get(OF) == place.name]
