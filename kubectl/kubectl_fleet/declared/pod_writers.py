"""Kinds whose operator writes the scheduler or the queue on their pods.

Read from the operators' sources. KAI takes the queue from the label of the topmost owner, else
from the pod's. Kinds that are not here (JobSet, LeaderWorkerSet, the jobs of Kubeflow's training
operator) hand their templates on as they are: those name schedulerName themselves.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from kubectl_fleet.declared.plain import get, mapping, text
from kubectl_fleet.declared.pods import PodTemplate, PodWriter
from kubectl_fleet.declared.unknown import UNKNOWN
from kubectl_fleet.releases.keys import QUEUE_LABEL, SCHEDULER

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
    queues = {template.queue for template in every if template.names_queue is True}
    result = []
    for template in every:
        made = replace(template, writer=WRITERS.get(template.kind))
        if made.writer is _GROVE and made.names_queue is False and len(queues) == 1:
            # One clique names the queue of the whole set.
            made = replace(
                made, owner_labels={**made.owner_labels, QUEUE_LABEL: next(iter(queues))}
            )
        writer = made.writer
        if writer is _DYNAMO and made.scheduler not in (None, "", SCHEDULER, UNKNOWN):
            result.append(replace(made, owner_labels={}))  # of another scheduler, without the queue
            continue
        if writer is not None and writer.scheduler and made.names_queue is True:
            if made.scheduler is not UNKNOWN and not made.scheduler:
                made = replace(made, scheduler=SCHEDULER)
            else:  # then the operator may not know of KAI, and copies nothing
                made = replace(made, writer=replace(writer, queue=False))
        result.append(made)
    return result
