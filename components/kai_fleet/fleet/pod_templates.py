"""Pods and pod templates in any kind of workload."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kai_fleet.fleet.pods import PodContainer, PodTemplate, owner_labels, written
from kai_fleet.releases.keys import GPU_RESOURCES
from kai_fleet.values import UNKNOWN, get, items, mapping, text

# Kinds that always carry pods: here an unknown part may hide a template, so it is told.
_CARRIERS = frozenset(
    (
        *("CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController"),
        *("StatefulSet", "JobSet", "LeaderWorkerSet", "PodCliqueSet", "PodGangSet"),
        *("RayCluster", "RayCronJob", "RayJob", "RayService", "DynamoGraphDeployment"),
        *("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob"),
        *("TrainingRuntime", "ClusterTrainingRuntime", "InferenceService", "Notebook"),
    )
)
# Kinds whose spec may look like a template without being one, or is large and has none.
_NOT_CARRIERS = frozenset({"CustomResourceDefinition", "ConfigMap", "Secret", "Queue"})
# The parts of an InferenceService, each a pod's spec with labels and annotations beside it.
_SERVING_PARTS = ("predictor", "transformer", "explainer")
_SERVING_MODELS = ("model", "pytorch", "tensorflow", "triton", "onnx", "huggingface", "sklearn")
# What names a template better than the word "template" does.
_PLAIN_STEPS = frozenset({"spec", "template", "jobTemplate"})


def workloads(kind: str, props: Mapping[str, object], name: str, path: str) -> list[PodTemplate]:
    """The pod of a Pod, or every pod template of any other object; none for kinds without pods."""
    metadata = props.get("metadata")
    namespace = text(get(metadata, "namespace"))
    base = PodTemplate(kind, name, namespace, owner_labels=owner_labels(kind, props), path=path)
    spec = props.get("spec")
    if kind == "Pod":
        return [_workload(base, "", metadata, spec)]
    if kind in _NOT_CARRIERS or spec is None:
        return []
    if kind == "InferenceService":
        return list(_serving(base, metadata, spec))
    if kind == "TrainJob":  # its pods stand in a runtime; here is only their queue
        return written([base]) if base.names_queue is True else []
    templates = [_workload(base, part, meta, pod) for part, meta, pod in _templates(spec, ())]
    if kind == "DynamoGraphDeployment":
        templates += _services(base, spec)
    if kind in _CARRIERS and _hides_template(spec, 0):
        templates.append(_unknown(base))
    if len(templates) == 1:
        templates = [replace(templates[0], part="")]
    return written(templates)


def _templates(value: object, steps: tuple[str, ...]) -> Iterator[tuple[str, object, object]]:
    """Every mapping with `spec.containers` below `value`: its part's name, metadata and spec.

    A clique of Grove has its pods in `spec.podSpec`, and their labels beside `spec`.
    """
    if isinstance(value, Mapping):
        pod = value.get("spec")
        if isinstance(pod, Mapping) and "containers" in pod:
            yield _part(steps), value.get("metadata"), pod
            return
        clique = pod.get("podSpec") if isinstance(pod, Mapping) else None
        if isinstance(clique, Mapping) and "containers" in clique:
            yield _part(steps), value, clique
            return
        for key, inner in value.items():
            if isinstance(inner, Mapping | list):
                yield from _templates(inner, (*steps, str(key)))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            label = get(inner, "name") or get(inner, "groupName")
            yield from _templates(inner, (*steps, label if isinstance(label, str) else str(index)))


def _part(steps: tuple[str, ...]) -> str:
    named = [step for step in steps if step not in _PLAIN_STEPS]
    return named[-1].removesuffix("Template") if named else ""


def _hides_template(value: object, depth: int) -> bool:
    """Whether a value is unknown in which a template might be: near the top, not inside a pod."""
    if value is UNKNOWN:
        return True
    if depth > 6:
        return False
    if isinstance(value, Mapping):
        pod = value.get("spec")
        if isinstance(pod, Mapping) and "containers" in pod:
            return False
        return any(
            _hides_template(inner, depth + 1)
            for key, inner in value.items()
            if isinstance(inner, Mapping | list)
            or (inner is UNKNOWN and (key == "spec" or "emplate" in key or "Spec" in key))
        )
    return any(_hides_template(inner, depth + 1) for inner in items(value))


def _workload(base: PodTemplate, part: str, metadata: object, spec: object) -> PodTemplate:
    return replace(
        base,
        scheduler=text(get(spec, "schedulerName")),
        labels=mapping(get(metadata, "labels")),
        annotations=mapping(get(metadata, "annotations")),
        containers=_containers(spec),
        part=part,
    )


def _containers(spec: object) -> Any:
    containers: list[PodContainer] = []
    for key in ("containers", "initContainers"):
        listed = get(spec, key)
        if listed is UNKNOWN:
            return UNKNOWN
        containers += [_container(container) for container in items(listed)]
    return tuple(containers)


def _container(container: object) -> PodContainer:
    return PodContainer(
        name=text(get(container, "name")) or "",
        requests=mapping(get(container, "resources", "requests")),
        limits=mapping(get(container, "resources", "limits")),
    )


def _services(base: PodTemplate, spec: object) -> Iterator[PodTemplate]:
    """The services of a Dynamo graph before v1beta1: a container and its resources in two places.

    `gpu` there is what the operator writes as the resource of NVIDIA's device plugin.
    """
    services = mapping(get(spec, "services"))
    if services is UNKNOWN:
        return  # said already, as a part that may hide a template
    for name, service in services.items():
        pod = get(service, "extraPodSpec")
        template = _workload(base, str(name), service, pod)
        if template.containers is not UNKNOWN:
            main = replace(
                _container(get(pod, "mainContainer")),
                requests=_dynamo_amounts(get(service, "resources", "requests")),
                limits=_dynamo_amounts(get(service, "resources", "limits")),
            )
            template = replace(template, containers=(main, *template.containers))
        yield template


def _dynamo_amounts(amounts: object) -> Any:
    pairs = mapping(amounts)
    if pairs is UNKNOWN:
        return UNKNOWN
    return {GPU_RESOURCES[0] if key == "gpu" else key: value for key, value in pairs.items()}


def _serving(base: PodTemplate, metadata: object, spec: object) -> Iterator[PodTemplate]:
    """KServe hands the object's own labels and annotations on to its pods."""
    if spec is UNKNOWN:
        yield _unknown(base)
        return
    for part in _SERVING_PARTS:
        pod = get(spec, part)
        if pod is UNKNOWN:
            yield _unknown(base)
        if not isinstance(pod, Mapping):
            continue
        template = _workload(base, "" if part == "predictor" else part, pod, pod)
        if template.containers is not UNKNOWN:
            models = (_container(pod[key]) for key in _SERVING_MODELS if key in pod)
            template = replace(template, containers=(*template.containers, *models))
        yield replace(
            template,
            labels=_merged(get(metadata, "labels"), template.labels),
            annotations=_merged(get(metadata, "annotations"), template.annotations),
            owner_labels={},
        )


def _merged(*parts: object) -> Any:
    result: dict[str, object] = {}
    for part in parts:
        pairs = mapping(part)
        if pairs is UNKNOWN:
            return UNKNOWN
        result |= pairs
    return result


def _unknown(base: PodTemplate) -> PodTemplate:
    return replace(base, scheduler=UNKNOWN, labels=UNKNOWN, annotations=UNKNOWN, containers=UNKNOWN)
