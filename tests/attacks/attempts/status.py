"""What goes by the status of a pod and by other subresources, written by a tenant (T16)."""

from typing import Any

from tests.attacks.attempts.attempt import EVERY_MODE, Attempt
from tests.attacks.objects import container, fraction, pod

_LEAVE = "leave these to Kubernetes"


def _status(name: str, says: str = _LEAVE, **status: Any) -> Attempt:
    change = ("status", {"status": status})
    return Attempt(name, EVERY_MODE, lambda t: pod(t), says, change=change)


def _brought(name: str, **metadata: Any) -> Attempt:
    change = ("status", {"metadata": metadata})
    return Attempt(f"{name}, by the status", EVERY_MODE, lambda t: pod(t), _LEAVE, change=change)


def _condition(kind: str, **more: str) -> dict[str, str]:
    return {"type": kind, "status": "True", **more}


STATUS = [
    _status("a node for nothing, which others cannot use", nominatedNodeName="dev-1"),
    _status(
        "its GPUs back to the quota by a resize that cannot be",
        "has a condition of a resize",
        conditions=[_condition("PodResizePending", reason="Infeasible")],
    ),
    _status(
        "a resize that goes on",
        "has a condition of a resize",
        conditions=[_condition("PodResizeInProgress")],
    ),
    _status(
        "containers that hold nothing",
        containerStatuses=[
            {
                "name": "main",
                "image": "x",
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "resources": {},
                "allocatedResources": {"nvidia.com/gpu": "0"},
            }
        ],
    ),
    _status("a reason of its own", reason="Evicted", message="nobody"),
    _status("another start", startTime="2020-01-01T00:00:00Z"),
    _brought("the labels of the control plane", labels={"app": "vcluster", "release": "ml"}),
    _brought("a label that Services go by", labels={"app": "web"}),
    _brought("a CDI device", annotations={"cdi.k8s.io/x": "nvidia.com/gpu=all"}),
    _brought("the host's network by Multus", annotations={"k8s.v1.cni.cncf.io/networks": "host"}),
    _brought("another team's queue", labels={"kai.scheduler/queue": "audio"}),
    _brought("a place on the GPU of others", labels={"runai-gpu-group": "0f1e"}),
    _brought("a smaller share", annotations={"gpu-fraction": "0.01"}),
    Attempt(
        "a share that it no longer has, by the status",
        ("nlp",),
        fraction,
        _LEAVE,
        change=("status", {"metadata": {"annotations": {"gpu-fraction": None}}}),
    ),
    Attempt(
        "a debugging container with a device of NVIDIA's network",
        EVERY_MODE,
        lambda t: pod(t),
        "drop the variable",
        change=(
            "ephemeralcontainers",
            {
                "spec": {
                    "ephemeralContainers": [
                        container("debug", env=[{"name": "NVIDIA_MOFED", "value": "enabled"}])
                    ]
                }
            },
        ),
    ),
]
