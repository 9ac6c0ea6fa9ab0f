"""Pods and pod templates of workloads, with what rules read of them.

The operators of some kinds write the scheduler and the queue on the pods that they make: the
templates here are as the pods will be.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kai_fleet.values import UNKNOWN, Maybe, get, items, mapping, pairs, text
from kai_usage.keys import GPU_RESOURCES, POD_GROUP, QUEUE_LABEL, SCHEDULER
from kai_usage.mig import PREFIX

Labels = Mapping[str, object]  # also annotations; values may be no strings


@dataclass(frozen=True)
class PodContainer:
    """The name of one container, "" if absent, and its GPUs, by `_gpus`.

    Each is UNKNOWN if only the update knows it.
    """

    name: Maybe[str]
    gpus: Maybe[Sequence[str]] = ()


@dataclass(frozen=True)
class PodTemplate:
    """A pod, or one pod template of a workload.

    Args:
        kind: Kind of the object.
        name: Name of the object.
        namespace: None if its metadata has none; from resources it then is the provider's.
        scheduler: The schedulerName that the pods get, also if their operator writes it.
        labels: Labels of the pods.
        annotations: Annotations of the pods.
        containers: Those of the pods, init containers last. Ephemeral ones do not count.
        owner_labels: Labels of the object itself, where KAI looks for the queue first.
        part: Name of the template if the object has several.
        path: Its key in the stack file, or its URN.
        queue_elsewhere: Another object, which refers to this one, names the queue.
    """

    kind: str
    name: Maybe[str]
    namespace: Maybe[str] | None = None
    scheduler: Maybe[str] | None = None
    labels: Maybe[Labels] = field(default_factory=dict)
    annotations: Maybe[Labels] = field(default_factory=dict)
    containers: Maybe[tuple[PodContainer, ...]] = ()
    owner_labels: Maybe[Labels] = field(default_factory=dict)
    part: str = ""
    path: str = ""
    queue_elsewhere: bool = False

    @property
    def names_queue(self) -> Maybe[bool]:
        """Whether it has the queue label, with any value; UNKNOWN if its labels are."""
        labels = self._labels_with_queue
        if labels is UNKNOWN:
            return UNKNOWN
        return QUEUE_LABEL in labels

    @property
    def queue(self) -> object:
        """The value of the queue label: the object's, else that of its pods; None if absent.

        UNKNOWN if the value is, or the labels that may have it.
        """
        return get(self._labels_with_queue, QUEUE_LABEL)

    @property
    def _labels_with_queue(self) -> Maybe[Labels]:
        """The owner's labels if they have the queue or are UNKNOWN, else those of the pods."""
        if self.owner_labels is UNKNOWN or QUEUE_LABEL in self.owner_labels:
            return self.owner_labels
        return self.labels

    @property
    def pod_group(self) -> object:
        """The PodGroup that the pods name themselves, UNKNOWN if the annotation or all are.

        None if KAI makes one: the annotation is absent or "".
        """
        return get(self.annotations, POD_GROUP) or None


# Read from the operators' sources: these write the schedulerName if they are told to use KAI and
# the template has none. KAI takes the queue from the label of the topmost owner, else from that of
# the pod. Operators of other kinds (JobSet, LeaderWorkerSet, the jobs of Kubeflow's training
# operator) leave their templates as they are.
_DYNAMO = "DynamoGraphDeployment"
_DYNAMO_QUEUE = "nvidia.com/kai-scheduler-queue"  # an annotation
_TRAIN_JOB = "TrainJob"
_WITH_WRITING_OPERATOR = (
    "RayCluster",
    "RayCronJob",
    "RayJob",
    "RayService",
    _DYNAMO,
    _TRAIN_JOB,
    "PodCliqueSet",
    "PodGangSet",
)
# A TrainJob has the queue, and takes its pods from a runtime, which has the schedulerName.
_RUNTIMES = ("TrainingRuntime", "ClusterTrainingRuntime")
# Kinds whose spec may look like a template without being one, or is large and has none.
_WITHOUT_PODS = ("CustomResourceDefinition", "ConfigMap", "Secret", "Queue")
# Steps of a path that name no template.
_PLAIN_STEPS = ("spec", "template", "jobTemplate")


def workloads(
    kind: str,
    props: Mapping[str, object],
    name: Maybe[str],
    path: str,
) -> list[PodTemplate]:
    """The pod of a Pod, or every pod template below `spec` of any other object.

    No template for kinds without pods, and for another object than a Pod without `spec`. A template
    is a mapping with `spec.containers`, or with `spec.podSpec.containers` as Grove has it: there is
    none where its spec, or a value above it, is UNKNOWN. If the operator of a kind writes the
    scheduler, an object with a queue label and a spec, and without a template in it, has one
    without containers.

    Args:
        props: The object, as its manifest has it.
        name: Name of the object, for messages.
        path: Its key in the stack file, or its URN.
    """
    spec = props.get("spec")
    metadata = props.get("metadata")
    base = PodTemplate(kind, name, text(get(metadata, "namespace")), path=path)
    if kind == "Pod":
        base = replace(base, owner_labels=mapping(get(metadata, "labels")))
        return [_template(base, "", metadata, spec)]
    if kind in _WITHOUT_PODS or spec is None:
        return []
    base = replace(
        base,
        owner_labels=_owner_labels(kind, metadata, spec),
        queue_elsewhere=kind in _RUNTIMES,
    )
    templates = [_template(base, *part) for part in _parts(spec, ())]
    if kind in _WITH_WRITING_OPERATOR:
        if not templates and base.names_queue is True:
            templates = [base]  # its pods are elsewhere; only their queue is here
        templates = [_as_operator_writes(template) for template in templates]
    if len(templates) == 1:
        return [replace(templates[0], part="")]
    return templates


def _owner_labels(kind: str, metadata: object, spec: object) -> Maybe[Labels]:
    """The labels in which KAI looks for the queue, with those that the operator writes there.

    What the operator writes counts before the object's own. UNKNOWN if the labels of either are.
    With UNKNOWN annotations a DynamoGraphDeployment has the queue label, with an UNKNOWN value.
    """
    labels = mapping(get(metadata, "labels"))
    added: Maybe[Labels] = {}
    if kind == _TRAIN_JOB:  # its operator gives them to the JobSet, which KAI takes for the owner
        added = mapping(get(spec, "labels"))
    elif kind == _DYNAMO:
        queue = get(metadata, "annotations", _DYNAMO_QUEUE)
        if queue:
            added = {QUEUE_LABEL: queue}
    if labels is UNKNOWN or added is UNKNOWN:
        return UNKNOWN
    return {**labels, **added}


def _as_operator_writes(template: PodTemplate) -> PodTemplate:
    """The template with the scheduler that its operator writes, if there is a queue label.

    If the template has another scheduler than KAI, the owner's labels count for nothing. An UNKNOWN
    scheduler stays.
    """
    scheduler = template.scheduler
    if scheduler not in (None, "", SCHEDULER, UNKNOWN):
        return replace(template, owner_labels={})
    if not scheduler and template.names_queue is True:
        return replace(template, scheduler=SCHEDULER)
    return template


def _template(
    base: PodTemplate,
    part: str,
    metadata: object,
    spec: object,
) -> PodTemplate:
    """`base` with what a template and the spec of its pods have; unknown parts are UNKNOWN."""
    return replace(
        base,
        scheduler=text(get(spec, "schedulerName")),
        labels=mapping(get(metadata, "labels")),
        annotations=mapping(get(metadata, "annotations")),
        containers=_containers(spec),
        part=part,
    )


def _containers(spec: object) -> Maybe[tuple[PodContainer, ...]]:
    """The containers of a pod, then its init containers; UNKNOWN if one of the two lists is.

    A list that is absent, or no list, has none.
    """
    usual = get(spec, "containers")
    initial = get(spec, "initContainers")
    if UNKNOWN in (usual, initial):
        return UNKNOWN
    containers = [*items(usual), *items(initial)]
    return tuple(map(_container, containers))


def _container(container: object) -> PodContainer:
    """A container of a pod's spec; its name is "" if absent, and unknown parts are UNKNOWN."""
    name = text(get(container, "name")) or ""
    return PodContainer(name, _gpus(get(container, "resources")))


def _gpus(resources: object) -> Maybe[Sequence[str]]:
    """Names of GPUs and MIG slices in requests and limits, also with an amount of 0.

    UNKNOWN if one of the two is.
    """
    requests = mapping(get(resources, "requests"))
    limits = mapping(get(resources, "limits"))
    if requests is UNKNOWN or limits is UNKNOWN:
        return UNKNOWN
    names = {str(name) for name in (*requests, *limits)}
    return sorted(name for name in names if name in GPU_RESOURCES or name.startswith(PREFIX))


def _parts(value: object, steps: tuple[str, ...]) -> Iterator[tuple[str, object, object]]:
    """Every mapping with `spec.containers` below `value`: the name of its part, its metadata and
    the pod's spec. What is inside of such a mapping is not read.

    Nothing for UNKNOWN. `steps` leads to `value`; an element of a list has its `name`, `groupName`
    or index there. A clique of Grove has its pods in `spec.podSpec`, and their labels
    beside `spec`.
    """
    if not isinstance(value, Mapping):
        for index, element in enumerate(items(value)):
            name = get(element, "name") or get(element, "groupName")
            step = name if isinstance(name, str) else str(index)
            yield from _parts(element, (*steps, step))
        return
    spec = value.get("spec")
    pod_of_clique = get(spec, "podSpec")
    if "containers" in pairs(spec):
        yield _part_name(steps), value.get("metadata"), spec
    elif "containers" in pairs(pod_of_clique):
        yield _part_name(steps), value, pod_of_clique
    else:
        for key, below in value.items():
            yield from _parts(below, (*steps, str(key)))


def _part_name(steps: tuple[str, ...]) -> str:
    """The last step that names something: `worker` of `spec.workerTemplate.template`; else ""."""
    names = [step for step in steps if step not in _PLAIN_STEPS]
    return names[-1].removesuffix("Template") if names else ""
