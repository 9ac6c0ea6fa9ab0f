"""What runs in a cluster: pods, and the pod templates of workloads, as far as a rule looks at it;
and what the operators of some kinds write on their pods.

Anything in it may be a value that only the update knows, which is no text and no mapping.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kai_fleet.releases.keys import POD_GROUP, QUEUE_LABEL, SCHEDULER
from kai_fleet.releases.mig import PREFIX
from kai_fleet.values import UNKNOWN, get, mapping, pairs, text


@dataclass(frozen=True)
class PodContainer:
    """The name and resources of one container."""

    name: str = ""
    requests: Any = field(default_factory=dict)
    limits: Any = field(default_factory=dict)

    @property
    def slices(self) -> list[str]:
        """The names of the MIG slices that it asks for, as far as that is known."""
        keys = (key for amounts in (self.requests, self.limits) for key in pairs(amounts))
        return sorted({key for key in keys if str(key).startswith(PREFIX)})

    def asks_for(self, resource: str) -> Any:
        """Whether the resource is requested or limited at all, were it 0."""
        for amounts in (self.requests, self.limits):
            if not isinstance(amounts, Mapping):
                return amounts
        return resource in self.requests or resource in self.limits


@dataclass(frozen=True)
class PodWriter:
    """The operator that makes a kind's pods, and what it writes on them for KAI.

    `scheduler`: it writes the schedulerName, where it is configured so and the template has none.
    `queue`: it copies the queue to each pod. `queue_key` is where a user writes the queue, and
    `scheduler_flag` how the operator is told to use KAI. `queue_elsewhere`: another object that
    refers to this one names the queue. `default_queue` is the one of pods that name none.
    """

    name: str
    scheduler: bool = False
    queue: bool = False
    queue_key: str = f"the label {QUEUE_LABEL}"
    scheduler_flag: str = ""
    queue_elsewhere: bool = False
    default_queue: str = "default-queue"


@dataclass(frozen=True)
class PodTemplate:
    """A pod, or one pod template of a workload.

    `labels` and `annotations` are the pods'; `owner_labels` those of the object itself, where KAI
    looks for the queue first. `part` names the template where a kind has several. `scheduler` is
    what the pods get, also where their `writer` writes it; `writer` is None for plain kinds.
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
    writer: PodWriter | None = None

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


# Read from the operators' sources. KAI takes the queue from the label of the topmost owner, else
# from the pod's. Kinds that are not here (JobSet, LeaderWorkerSet, the jobs of Kubeflow's training
# operator) hand their templates on as they are: those name schedulerName themselves.
DYNAMO_QUEUE: Final = "nvidia.com/kai-scheduler-queue"  # an annotation

_KUBERAY = PodWriter(
    "KubeRay", scheduler=True, queue=True, scheduler_flag="--batch-scheduler=kai-scheduler"
)
_DYNAMO = PodWriter(
    "the Dynamo operator",
    scheduler=True,
    queue=True,
    queue_key=f"the annotation {DYNAMO_QUEUE}",
    scheduler_flag="KAI and Grove",
    default_queue="dynamo",
)
_GROVE = PodWriter("Grove", scheduler=True, scheduler_flag="a scheduler profile for kai-scheduler")
# Its pods come from a runtime, which has the schedulerName.
_TRAIN_JOB = PodWriter("Kubeflow Trainer", scheduler=True)
_RUNTIME = PodWriter("Kubeflow Trainer", queue_elsewhere=True)  # a TrainJob has the queue

WRITERS: Final[Mapping[str, PodWriter]] = {
    "RayCluster": _KUBERAY,
    "RayCronJob": _KUBERAY,
    "RayJob": _KUBERAY,
    "RayService": _KUBERAY,
    "DynamoGraphDeployment": _DYNAMO,
    "PodCliqueSet": _GROVE,
    "PodGangSet": _GROVE,  # its older name
    "TrainJob": _TRAIN_JOB,
    "TrainingRuntime": _RUNTIME,
    "ClusterTrainingRuntime": _RUNTIME,
}


def owner_labels(kind: str, props: Mapping[str, object]) -> Any:
    """The labels of the object as far as KAI reads them: with the queue that its operator takes."""
    metadata = props.get("metadata")
    labels = mapping(get(metadata, "labels"))
    writer = WRITERS.get(kind)
    if writer is None or labels is UNKNOWN:
        return labels
    if writer is _TRAIN_JOB:  # handed on to the JobSet, which KAI takes for the owner
        own = mapping(get(props.get("spec"), "labels"))
        return own if own is UNKNOWN else {**labels, **own}
    if writer not in (_DYNAMO, _GROVE):
        return labels
    annotations = mapping(get(metadata, "annotations"))
    if annotations is UNKNOWN:
        return UNKNOWN
    if writer is _DYNAMO:
        # The label itself means nothing to it.
        others = {key: value for key, value in labels.items() if key != QUEUE_LABEL}
        named = text(annotations.get(DYNAMO_QUEUE))
        return others if named in (None, "") else {**others, QUEUE_LABEL: named}
    if QUEUE_LABEL in annotations and QUEUE_LABEL not in labels:
        return {**labels, QUEUE_LABEL: annotations[QUEUE_LABEL]}
    return labels


def written(templates: Iterable[PodTemplate]) -> list[PodTemplate]:
    """The templates of one object, with what its operator writes on their pods."""
    every = list(templates)
    # By what they look like: what is written in place of a name may be a list or a mapping.
    queues = {repr(each.queue): each.queue for each in every if each.names_queue is True}
    result = []
    for template in every:
        pod = replace(template, writer=WRITERS.get(template.kind))
        if pod.writer is _GROVE and pod.names_queue is False and len(queues) == 1:
            # One clique names the queue of the whole set.
            pod = replace(
                pod, owner_labels={**pod.owner_labels, QUEUE_LABEL: next(iter(queues.values()))}
            )
        writer = pod.writer
        if writer is _DYNAMO and pod.scheduler not in (None, "", SCHEDULER, UNKNOWN):
            result.append(replace(pod, owner_labels={}))  # of another scheduler, without the queue
            continue
        if writer is not None and writer.scheduler and pod.names_queue is True:
            if pod.scheduler is not UNKNOWN and not pod.scheduler:
                pod = replace(pod, scheduler=SCHEDULER)
            else:  # then the operator may not know of KAI, and copies nothing
                pod = replace(pod, writer=replace(writer, queue=False))
        result.append(pod)
    return result
