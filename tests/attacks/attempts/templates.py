"""Templates, judged as what they become, and the fields of a probe (T4, T7, T16)."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.attacks.attempts.attempt import EVERY_MODE, Attempt
from tests.attacks.objects import (
    Object,
    container,
    pod,
    scaled_down,
)

LEVELS = (*EVERY_MODE, "tight", "quiet")
ELSEWHERE = "10.0.0.1"
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_NODE = {"volume.kubernetes.io/selected-node": "ml-1"}
_BY_VALUES = "change it by the values of the vCluster"


def _ephemeral(team: str) -> Object:
    template = {"metadata": {"annotations": _NODE}, "spec": _CLAIM}
    return pod(team, volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": template}}])


def _restarted(name: str, change: Any, kind: str = "StatefulSet") -> Attempt:
    return Attempt(name, EVERY_MODE, partial(scaled_down, kind), _BY_VALUES, change=("", change))


def _template(**metadata: Any) -> Object:
    return {"spec": {"template": {"metadata": metadata}}}


def probing(team: str) -> Iterator[tuple[str, Object]]:
    """Pods whose node is to connect elsewhere: by each probe and hook that has a host."""
    for how in ({"httpGet": {"path": "/", "port": 80}}, {"tcpSocket": {"port": 80}}):
        [(kind, fields)] = how.items()
        to = {kind: {**fields, "host": ELSEWHERE}}
        found = {
            **{
                f"{name}Probe": {f"{name}Probe": to}
                for name in ("liveness", "readiness", "startup")
            },
            **{name: {"lifecycle": {name: to}} for name in ("postStart", "preStop")},
        }
        for name, more in found.items():
            yield f"{name}.{kind}", pod(team, container(**more))
            sidecar = container("s", restartPolicy="Always", **more)
            if team in ("tight", "quiet"):
                sidecar["securityContext"] = pod(team)["spec"]["containers"][0]["securityContext"]
            yield f"{name}.{kind} of a sidecar", pod(team, initContainers=[sidecar])


TEMPLATES = [
    Attempt(
        "another team's disk, by a template of a claim", LEVELS, _ephemeral, "drop the annotation"
    ),
    _restarted(
        "what injects into pods, by the control plane's template",
        _template(annotations={"sidecar.istio.io/inject": "true"}),
    ),
    _restarted(
        "another restart than vCluster's own",
        _template(annotations={"kubectl.kubernetes.io/restartedAt": "now"}),
    ),
    _restarted(
        "an annotation of a Deployment of the control plane",
        _template(annotations={"vault.hashicorp.com/agent-inject": "true"}),
        "Deployment",
    ),
    _restarted("a finalizer of the control plane's pods", _template(finalizers=["example.com/x"])),
    _restarted(
        "whose release the control plane is",
        {"metadata": {"annotations": {"meta.helm.sh/release-name": "x"}}},
    ),
]
