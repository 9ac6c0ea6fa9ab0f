"""What runs in a cluster: pods, and the pod templates of workloads, as far as a rule looks at it;
and what the operators of some kinds write on their pods.

Anything in it may be a value that only the update knows, which is no text and no mapping.
"""

from collections.abc import Iterator, Mapping, Sequence
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
    def slices(self) -> list[str]:
        """The names of the MIG slices that it asks for, as far as that is known."""
        keys = {str(key) for amounts in (self.requests, self.limits) for key in pairs(amounts)}
        return sorted(key for key in keys if key.startswith(PREFIX))

    def asks_for(self, resource: str) -> Any:
        """Whether the resource is requested or limited at all, were it 0."""
        if UNKNOWN in (self.requests, self.limits):
            return UNKNOWN
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
_DYNAMO_QUEUE: Final = "nvidia.com/kai-scheduler-queue"  # an annotation
_KUBERAY: Final = PodWriter(
    "KubeRay", scheduler=True, queue=True, scheduler_flag="--batch-scheduler=kai-scheduler"
)
_DYNAMO: Final = PodWriter(
    "the Dynamo operator",
    scheduler=True,
    queue=True,
    queue_key=f"the annotation {_DYNAMO_QUEUE}",
    scheduler_flag="KAI and Grove",
    default_queue="dynamo",
)
_GROVE: Final = PodWriter(
    "Grove", scheduler=True, scheduler_flag="a scheduler profile for kai-scheduler"
)
# Its pods come from a runtime, which has the schedulerName; a TrainJob has the queue.
_TRAIN_JOB: Final = PodWriter("Kubeflow Trainer", scheduler=True)
_RUNTIME: Final = PodWriter("Kubeflow Trainer", queue_elsewhere=True)
_WRITERS: Final[Mapping[str, PodWriter]] = {
    **dict.fromkeys(("RayCluster", "RayCronJob", "RayJob", "RayService"), _KUBERAY),
    "DynamoGraphDeployment": _DYNAMO,
    **dict.fromkeys(("PodCliqueSet", "PodGangSet"), _GROVE),  # the second is its older name
    "TrainJob": _TRAIN_JOB,
    **dict.fromkeys(("TrainingRuntime", "ClusterTrainingRuntime"), _RUNTIME),
}
# Kinds that always carry pods: an unknown part of one may hide a template.
_CARRIERS: Final = {
    *("CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController"),
    *("StatefulSet", "JobSet", "LeaderWorkerSet", "InferenceService", "Notebook"),
    *("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob"),
    *_WRITERS,
} - {"TrainJob"}
# Kinds whose spec may look like a template without being one, or is large and has none.
_NOT_CARRIERS: Final = ("CustomResourceDefinition", "ConfigMap", "Secret", "Queue")
# The parts of an InferenceService, each a pod's spec with labels and annotations beside it.
_SERVING_PARTS: Final = ("predictor", "transformer", "explainer")
_SERVING_MODELS: Final = (
    *("model", "pytorch", "tensorflow", "triton", "onnx", "huggingface", "sklearn"),
)
# What names a template better than these do.
_PLAIN_STEPS: Final = ("spec", "template", "jobTemplate")
_DEEPEST: Final = 6  # below it an unknown value is inside a pod, not in place of one


def workloads(kind: str, props: Mapping[str, object], name: str, path: str) -> list[PodTemplate]:
    """The pod of a Pod, or every pod template of any other object; none for kinds without pods."""
    metadata, spec = props.get("metadata"), props.get("spec")
    base = PodTemplate(kind, name, text(get(metadata, "namespace")), path=path)
    if kind == "Pod":
        own = mapping(get(metadata, "labels"))
        return [replace(_template(base, "", metadata, spec), owner_labels=own)]
    if kind in _NOT_CARRIERS or spec is None:
        return []
    if kind == "InferenceService":
        return _only([_template(base, *each) for each in _served(metadata, spec)])
    base = replace(base, owner_labels=_owner_labels(kind, metadata, spec))
    if kind == "TrainJob":  # its pods stand in a runtime; here is only their queue
        return _written([base]) if base.names_queue is True else []
    found = [*_found(spec, ())]
    if kind == "DynamoGraphDeployment":
        found += _services(spec)
    if kind in _CARRIERS and _hides_template(spec, 0):
        found.append(("", UNKNOWN, UNKNOWN))
    return _written(_only([_template(base, *each) for each in found]))


def _only(templates: list[PodTemplate]) -> list[PodTemplate]:
    """The templates of an object; the only one needs no name."""
    return [replace(templates[0], part="")] if len(templates) == 1 else templates


def _template(base: PodTemplate, part: str, metadata: Any, spec: Any) -> PodTemplate:
    listed = [get(spec, key) for key in ("containers", "initContainers")]
    containers = tuple(_container(each) for some in listed for each in items(some))
    return replace(
        base,
        scheduler=text(get(spec, "schedulerName")),
        labels=mapping(get(metadata, "labels")),
        annotations=mapping(get(metadata, "annotations")),
        containers=UNKNOWN if UNKNOWN in listed else containers,
        part=part,
    )


def _container(container: Any) -> PodContainer:
    return PodContainer(
        name=text(get(container, "name")) or "",
        requests=mapping(get(container, "resources", "requests")),
        limits=mapping(get(container, "resources", "limits")),
    )


# A template: the name of its part, its metadata and the pod's spec.
_Found = tuple[str, Any, Any]


def _found(value: object, steps: tuple[str, ...]) -> Iterator[_Found]:
    """Every mapping with `spec.containers` below `value`.

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


def _hides_template(value: object, depth: int) -> bool:
    """Whether a value is unknown in which a template might be: near the top, not inside a pod."""
    if value is UNKNOWN or depth > _DEEPEST:
        return value is UNKNOWN
    if not isinstance(value, Mapping):
        return any(_hides_template(inner, depth + 1) for inner in items(value))
    return "containers" not in pairs(value.get("spec")) and any(
        _hides_template(inner, depth + 1)
        for key, inner in value.items()
        if inner is not UNKNOWN or key == "spec" or "emplate" in key or "Spec" in key
    )


def _services(spec: object) -> Iterator[_Found]:
    """The services of a Dynamo graph before v1beta1: a container and its resources in two places.

    `gpu` there is what the operator writes as the resource of NVIDIA's device plugin.
    """
    for name, service in pairs(get(spec, "services")).items():
        resources = {}
        for key in ("requests", "limits"):
            amounts = mapping(get(service, "resources", key))
            if amounts is not UNKNOWN and "gpu" in amounts:
                amounts = {**amounts, GPU_RESOURCES[0]: amounts["gpu"]}
            resources[key] = amounts
        main = {**pairs(get(service, "extraPodSpec", "mainContainer")), "resources": resources}
        yield str(name), service, _with_containers(get(service, "extraPodSpec"), [main])


def _served(metadata: Any, spec: Any) -> Iterator[_Found]:
    """KServe hands the object's own labels and annotations on to its pods."""
    if spec is UNKNOWN:
        yield "", UNKNOWN, UNKNOWN
    for part in _SERVING_PARTS:
        pod, notes = pairs(spec).get(part), dict[str, Any]()
        if pod is UNKNOWN:
            yield part, UNKNOWN, UNKNOWN
        if not isinstance(pod, Mapping):
            continue
        for key in ("labels", "annotations"):
            above, own = mapping(get(metadata, key)), mapping(pod.get(key))
            notes[key] = UNKNOWN if UNKNOWN in (above, own) else {**above, **own}
        models = [pod[key] for key in _SERVING_MODELS if key in pod]
        yield "" if part == "predictor" else part, notes, _with_containers(pod, models)


def _with_containers(pod: Any, more: Sequence[Any]) -> Any:
    """A pod's spec with containers that stand elsewhere before its own."""
    containers = get(pod, "containers")
    if containers is UNKNOWN:
        return pod
    return {**pairs(pod), "containers": [*more, *items(containers)]}


def _owner_labels(kind: str, metadata: Any, spec: Any) -> Any:
    """The labels of the object as far as KAI reads them: with the queue that its operator takes."""
    labels, writer = mapping(get(metadata, "labels")), _WRITERS.get(kind)
    # A TrainJob hands others on to the JobSet, which KAI takes for the owner.
    source = spec if writer is _TRAIN_JOB else metadata
    others = mapping(get(source, "labels" if writer is _TRAIN_JOB else "annotations"))
    if labels is UNKNOWN or writer not in (_TRAIN_JOB, _DYNAMO, _GROVE):
        return labels
    if others is UNKNOWN:
        return UNKNOWN
    if writer is _TRAIN_JOB:
        return {**labels, **others}
    if writer is _GROVE:
        own = {QUEUE_LABEL: others[QUEUE_LABEL]} if QUEUE_LABEL in others else {}
        return {**own, **labels}
    # The label itself means nothing to Dynamo.
    without = {key: value for key, value in labels.items() if key != QUEUE_LABEL}
    named = text(others.get(_DYNAMO_QUEUE))
    return without if named in (None, "") else {**without, QUEUE_LABEL: named}


def _written(templates: Sequence[PodTemplate]) -> list[PodTemplate]:
    """The templates of one object, with what its operator writes on their pods."""
    # By what they look like: what is written in place of a name may be a list or a mapping.
    queues = {repr(each.queue): each.queue for each in templates if each.names_queue is True}
    result = []
    for template in templates:
        writer = _WRITERS.get(template.kind)
        pod = replace(template, writer=writer)
        if writer is _GROVE and pod.names_queue is False and len(queues) == 1:
            # One clique names the queue of the whole set.
            named = {QUEUE_LABEL: next(iter(queues.values()))}
            pod = replace(pod, owner_labels={**pod.owner_labels, **named})
        if writer is _DYNAMO and pod.scheduler not in (None, "", SCHEDULER, UNKNOWN):
            pod = replace(pod, owner_labels={})  # of another scheduler, without the queue
        elif writer is not None and writer.scheduler and pod.names_queue is True:
            if pod.scheduler is not UNKNOWN and not pod.scheduler:
                pod = replace(pod, scheduler=SCHEDULER)
            else:  # then the operator may not know of KAI, and copies nothing
                pod = replace(pod, writer=replace(writer, queue=False))
        result.append(pod)
    return result
