"""What runs in a cluster: pods, and the pod templates of workloads, as far as a rule looks at it;
and what the operators of some kinds write on their pods.

Anything in it may be a value that only the update knows, which is no text and no mapping.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kai_fleet.releases.keys import GPU_RESOURCES, POD_GROUP, QUEUE_LABEL, SCHEDULER
from kai_fleet.releases.mig import PREFIX
from kai_fleet.values import UNKNOWN, get, items, mapping, pairs, text


@dataclass(frozen=True)
class PodContainer:
    """The name and resources of one container."""

    name: str = ""
    requests: Any = field(default_factory=dict)
    limits: Any = field(default_factory=dict)

    @property
    def gpus(self) -> Any:
        """The names of the GPUs and MIG slices that it requests or limits at all, were it to 0."""
        if UNKNOWN in (self.requests, self.limits):
            return UNKNOWN
        names = sorted({*map(str, self.requests), *map(str, self.limits)})
        return [name for name in names if name in GPU_RESOURCES or name.startswith(PREFIX)]


@dataclass(frozen=True)
class PodTemplate:
    """A pod, or one pod template of a workload.

    `labels` and `annotations` are the pods'; `owner_labels` those of the object itself, where KAI
    looks for the queue first. `part` names the template where a kind has several. `scheduler` is
    what the pods get, also where their operator writes it. `queue_elsewhere`: another object that
    refers to this one names the queue.
    """

    kind: str
    name: str
    namespace: str | None = None
    scheduler: str | None = None
    labels: Any = field(default_factory=dict)
    annotations: Any = field(default_factory=dict)
    containers: tuple[PodContainer, ...] = ()
    owner_labels: Any = field(default_factory=dict)
    part: str = ""
    path: str = ""
    queue_elsewhere: bool = False

    @property
    def names_queue(self) -> Any:
        """Whether it carries the queue label at all."""
        labels = self._labels_with_queue
        return labels if labels is UNKNOWN else QUEUE_LABEL in labels

    @property
    def queue(self) -> Any:
        """The value of the queue label: of the object, else of its pods; None where absent."""
        return get(self._labels_with_queue, QUEUE_LABEL)

    @property
    def _labels_with_queue(self) -> Any:
        own = self.owner_labels
        return own if own is UNKNOWN or QUEUE_LABEL in own else self.labels

    @property
    def pod_group(self) -> Any:
        """The PodGroup that the pods name themselves; None where KAI makes one for them."""
        return get(self.annotations, POD_GROUP) or None


# Read from the operators' sources: those that write the schedulerName, where they are told to use
# KAI and the template has none. KAI takes the queue from the label of the topmost owner, else from
# the pod's. Other kinds (JobSet, LeaderWorkerSet, the jobs of Kubeflow's training operator) hand
# their templates on as they are.
_DYNAMO: Final = "DynamoGraphDeployment"
_DYNAMO_QUEUE: Final = "nvidia.com/kai-scheduler-queue"  # an annotation
_TRAIN_JOB: Final = "TrainJob"
_WRITTEN: Final = (
    *("RayCluster", "RayCronJob", "RayJob", "RayService"),
    *(_DYNAMO, _TRAIN_JOB, "PodCliqueSet", "PodGangSet"),
)
# The pods of a TrainJob come from one, which has the schedulerName; the TrainJob has the queue.
_RUNTIMES: Final = ("TrainingRuntime", "ClusterTrainingRuntime")
# Kinds whose spec may look like a template without being one, or is large and has none.
_NOT_CARRIERS: Final = ("CustomResourceDefinition", "ConfigMap", "Secret", "Queue")
# What names a template better than these do.
_PLAIN_STEPS: Final = ("spec", "template", "jobTemplate")


def workloads(kind: str, props: Mapping[str, object], name: str, path: str) -> list[PodTemplate]:
    """The pod of a Pod, or every pod template of any other object; none for kinds without pods."""
    metadata, spec = props.get("metadata"), props.get("spec")
    base = PodTemplate(kind, name, text(get(metadata, "namespace")), path=path)
    if kind == "Pod":
        own = mapping(get(metadata, "labels"))
        return [replace(_template(base, "", metadata, spec), owner_labels=own)]
    if kind in _NOT_CARRIERS or spec is None:
        return []
    # As far as KAI reads them: with the queue that the operator of the object takes.
    labels, more = mapping(get(metadata, "labels")), {}
    if kind == _TRAIN_JOB:  # handed on to the JobSet, which KAI takes for the owner
        more = mapping(get(spec, "labels"))
    elif kind == _DYNAMO and (queue := get(metadata, "annotations", _DYNAMO_QUEUE)):
        more = {QUEUE_LABEL: queue}
    own = UNKNOWN if UNKNOWN in (labels, more) else {**labels, **more}
    base = replace(base, owner_labels=own, queue_elsewhere=kind in _RUNTIMES)
    found = [_template(base, *each) for each in _found(spec, ())]
    if not found and kind in _WRITTEN and base.names_queue is True:
        found = [base]  # its pods stand elsewhere; here is only their queue
    for number, pod in enumerate(found) if kind in _WRITTEN else ():  # its operator writes on it
        if pod.scheduler not in (None, "", SCHEDULER, UNKNOWN):
            found[number] = replace(pod, owner_labels={})  # which only KAI reads
        elif not pod.scheduler and pod.names_queue is True:
            found[number] = replace(pod, scheduler=SCHEDULER)
    # The only one needs no name.
    return [replace(found[0], part="")] if len(found) == 1 else found


def _template(base: PodTemplate, part: str, metadata: Any, spec: Any) -> PodTemplate:
    listed = [get(spec, key) for key in ("containers", "initContainers")]
    containers = tuple(
        PodContainer(
            name=text(get(container, "name")) or "",
            requests=mapping(get(container, "resources", "requests")),
            limits=mapping(get(container, "resources", "limits")),
        )
        for some in listed
        for container in items(some)
    )
    return replace(
        base,
        scheduler=text(get(spec, "schedulerName")),
        labels=mapping(get(metadata, "labels")),
        annotations=mapping(get(metadata, "annotations")),
        containers=UNKNOWN if UNKNOWN in listed else containers,
        part=part,
    )


def _found(value: object, steps: tuple[str, ...]) -> Iterator[tuple[str, Any, Any]]:
    """Every mapping with `spec.containers` below `value`: the name of its part, its metadata and
    the pod's spec.

    A clique of Grove has its pods in `spec.podSpec`, and their labels beside `spec`.
    """
    if not isinstance(value, Mapping):
        for index, inner in enumerate(items(value)):
            label = get(inner, "name") or get(inner, "groupName")
            yield from _found(inner, (*steps, label if isinstance(label, str) else str(index)))
        return
    pod = value.get("spec")
    named = [step for step in steps if step not in _PLAIN_STEPS]
    part = named[-1].removesuffix("Template") if named else ""
    if "containers" in pairs(pod):
        yield part, value.get("metadata"), pod
    elif "containers" in pairs(get(pod, "podSpec")):
        yield part, value, get(pod, "podSpec")
    else:
        for key, inner in value.items():
            yield from _found(inner, (*steps, str(key)))
