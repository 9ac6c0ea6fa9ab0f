"""Kubernetes objects from an API server; absent fields read as empty."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from kai_fleet.values import pairs
from kai_usage import objects
from kai_usage.quantities import parse_quantity

# JSON from an API server, about which nothing is known.
Fields = Mapping[str, Any]
Labels = Mapping[str, str]
# What reading a malformed object may raise; a tenant's API server can send any.
MALFORMED = (KeyError, TypeError, AttributeError, ValueError, IndexError, ArithmeticError)
# The name of the device plugin's container in NVIDIA's operator, chart and manifests, and on GKE.
# Its image would not do: feature discovery and MPS run the same one.
_DEVICE_PLUGIN = re.compile(r"nvidia-(gpu-)?device-plugin(-ctr)?")
OUT_OF_MEMORY = "OOMKilled"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,252}")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
_LABEL_KEY = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


class Killed(NamedTuple):
    """A container that the kernel killed for memory.

    `restarts` counts all restarts of the container. `ended_at` is the time stamp of the kill, as
    the API server sent it.
    """

    container: str
    restarts: int
    ended_at: object

    @property
    def sentence(self) -> str:
        """What happened, as a clause for a message."""
        reason = OUT_OF_MEMORY
        if self.restarts > 1:
            reason += f", {self.restarts} restarts"
        return f"container {self.container} was killed for memory ({reason})"


class KubeObject(dict[str, Any]):
    """One object. Properties and methods raise one of MALFORMED if the object is malformed.

    Texts of a tenant's object are the tenant's: `Api` removes control characters, and only
    `well_named` checks names and labels.
    """

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self["metadata"]["name"])

    namespace = cached_property(objects.namespace_of)
    """The object's namespace, "" for an object of the whole cluster."""

    @property
    def namespaced_name(self) -> str:
        """`namespace/name`, as Kubernetes writes it."""
        return f"{self.namespace}/{self.name}"

    labels = cached_property(objects.labels_of)
    """The object's labels."""
    annotations = cached_property(objects.annotations_of)
    """The object's annotations."""
    spec = cached_property(objects.spec_of)
    """The object's spec."""
    status = cached_property(objects.status_of)
    """The object's status."""

    @property
    def phase(self) -> str | None:
        """The phase in the status: of a pod Pending, Running, Succeeded or Failed.

        None without one.
        """
        return self.status.get("phase")

    has_ended = cached_property(objects.has_ended)
    """Whether a pod has terminated."""
    condition = objects.condition
    """The first condition of a type; empty without one."""
    is_true = objects.is_true
    """Whether the condition of a type has the status True."""

    @property
    def is_ready(self) -> bool:
        """Whether the condition Ready is True for the newest generation.

        A condition without `observedGeneration` counts for the newest one.
        """
        newest = self["metadata"].get("generation")
        observed = self.condition("Ready").get("observedGeneration", newest)
        return self.is_true("Ready") and observed == newest

    @property
    def is_default_class(self) -> bool:
        """Whether a StorageClass is the default one."""
        return self.annotations.get("storageclass.kubernetes.io/is-default-class") == "true"

    @property
    def unscheduled(self) -> str:
        """The scheduler's message why a pod has no node; "" without one."""
        return str(self.condition("PodScheduled").get("message") or "")

    @property
    def waiting(self) -> Iterator[str]:
        """`REASON MESSAGE` of each container of a pod that waits to start, init ones first."""
        return objects.waiting_containers(self)

    @property
    def killed_for_memory(self) -> Iterator["Killed"]:
        """The containers of a pod that the kernel killed for memory, each once; init ones first.

        A container counts while it runs again, too: its last state is kept.
        """
        init_containers = self.status.get("initContainerStatuses") or []
        for container in [*init_containers, *(self.status.get("containerStatuses") or [])]:
            for key in ("state", "lastState"):
                ended = (container.get(key) or {}).get("terminated") or {}
                if ended.get("reason") == OUT_OF_MEMORY:
                    restarts = int(container.get("restartCount") or 0)
                    yield Killed(str(container.get("name")), restarts, ended.get("finishedAt"))
                    break

    @property
    def container_messages(self) -> Iterator[str]:
        """What killed a pod's containers, then the message of each last state and state.

        A state without a message yields "". States of init containers are left out.
        """
        for killed in self.killed_for_memory:
            yield killed.sentence
        for container in self.status.get("containerStatuses") or []:
            for key in ("lastState", "state"):
                for detail in (container.get(key) or {}).values():
                    yield str((detail or {}).get("message") or "")

    @property
    def messages(self) -> Iterator[str]:
        """Messages in a pod's status, the one that says most first; some are "".

        That of the scheduler, those of containers that wait, init ones too, `container_messages`,
        and that of the pod. Other conditions are not read.
        """
        yield self.unscheduled
        yield from self.waiting
        yield from self.container_messages
        yield str(self.status.get("message") or "")

    @property
    def finalizers(self) -> list[str]:
        """The finalizers that keep the object while it is being deleted."""
        return [str(name) for name in self["metadata"].get("finalizers") or []]

    @property
    def is_being_deleted(self) -> bool:
        """Whether the object is being deleted, which kubectl shows as Terminating."""
        return "deletionTimestamp" in self["metadata"]

    @property
    def containers(self) -> list[Fields]:
        """The containers of a pod, or of a workload's pod template; init containers first.

        Ephemeral containers are left out.
        """
        pod = self.spec.get("template", {}).get("spec") or self.spec
        init_containers = pod.get("initContainers") or []
        return [*init_containers, *(pod.get("containers") or [])]

    def made_by(self, deployments: Iterable[str]) -> str:
        """The name of the Deployment, among these, that created this pod; "" for none.

        A pod's name begins with its Deployment's name; the longest such name wins.
        """
        names = [name for name in deployments if self.name.startswith(f"{name}-")]
        return max(names, key=len, default="")

    @property
    def is_device_plugin(self) -> bool:
        """Whether a pod, or a workload's pods, run NVIDIA's device plugin: it advertises GPUs."""
        names = [str(container.get("name")) for container in self.containers]
        return any(_DEVICE_PLUGIN.fullmatch(name) for name in names)

    @property
    def rolled_out(self) -> bool:
        """Whether the rollout of a Deployment or StatefulSet is complete.

        All replicas are updated and available, and no old replica is left. Other than for kubectl,
        a workload with 0 replicas is not rolled out.
        """
        status = self.status
        if status.get("observedGeneration", 0) < self["metadata"].get("generation", 0):
            return False
        desired = self.spec.get("replicas", 1)
        updated = status.get("updatedReplicas", 0)
        ready = min(updated, status.get("availableReplicas", 0))
        return bool(ready >= desired > 0 and status.get("replicas", 0) <= updated)

    @property
    def last_seen(self) -> str:
        """The time stamp of an event's last occurrence, as sortable text; "" without any."""
        return objects.last_seen(self)

    @property
    def takes_pods(self) -> bool:
        """Whether a node is Ready and not cordoned."""
        return objects.takes_pods(self)

    def gpus(self, resource: str) -> float:
        """The allocatable number of a GPU resource, such as `nvidia.com/gpu`, on a node.

        0 if the node does not have it.
        """
        allocatable = self.status.get("allocatable") or {}
        return float(parse_quantity(allocatable.get(resource, 0)))


def malformed(error: Exception) -> str:
    """A phrase for a cluster whose objects raise one of MALFORMED."""
    return f"its API server answers what no Kubernetes does ({type(error).__name__})"


def well_named(items: object) -> Iterator[dict[str, Any]]:
    """The objects of a list whose names Kubernetes allows, with only their valid labels.

    Of several objects with one name and namespace only the first counts. Anything but a list gives
    no objects. Other fields, annotations among them, are unchecked. A tenant controls the API
    server of its vCluster, and operators copy commands with names from it into a shell.
    """
    if not isinstance(items, list):
        return
    seen = set[tuple[object, object]]()
    for item in items:
        metadata = pairs(pairs(item).get("metadata"))
        name = metadata.get("name")
        namespace = metadata.get("namespace", "default")
        if not _is_name(name) or not _is_name(namespace) or (name, namespace) in seen:
            continue
        seen.add((name, namespace))
        labels = {
            key: value
            for key, value in pairs(metadata.get("labels")).items()
            if _LABEL_KEY.fullmatch(key) and _is_label_value(value)
        }
        yield {**item, "metadata": {**metadata, "labels": labels}}


def _is_name(value: object) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _is_label_value(value: object) -> bool:
    return isinstance(value, str) and _LABEL_VALUE.fullmatch(value) is not None
