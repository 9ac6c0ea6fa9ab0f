"""What quotas, Services, queues and KAI go by, written by somebody else (T9, T13)."""

from typing import Any

from tests.attacks.attempts.attempt import EVERY_MODE, STACKS, Attempt
from tests.attacks.objects import (
    Object,
    claim,
    config_map,
    container,
    control_plane,
    deployment,
    fraction,
    of_queue,
    pod,
    service,
    stateful_set,
)

ON_KAI_HOST = ("nlp", "sim")


def _status(name: str, **status: Any) -> Attempt:
    return Attempt(
        name,
        EVERY_MODE,
        lambda t: pod(t),
        f"has {next(iter(status))} in its status that no node wrote; leave these to Kubernetes",
        change=("status", {"status": status}),
    )


_LEFT = "leave the others to KAI"


def _marked(name: str, **metadata: Any) -> Attempt:
    """A running fraction pod of the team in host mode, changed."""
    return Attempt(name, ("nlp",), fraction, _LEFT, change=("", {"metadata": metadata}))


def _labelled(body: Object, queue: str) -> Object:
    body["metadata"].setdefault("labels", {})["kai.scheduler/queue"] = queue
    return body


def _of_another(team: str) -> Object:
    template = pod(team, **of_queue("audio"))
    return _labelled(deployment(template), "nlp")


KEPT = [
    _status("its GPUs back to the quota by a phase", phase="Succeeded"),
    _status("its GPUs back to the quota by a failure", phase="Failed"),
    Attempt(
        "the address of another team's pod",
        EVERY_MODE,
        lambda t: pod(t),
        "leave these to Kubernetes",
        change=(
            "status",
            [
                {"op": "add", "path": "/status/podIP", "value": "10.1.2.3"},
                {"op": "add", "path": "/status/podIPs", "value": [{"ip": "10.1.2.3"}]},
            ],
        ),
    ),
    _status("the address of a node", hostIP="10.1.2.3"),
    Attempt(
        "another program in place of the control plane",
        EVERY_MODE,
        lambda t: stateful_set(t, control_plane(t)),
        "change it by the values of the vCluster",
        change=(
            "",
            {"spec": {"template": {"spec": {"containers": [{"name": "x", "image": "evil:1"}]}}}},
        ),
    ),
    Attempt(
        "a volume in the control plane",
        EVERY_MODE,
        lambda t: stateful_set(t, control_plane(t)),
        "change it by the values of the vCluster",
        change=(
            "",
            {"spec": {"template": {"spec": {"volumes": [{"name": "x", "emptyDir": {}}]}}}},
        ),
    ),
    Attempt(
        "labels of the control plane by a template",
        EVERY_MODE,
        lambda t: stateful_set(t, control_plane(t)),
        "change it by the values of the vCluster",
        change=("", {"spec": {"template": {"metadata": {"labels": {"x": "y"}}}}}),
    ),
    # A KAI on the host goes by labels and annotations, whoever wrote them.
    Attempt(
        "a place on the GPU of another team's pods",
        ON_KAI_HOST,
        lambda t: pod(t, labels={"runai-gpu-group": "0f1e2d3c"}),
        _LEFT,
    ),
    Attempt(
        "a place on several GPUs of others",
        ON_KAI_HOST,
        lambda t: pod(t, labels={"runai-gpu-group/0f1e2d3c": "0f1e2d3c"}),
        _LEFT,
    ),
    Attempt(
        "its GPUs out of its queue's limit, as a background pod",
        ON_KAI_HOST,
        lambda t: pod(t, labels={"kai.scheduler/background": "true"}),
        _LEFT,
    ),
    Attempt(
        "a reservation pod of its own making",
        ON_KAI_HOST,
        lambda t: pod(t, labels={"app": "kai-resource-reservation", "runai-gpu-group": "0f1e2d3c"}),
        _LEFT,
    ),
    Attempt(
        "what KAI says that it gave",
        ON_KAI_HOST,
        lambda t: pod(t, annotations={"received-resource-type": "Fraction"}),
        _LEFT,
    ),
    _marked("another group, later", labels={"runai-gpu-group": "other"}),
    _marked("a second group, later", labels={"runai-gpu-group/other": "other"}),
    _marked("no place in its queue, later", labels={"kai.scheduler/background": "true"}),
    _marked("what KAI gave, later", annotations={"received-resource-type": "Regular"}),
    _marked("less of a share, once it runs", annotations={"gpu-fraction": "0.01"}),
    _marked("no share at all, once it runs", annotations={"gpu-fraction": None}),
    _marked("another ConfigMap, later", annotations={"runai/shared-gpu-configmap": "x"}),
    Attempt(
        "the GPU of a pod that ended",
        ("nlp",),
        lambda t: _of_config_map(fraction(t), "yesterday-shared-gpu-0"),
        "drop the variable and ask for nvidia.com/gpu",
    ),
    Attempt(
        "the GPU of a share in a second container",
        ("nlp",),
        lambda t: fraction(t, _with_share("two")),
        "leave that variable to KAI",
    ),
    # The disks of others' nodes, by a provisioner of local volumes.
    Attempt(
        "a disk of another team", ("ml", "tight"), lambda _: claim("dev-1"), "node dev-1 is not"
    ),
    Attempt(
        "a disk of another team, later",
        ("ml", "tight"),
        lambda _: claim(),
        "drop the annotation volume.kubernetes.io/selected-node from the claim",
        change=("", {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "dev-1"}}}),
    ),
    Attempt(
        "a disk that the host's scheduler did not choose",
        ("dev", "nlp", "sim", "mig"),
        lambda _: claim("ml-1"),
        "drop the annotation volume.kubernetes.io/selected-node, and let the scheduler choose",
    ),
    Attempt(
        "a disk that the host's scheduler did not choose, later",
        ("dev", "nlp"),
        lambda _: claim(),
        "drop the annotation volume.kubernetes.io/selected-node, and let the scheduler choose",
        change=("", {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "ml-1"}}}),
    ),
    # Queues of others.
    Attempt(
        "another team's queue from a team without KAI",
        ("sim",),
        lambda t: pod(t, container(gpus=1), **of_queue("nlp")),
        "the team has no queue there",
    ),
    Attempt(
        "KAI's default queue from a team without KAI",
        ("sim",),
        lambda t: pod(t, container(gpus=1), schedulerName="kai-scheduler"),
        "the team has no queue there",
    ),
    *(
        Attempt(
            f"another queue on {what}, which owns a pod",
            ("nlp",),
            lambda _, made=made: _labelled(made(), "audio"),
            "write the label kai.scheduler/queue: nlp",
        )
        for what, made in (("a ConfigMap", lambda: config_map(a="b")), ("a Service", service))
    ),
    Attempt(
        "another team's queue on a ConfigMap, later",
        ("nlp",),
        lambda _: config_map(a="b"),
        "write the label kai.scheduler/queue: nlp",
        change=("", {"metadata": {"labels": {"kai.scheduler/queue": "audio"}}}),
    ),
    Attempt(
        "another team's queue on a Deployment",
        ("audio",),
        _of_another,
        "write the label kai.scheduler/queue: audio",
        who=STACKS[:1],
    ),
    Attempt(
        "a queue of the platform that begins like its own",
        ("audio",),
        lambda t: pod(t, container(gpus=1), **of_queue("audio-live")),
        "write the label kai.scheduler/queue: audio",
        who=(*STACKS, "vcluster {}"),
    ),
]


def _of_config_map(body: Object, name: str) -> Object:
    body["spec"]["containers"][0]["env"][0]["valueFrom"]["configMapKeyRef"]["name"] = name
    return body


def _with_share(name: str) -> Object:
    found = container(name)
    found["env"] = fraction("nlp")["spec"]["containers"][0]["env"][:1]
    found["env"][0]["valueFrom"]["configMapKeyRef"]["name"] = "train-a-abcdefg-shared-gpu-1"
    return found
