"""Why a pod waits, by its queue, the nodes and the messages about it; and what to do."""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Final

from kubectl_fleet.cluster import QUEUE_LABEL, Object, condition, metadata
from kubectl_fleet.gpu import POD_GROUP, Pod, gpus_of
from kubectl_fleet.messages import Reason, meaning, reason
from kubectl_fleet.placement import placement
from kubectl_fleet.requests import FRACTION, MEMORY, RESOURCES
from kubectl_fleet.table import UNLIMITED, in_words, listed, plain, short
from kubectl_fleet.tree import SLACK, Usage

_PATIENCE: Final = 60.0  # seconds; a shorter wait is normal
_FULL: Final = re.compile("OverLimit|OverQuota|over quota|quota has reached")
_START_SECONDS: Final = 120.0  # on a node; a pull of an image takes long
_CANNOT_START: Final = (
    *("ImagePullBackOff", "ErrImagePull", "CreateContainerError", "CreateContainerConfigError"),
)
# Events of a node about a pod that it has.
_OF_NODE: Final = ("FailedCreatePodSandBox", "FailedMount")


class Reasons:
    """Why the pods of a cluster wait."""

    def __init__(self, usage: Usage) -> None:
        self._usage, self._view = usage, usage.snapshot
        self._events: dict[tuple[str, str], list[Object]] = defaultdict(list)
        for event in self._view.all("events"):
            about = event.get("involvedObject") or {}
            if about.get("kind") == "Pod":
                self._events[about.get("namespace", ""), about.get("name", "")].append(event)

    def of(self, pod: Pod) -> Reason | None:
        """Return the first thing that keeps a pod from running.

        None for a pod that has a node and is on its way.
        """
        return next(self._not_started(pod), None) if pod.node else next(self._not_placed(pod))

    def _not_placed(self, pod: Pod) -> Iterator[Reason]:
        here, events = self._view.schedules_here, self._events[pod.namespace, pod.name]
        if gates := pod.spec.get("schedulingGates"):
            names = ", ".join(str(gate.get("name")) for gate in gates)
            yield reason("gated", names=names)
        if here:
            yield from self._queue(pod) if pod.by_kai else self._not_for_kai(pod)
            yield from self._nodes(pod)
        name = pod.spec.get("runtimeClassName")
        if name and not self._view.named("runtimeclasses", name):
            missing = "runtimeclasses" in self._view.objects and f'RuntimeClass "{name}" not found'
            events = [{"message": missing or ""}, *events]
        unscheduled = condition(pod.item, "PodScheduled").get("message") or ""
        messages = [*(event.get("message") or "" for event in events), unscheduled]
        if here and _FULL.search(" ".join(messages)):
            yield from self._fractions(pod)
        if known := meaning(messages, self._view.kubectl, placement(self._view, pod)):
            yield known
        if self._view.seconds_since(pod.created) <= _PATIENCE:
            yield reason("new")
        if here and pod.by_kai and POD_GROUP not in metadata(pod.item, "annotations"):
            yield reason("no-group", kubectl=self._view.kubectl)
        message = f": {plain(unscheduled)}" if unscheduled else ""
        yield reason("unknown", message=message, **self._of(pod))

    def _not_started(self, pod: Pod) -> Iterator[Reason]:
        texts = []
        for key in ("initContainerStatuses", "containerStatuses"):
            for container in (pod.item.get("status") or {}).get(key) or ():
                waiting = (container.get("state") or {}).get("waiting") or {}
                texts.append(plain(f"{waiting.get('reason', '')} {waiting.get('message', '')}"))
        for event in self._events[pod.namespace, pod.name]:
            if event.get("reason") in _OF_NODE:
                texts.append(event.get("message") or "")
        if known := meaning(texts, self._view.kubectl):
            yield known
        for text in texts:
            if text.startswith(_CANNOT_START):
                yield reason("container", text=text, **self._of(pod))
        placed = condition(pod.item, "PodScheduled").get("lastTransitionTime")
        if self._view.seconds_since(placed) > _START_SECONDS:
            yield reason("not-started", node=pod.node, **self._of(pod))

    @cached_property
    def _serves(self) -> bool:
        """Whether a scheduler of KAI runs."""
        serving = [
            item["metadata"]["name"]
            for item in self._view.all("deployments")
            if (item.get("status") or {}).get("availableReplicas")
        ]
        return any(name == "scheduler" or name.startswith("kai-scheduler") for name in serving)

    def _queue(self, pod: Pod) -> Iterator[Reason]:
        """Reasons of its queue, of KAI itself, or of a limit."""
        queues, name = self._usage.queues, pod.queue
        if name not in queues and "queues" not in self._view.forbidden:
            choice = listed(self._usage.leaves) or "a leaf queue, once there is one"
            yield reason("queue-absent" if name else "no-queue", queue=name, queues=choice)
        elif name in queues and queues[name].children:
            own = self._usage.leaves_below[name]
            yield reason("queue-no-leaf", queue=name, queues=listed(own))
        if not self._serves and "deployments" not in self._view.forbidden:
            yield reason("no-scheduler")
        yield from self._limits(pod)

    def _limits(self, pod: Pod) -> Iterator[Reason]:
        """The limits of its queue and of those above: more than it may ever have comes first."""
        full = []
        for queue in self._usage.upwards(pod.queue):
            for resource in RESOURCES:
                share, amount = queue.shares[resource], pod.amounts[resource]
                if not amount or share.limit == UNLIMITED:
                    continue
                values = {
                    "asks": in_words(resource, amount),
                    "limit": in_words(resource, share.limit),
                    "held": short(resource, share.in_use),
                    "queue": queue.name,
                    "top": "" if queue.parent else ", and the team's gpus where they are less",
                }
                if amount > share.limit + SLACK:
                    yield reason("above-limit", **values)
                elif share.in_use + amount > share.limit + SLACK:
                    full.append(reason("at-limit", **values))
        yield from full

    def _fractions(self, pod: Pod) -> Iterator[Reason]:
        """A quota or limit that the pod fills exactly, and exceeds where floats are added."""
        for queue in self._usage.upwards(pod.queue):
            share, gpus = queue.shares["gpu"], pod.amounts["gpu"]
            for bound in (share.limit, share.quota) if gpus else ():
                if bound % 1 and abs(share.in_use + gpus - bound) <= SLACK:
                    yield reason("floats", bound=bound, queue=queue.name, more=bound + SLACK)

    def _not_for_kai(self, pod: Pod) -> Iterator[Reason]:
        labels, annotations = metadata(pod.item, "labels"), metadata(pod.item, "annotations")
        keys = [QUEUE_LABEL] if QUEUE_LABEL in labels else []
        keys += [key for key in (FRACTION, MEMORY) if key in annotations]
        if keys:
            scheduler = pod.spec.get("schedulerName")
            yield reason("not-for-kai", keys=" and ".join(keys), scheduler=scheduler)

    def _nodes(self, pod: Pod) -> Iterator[Reason]:
        """The nodes with the labels that it asks for: none, or none that is large enough."""
        selector, nodes = pod.spec.get("nodeSelector") or {}, self._view.all("nodes")
        fits = [node for node in nodes if selector.items() <= metadata(node, "labels").items()]
        if nodes and not fits:
            labels = ", ".join(f"{key}={value}" for key, value in selector.items())
            yield reason("no-such-node", labels=labels)
        most = max(map(gpus_of, fits), default=0.0)
        devices = pod.gpu.devices if pod.gpu.shared else pod.gpu.whole
        if most and devices > most:
            yield reason("node-too-small", asks=in_words("gpu", devices), most=most)

    def _of(self, pod: Pod) -> dict[str, str]:
        return {"kubectl": self._view.kubectl, "namespace": pod.namespace, "name": pod.name}
