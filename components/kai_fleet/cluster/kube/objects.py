"""Kubernetes objects from an API server; absent fields read as empty."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from kai_fleet.values import pairs, parse_quantity

# What reading a malformed object may raise; a tenant's API server can send any.
MALFORMED: Final = (KeyError, TypeError, AttributeError, ValueError, IndexError, ArithmeticError)
# The name of the container, in the operator, NVIDIA's chart and manifests, and on GKE. Its image
# has feature discovery and MPS in it, too.
_PLUGIN: Final = re.compile(r"nvidia-(gpu-)?device-plugin(-ctr)?")
OUT_OF_MEMORY: Final = "OOMKilled"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,252}")
_LABEL: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
_KEY: Final = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


class Killed(NamedTuple):
    """A container that was killed for memory: how often it started again, and when it ended."""

    container: str
    restarts: int
    ended: object

    @property
    def sentence(self) -> str:
        """What happened, as a predicate."""
        often = f", {self.restarts} restarts" if self.restarts > 1 else ""
        return f"container {self.container} was killed for memory ({OUT_OF_MEMORY}{often})"


class KubeObject(dict[str, Any]):
    """One object. A property raises one of MALFORMED if the object is malformed."""

    @property
    def name(self) -> str:
        """Its name."""
        return str(self["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """Its namespace, "" for what has none."""
        return str(self["metadata"].get("namespace", ""))

    @property
    def namespaced_name(self) -> str:
        """`namespace/name`, as Kubernetes writes it."""
        return f"{self.namespace}/{self.name}"

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        return self["metadata"].get("labels") or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations."""
        return self["metadata"].get("annotations") or {}

    @property
    def spec(self) -> Mapping[str, Any]:
        """Its spec."""
        return self.get("spec") or {}

    @property
    def status(self) -> Mapping[str, Any]:
        """Its status."""
        return self.get("status") or {}

    @property
    def phase(self) -> str | None:
        """Of a pod: Pending, Running, Succeeded or Failed."""
        return self.status.get("phase")

    @property
    def ended(self) -> bool:
        """Whether a pod has terminated."""
        return self.phase in ("Succeeded", "Failed")

    def condition(self, kind: str) -> Mapping[str, Any]:
        """A condition by its type; empty where there is none."""
        conditions = self.status.get("conditions") or []
        return next((condition for condition in conditions if condition.get("type") == kind), {})

    def is_true(self, kind: str) -> bool:
        """Whether a condition holds."""
        return self.condition(kind).get("status") == "True"

    @property
    def is_ready(self) -> bool:
        """Whether it is Ready at its newest generation, not only at an earlier one."""
        newest = self["metadata"].get("generation")
        of = self.condition("Ready").get("observedGeneration", newest)
        return self.is_true("Ready") and of == newest

    @property
    def is_default_class(self) -> bool:
        """Whether a StorageClass is the default one."""
        return self.annotations.get("storageclass.kubernetes.io/is-default-class") == "true"

    @property
    def unscheduled(self) -> str:
        """Why a scheduler says that a pod has no node; "" where none does."""
        return str(self.condition("PodScheduled").get("message") or "")

    @property
    def waiting(self) -> Iterator[str]:
        """The reason and the message of each container of a pod that waits to start."""
        of_pod = ("initContainerStatuses", "containerStatuses")
        for container in (status for key in of_pod for status in self.status.get(key) or []):
            if waiting := (container.get("state") or {}).get("waiting"):
                yield f"{waiting.get('reason', '')} {waiting.get('message', '')}".strip()

    @property
    def killed_for_memory(self) -> Iterator["Killed"]:
        """The containers of a pod that the kernel killed for memory, also while they run again."""
        for container in self.status.get("containerStatuses") or []:
            for state in (container.get("state") or {}, container.get("lastState") or {}):
                ended = state.get("terminated") or {}
                if ended.get("reason") == OUT_OF_MEMORY:
                    restarts = int(container.get("restartCount") or 0)
                    yield Killed(str(container.get("name")), restarts, ended.get("finishedAt"))
                    break

    @property
    def container_messages(self) -> Iterator[str]:
        """What killed the containers of a pod, and their termination and state messages."""
        yield from (each.sentence for each in self.killed_for_memory)
        for container in self.status.get("containerStatuses") or []:
            for state in (container.get("lastState") or {}, container.get("state") or {}):
                for detail in state.values():
                    yield str((detail or {}).get("message") or "")

    @property
    def messages(self) -> Iterator[str]:
        """What its own status says, some of it empty."""
        yield self.unscheduled
        yield from self.waiting
        yield from self.container_messages
        yield str(self.status.get("message") or "")

    @property
    def finalizers(self) -> list[str]:
        """What keeps it when it is deleted."""
        return [*map(str, self["metadata"].get("finalizers") or [])]

    @property
    def is_going(self) -> bool:
        """Whether it is being deleted, which kubectl calls Terminating."""
        return "deletionTimestamp" in self["metadata"]

    @property
    def containers(self) -> list[Mapping[str, Any]]:
        """The containers of a pod or a pod template, init containers first."""
        pod = self.spec.get("template", {}).get("spec") or self.spec
        return [*(pod.get("initContainers") or []), *(pod.get("containers") or [])]

    def made_by(self, deployments: Iterable[str]) -> str:
        """Which of these Deployments, by their names, made a pod; "" for none."""
        of_it = [name for name in deployments if self.name.startswith(f"{name}-")]
        return max(of_it, key=len, default="")

    @property
    def is_device_plugin(self) -> bool:
        """Whether a pod, or the pods of a workload, advertise NVIDIA's GPUs."""
        return any(_PLUGIN.fullmatch(str(container.get("name"))) for container in self.containers)

    @property
    def image_tag(self) -> str | None:
        """The tag of the first container's image."""
        images = [str(container.get("image", "")) for container in self.containers]
        tag = images[0].partition("@")[0].rpartition(":")[2] if images else ""
        return tag if tag and "/" not in tag else None

    @property
    def rolled_out(self) -> bool:
        """Whether all replicas of a Deployment are updated and available, and no old one is left,
        as `kubectl rollout status` sees it.
        """
        replicas, now = self.spec.get("replicas", 1), self.status
        updated = now.get("updatedReplicas", 0)
        newest = now.get("observedGeneration", 0) >= self["metadata"].get("generation", 0)
        enough = min(updated, now.get("availableReplicas", 0)) >= replicas > 0
        return bool(newest and enough and now.get("replicas", 0) <= updated)

    @property
    def last_seen(self) -> str:
        """Time of the last occurrence of an event, as sortable text."""
        stamp = self.get("lastTimestamp") or self.get("eventTime") or self.get("firstTimestamp")
        return str(stamp or self["metadata"].get("creationTimestamp") or "")

    @property
    def takes_pods(self) -> bool:
        """Whether a node is Ready and schedulable."""
        return self.is_true("Ready") and not self.spec.get("unschedulable")

    def gpus(self, resource: str) -> float:
        """How many GPUs a node advertises under that name."""
        return float(parse_quantity((self.status.get("allocatable") or {}).get(resource, 0)))


def in_pool(labels: Mapping[str, str], pool: Mapping[str, str]) -> bool:
    """Whether a node with these labels carries all those of a pool."""
    return pool.items() <= labels.items()


def tolerates(toleration: Mapping[str, str], taint: Mapping[str, str]) -> bool:
    """Whether this toleration, as in a pod's spec or in a stack file, matches that taint."""
    operator = toleration.get("operator") or ("Equal" if "value" in toleration else "Exists")
    return (
        toleration.get("key") in (None, "", taint["key"])
        and toleration.get("effect") in (None, "", taint["effect"])
        and (operator == "Exists" or (toleration.get("value") or "") == taint.get("value", ""))
    )


def closed_pool(
    tolerations: Sequence[Mapping[str, str]],
    nodes: Sequence[Iterable[Mapping[str, str]]],
    path: str,
) -> tuple[str, str] | None:
    """Cause and fix, written at `path`, if no node of a team's pool takes its pods.

    `nodes` are the taints of each node. Taints of `node.kubernetes.io/` are temporary: ignored.
    """
    closing = [
        [
            taint
            for taint in taints
            if taint.get("effect") in ("NoSchedule", "NoExecute")
            and not taint["key"].startswith("node.kubernetes.io/")
            and not any(tolerates(each, taint) for each in tolerations)
        ]
        for taints in nodes
    ]
    if not closing or not all(closing):
        return None
    taint, keys = closing[0][0], ("key", "value", "effect")
    written = ", ".join(f"{key}: {json.dumps(taint[key])}" for key in keys if taint.get(key))
    return (
        f"each of its {len(nodes)} nodes has a taint ({taint['key']}) that the team does not"
        " tolerate: only pods that tolerate it themselves run there, its DNS not among them",
        f"write tolerations: [{{{written}}}] at {path}",
    )


def seconds_since(stamp: object, now: datetime) -> float:
    """Seconds from a Kubernetes time stamp until `now`; 0 where there is none."""
    return (now - (moment(stamp) or now)).total_seconds()


def moment(stamp: object) -> datetime | None:
    """A Kubernetes time stamp; None where there is none, or one of no year from 1 to 9999: API
    servers take the year 0.
    """
    try:
        found = datetime.fromisoformat(str(stamp))
    except ValueError:
        return None
    return found if found.tzinfo else None


def malformed(error: Exception) -> str:
    """A phrase for a cluster whose objects raise one of MALFORMED."""
    return f"its API server answers what no Kubernetes does ({type(error).__name__})"


def well_named(items: object) -> Iterator[dict[str, Any]]:
    """Objects whose names Kubernetes allows, each name once, with only their valid labels.

    A tenant controls the API server of its vCluster, and a fix is a command with names from it that
    an operator copies into a shell.
    """
    seen: set[tuple[Any, Any]] = set()
    for item in items if isinstance(items, list) else []:
        metadata = pairs(pairs(item).get("metadata"))
        names = (metadata.get("name"), metadata.get("namespace", "default"))
        if not all(isinstance(name, str) and _NAME.fullmatch(name) for name in names):
            continue
        if names not in seen:
            seen.add(names)
            labels = {
                key: text
                for key, text in pairs(metadata.get("labels")).items()
                if _KEY.fullmatch(key) and isinstance(text, str) and _LABEL.fullmatch(text)
            }
            yield {**item, "metadata": {**metadata, "labels": labels}}
