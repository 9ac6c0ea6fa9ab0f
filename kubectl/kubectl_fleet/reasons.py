"""Why a pod waits, by its queue, the nodes and the messages about it; and what to do."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from kubectl_fleet.cluster import QUEUE_LABEL, SCHEDULER, Object, condition, metadata
from kubectl_fleet.gpu import POD_GROUP, Pod, gpus_of
from kubectl_fleet.messages import Reason, meaning
from kubectl_fleet.requests import FRACTION, MEMORY, RESOURCES
from kubectl_fleet.table import UNLIMITED, in_words, listed, plain, short
from kubectl_fleet.tree import SLACK, Usage

_PATIENCE: Final = 60.0  # seconds; a shorter wait is normal
_FULL: Final = re.compile("OverLimit|OverQuota|over quota|quota has reached")
_CANNOT_START: Final = ("ImagePullBackOff", "ErrImagePull", "CreateContainerError")


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
            yield Reason(f"its scheduling gates are closed: {names}", "whoever set them opens them")
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
        if reason := meaning(messages, self._view.kubectl):
            yield reason
        if self._view.seconds_since(pod.created) <= _PATIENCE:
            yield Reason("it was created a moment ago", "wait a minute")
        if here and pod.by_kai and POD_GROUP not in metadata(pod.item, "annotations"):
            logs = f"{self._view.kubectl} -n kai-scheduler logs deployment/pod-grouper"
            yield Reason(
                "KAI has created no PodGroup for it, and without one it is not scheduled",
                f"look with: `{logs}`",
            )
        message = f": {plain(unscheduled)}" if unscheduled else ""
        yield Reason(f"nothing that may be read here says why{message}", self._describe(pod))

    def _not_started(self, pod: Pod) -> Iterator[Reason]:
        texts = []
        for key in ("initContainerStatuses", "containerStatuses"):
            for container in (pod.item.get("status") or {}).get(key) or ():
                waiting = (container.get("state") or {}).get("waiting") or {}
                texts.append(plain(f"{waiting.get('reason', '')} {waiting.get('message', '')}"))
        for event in self._events[pod.namespace, pod.name]:
            if event.get("reason") == "FailedCreatePodSandBox":
                texts.append(event.get("message") or "")
        if known := meaning(texts, self._view.kubectl):
            yield known
        for text in texts:
            if text.startswith(_CANNOT_START):
                yield Reason(f"its container does not start: {text}", self._describe(pod))

    def _queue(self, pod: Pod) -> Iterator[Reason]:
        """Reasons of its queue, of KAI itself, or of a limit."""
        queues, name = self._usage.queues, pod.queue
        leaves = sorted(queue.name for queue in queues.values() if not queue.children)
        label = f"write the label {QUEUE_LABEL}: "
        if name not in queues and "queues" not in self._view.forbidden:
            cause = f"its queue {name} is not there" if name else "it names no queue"
            yield Reason(cause, label + (listed(leaves) or "a leaf queue, once there is one"))
        elif name in queues and queues[name].children:
            own = [leaf for leaf in leaves if queues[name] in self._usage.upwards(leaf)]
            yield Reason(f"its queue {name} has children and so takes no pods", label + listed(own))
        serving = [
            item["metadata"]["name"]
            for item in self._view.all("deployments")
            if (item.get("status") or {}).get("availableReplicas")
        ]
        scheduler = any(name == "scheduler" or name.startswith("kai-scheduler") for name in serving)
        if not scheduler and "deployments" not in self._view.forbidden:
            yield Reason("no scheduler of KAI serves here", "tell the platform's engineers")
        yield from self._limits(pod)

    def _limits(self, pod: Pod) -> Iterator[Reason]:
        """The limits of its queue and of those above: more than it may ever have comes first."""
        full = []
        for queue in self._usage.upwards(pod.queue):
            for resource in RESOURCES:
                share, amount = queue.shares[resource], pod.amounts[resource]
                if not amount or share.limit == UNLIMITED:
                    continue
                asks, limit = in_words(resource, amount), in_words(resource, share.limit)
                cause = f"it asks for {asks}, and queue {queue.name}"
                top = "" if queue.parent else ", and the team's gpus where they are less"
                raised = f"have its limit raised in the platform's stack file{top}"
                if amount > share.limit + SLACK:
                    yield Reason(
                        f"{cause} may hold at most {limit}: it never runs",
                        f"ask for at most {limit}, or {raised}",
                    )
                elif share.in_use + amount > share.limit + SLACK:
                    held = short(resource, share.in_use)
                    fix = f"wait for a pod of that queue to end, ask for less, or {raised}"
                    full.append(Reason(f"{cause} holds {held} of at most {limit}", fix))
        yield from full

    def _fractions(self, pod: Pod) -> Iterator[Reason]:
        """A quota or limit that the pod fills exactly, and exceeds where floats are added."""
        for queue in self._usage.upwards(pod.queue):
            share, gpus = queue.shares["gpu"], pod.amounts["gpu"]
            for bound in (share.limit, share.quota) if gpus else ():
                if bound % 1 and abs(share.in_use + gpus - bound) <= SLACK:
                    cause = f"it would fill the {bound:g} GPUs of queue {queue.name}, and KAI adds"
                    fix = f"have {bound + SLACK:.6f} written for it in the platform's stack file"
                    yield Reason(
                        f"{cause} fractions as floats: 0.1 and 0.2 are more than 0.3",
                        f"{fix}, or ask for 0.25 or 0.5, which add up",
                    )

    def _not_for_kai(self, pod: Pod) -> Iterator[Reason]:
        labels, annotations = metadata(pod.item, "labels"), metadata(pod.item, "annotations")
        keys = [QUEUE_LABEL] if QUEUE_LABEL in labels else []
        keys += [key for key in (FRACTION, MEMORY) if key in annotations]
        if keys:
            scheduler = pod.spec.get("schedulerName")
            cause = f"it has {' and '.join(keys)}, and {scheduler} schedules it, which ignores that"
            yield Reason(cause, f"write schedulerName: {SCHEDULER}")

    def _nodes(self, pod: Pod) -> Iterator[Reason]:
        """The nodes with the labels that it asks for: none, or none that is large enough."""
        selector, nodes = pod.spec.get("nodeSelector") or {}, self._view.all("nodes")
        fits = [node for node in nodes if selector.items() <= metadata(node, "labels").items()]
        if nodes and not fits:
            labels = ", ".join(f"{key}={value}" for key, value in selector.items())
            cause = f"no node has the labels that it asks for: {labels}"
            yield Reason(cause, "write a nodeSelector that nodes have")
        most = max(map(gpus_of, fits), default=0.0)
        devices = pod.gpu.devices if pod.gpu.shared else pod.gpu.whole
        if most and devices > most:
            yield Reason(
                f"it asks for {in_words('gpu', devices)}, and no node has more than {most:g}:"
                " it never runs",
                f"ask for at most {most:g} in one pod",
            )

    def _describe(self, pod: Pod) -> str:
        return f"look with: `{self._view.kubectl} -n {pod.namespace} describe pod {pod.name}`"
