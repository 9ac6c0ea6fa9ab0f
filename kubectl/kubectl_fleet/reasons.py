"""Why a pod waits, and what to do: by its queue, by the nodes, and by messages about it."""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from kai_usage.amounts import SLACK
from kai_usage.deployments import is_scheduler
from kai_usage.limits import exceeded_limits
from kai_usage.messages import Meaning
from kai_usage.nodes import gpus_of
from kai_usage.objects import (
    Object,
    condition,
    has_labels,
    involved_in,
    status_of,
    waiting_containers,
)
from kai_usage.pods import Pod
from kai_usage.queues import upwards
from kai_usage.scheduling import (
    NO_SURROUNDINGS,
    PodSurroundings,
    meanings_of,
    surroundings_of,
)
from kai_usage.waiting import (
    PATIENCE_SECONDS,
    absent_queue,
    closed_gates,
    no_group,
    no_such_node,
    not_for_kai,
    over_limit,
    reason,
    too_large,
)
from kai_usage.words import listed
from kubectl_fleet.messages import Reason, in_sentences
from kubectl_fleet.tree import Usage

_START_SECONDS = 120.0  # on a node; a pull of an image takes long
_FULL = re.compile("OverLimit|OverQuota|over quota|quota has reached")
_CANNOT_START = (
    "ImagePullBackOff",
    "ErrImagePull",
    "CreateContainerError",
    "CreateContainerConfigError",
)
# Events of a kubelet about a pod that it has.
_KUBELET_EVENTS = ("FailedCreatePodSandBox", "FailedMount")


class Reasons:
    """Why the pods of a cluster wait, for a user of the cluster alone.

    Methods yield all reasons that apply, and the first one counts: their order is priority. Events
    belong to a pod by its namespace and name, also those about an earlier pod of that name.

    Raises:
        LookupError, TypeError, AttributeError: An object is malformed; from the methods as well.
    """

    def __init__(self, usage: Usage) -> None:
        self._usage = usage
        self._view = usage.snapshot
        self._events: dict[tuple[str, str], list[Object]] = defaultdict(list)  # newest first
        for event in self._view.all("events"):
            kind, namespace, name = involved_in(event)
            if kind == "Pod":
                self._events[namespace, name].append(event)

    def first_reason(self, pod: Pod) -> Reason | None:
        """The first thing that keeps a Pending pod from running.

        None for a pod that has a node and is on its way; without a node there always is one. The
        phase is not read: a Running pod, too, counts as not started after two minutes.
        """
        reasons = self._not_started(pod) if pod.node else self._not_placed(pod)
        first = next(reasons, None)
        if first is None:
            return None
        return in_sentences(
            first,
            kubectl=self._view.kubectl,
            namespace=pod.namespace,
            name=pod.name,
        )

    def _not_placed(self, pod: Pod) -> Iterator[Meaning]:
        """Why a pod has no node: what objects prove, then messages, then that nothing is known.

        Objects are scheduling gates, then queues (of a pod of another scheduler: keys that it has
        for KAI in vain), then nodes. Messages are that of an absent RuntimeClass, events, the
        newest first, and the pod's condition; the first known one counts. Before them come
        fractions, if any message says that a queue is full. After them come: that the pod is a
        minute old at most, or has no time stamp; that it has no PodGroup; and, always, that nothing
        is known. Queues, nodes, fractions and PodGroups count only with KAI here.
        """
        kai_is_here = self._view.has_queue_api
        yield from closed_gates(pod)
        if kai_is_here:
            yield from self._queue(pod) if pod.by_kai else not_for_kai(pod)
            yield from self._nodes(pod)
        unscheduled = condition(pod.item, "PodScheduled").get("message") or ""
        events = self._events[pod.namespace, pod.name]
        of_events = [event.get("message") or "" for event in events]
        messages = [self._absent_runtime_class(pod), *of_events, unscheduled]
        if kai_is_here and _FULL.search(" ".join(messages)):
            yield from self._fractions(pod)
        yield from meanings_of(messages, "user", self._around(pod))
        if self._view.seconds_since(pod.created) <= PATIENCE_SECONDS:
            yield reason("new")
        if kai_is_here:
            yield from no_group(pod, "pod-grouper")
        message = unscheduled or "no event that may be read, no condition"
        yield reason("unknown", message=message)

    def _around(self, pod: Pod) -> PodSurroundings:
        """The nodes and claims around a pod, without volumes, which a team may not list.

        So annotations of claims say where volumes are, as `volumes_on_one_node` has it.
        NO_SURROUNDINGS if the API of queues is not served here (KAI runs on the host, whose nodes
        are not all here, or nowhere).
        """
        nodes = self._view.all("nodes")
        if not self._view.has_queue_api:
            return NO_SURROUNDINGS
        claims = self._view.all("persistentvolumeclaims")
        return surroundings_of(pod.item, nodes, {}, claims, ())

    def _absent_runtime_class(self, pod: Pod) -> str:
        """What the API server refuses new pods with, if the RuntimeClass is absent; else "".

        `messages.yaml` has a row for it. Also "" if the pod names no RuntimeClass, or if
        RuntimeClasses cannot be listed.
        """
        name = pod.spec.get("runtimeClassName")
        if not name or "runtimeclasses" not in self._view.objects:
            return ""
        if self._view.named("runtimeclasses", name):
            return ""
        return f'RuntimeClass "{name}" not found'

    def _not_started(self, pod: Pod) -> Iterator[Meaning]:
        """Why a Pending pod with a node does not run; nothing for one on its way.

        First the first message of its containers or of its kubelet that is known, also about what
        is in order by now. Then each that says that a container cannot start, then that the pod has
        had its node for more than two minutes, by the time stamp of its condition PodScheduled.
        """
        texts = list(waiting_containers(pod.item))
        for event in self._events[pod.namespace, pod.name]:
            if event.get("reason") in _KUBELET_EVENTS:
                texts.append(event.get("message") or "")
        yield from meanings_of(texts, "user")
        for text in texts:
            if text.startswith(_CANNOT_START):
                yield reason("container", message=text)
        placed = condition(pod.item, "PodScheduled").get("lastTransitionTime")
        if self._view.seconds_since(placed) > _START_SECONDS:
            yield reason("not-started", node=pod.node)

    @cached_property
    def _scheduler_serves(self) -> bool:
        """Whether a scheduler of KAI is available; False if Deployments cannot be listed."""
        schedulers = filter(is_scheduler, self._view.all("deployments"))
        return any(status_of(scheduler).get("availableReplicas") for scheduler in schedulers)

    def _queue(self, pod: Pod) -> Iterator[Meaning]:
        """What is wrong with the pod's queue, then with KAI, then limits that it would exceed.

        The queue has children, is absent or left out of the tree, or is not named. No scheduler of
        KAI is available. What may not be listed, Queues or Deployments, counts as in order.
        """
        queues = self._usage.queues
        name = pod.queue or ""
        if name in queues and queues[name].children:
            leaves = self._usage.leaves_below[name]
            yield reason("queue-no-leaf", queue=name, choice=listed(leaves))
        elif name not in queues and "queues" not in self._view.forbidden:
            choice = listed(self._usage.leaves) or "a leaf queue, once there is one"
            yield absent_queue(pod, choice)
        if not self._scheduler_serves and "deployments" not in self._view.forbidden:
            yield reason("no-scheduler")
        for exceeded in exceeded_limits(pod, self._usage.queues):
            is_top = exceeded.queue.parent is None
            yield over_limit(
                exceeded,
                change="have its limit raised in the platform's stack file",
                how=", and the team's gpus where they are less" if is_top else "",
            )

    def _fractions(self, pod: Pod) -> Iterator[Meaning]:
        """Fractional limits and quotas that the pod would fill exactly: KAI's sums may exceed them.

        KAI adds floats; whether this sum exceeds is not computed. Exactly is by SLACK. Nearest
        queues first, the limit before the quota.
        """
        gpus = pod.gpu_amount
        if not gpus:
            return
        for queue in upwards(self._usage.queues, pod.queue):
            share = queue.shares["gpu"]
            for bound in (share.limit, share.quota):
                is_filled = abs(share.in_use + gpus - bound) <= SLACK
                if bound % 1 and is_filled:
                    more = bound + SLACK
                    yield reason("floats", bound=bound, queue=queue.name, more=more)

    def _nodes(self, pod: Pod) -> Iterator[Meaning]:
        """No node has the labels that the pod asks for, or none that has them has enough GPUs.

        The labels are those of `nodeSelector`; affinity and taints do not count. Nothing if nodes
        cannot be listed; nothing about GPUs if those nodes advertise none. Who holds them now does
        not count.
        """
        nodes = self._view.all("nodes")
        yield from no_such_node(pod, nodes)
        selector = pod.spec.get("nodeSelector") or {}
        selected = [gpus_of(node) for node in nodes if has_labels(node, selector)]
        most = max(selected, default=0.0)
        if most:
            yield from too_large(pod, most, "node")
