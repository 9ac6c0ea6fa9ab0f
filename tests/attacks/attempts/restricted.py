"""Level `restricted`, field by field, and who claims its exceptions."""

import copy
from typing import Any

from tests.attacks.attempts.attempt import Attempt
from tests.attacks.objects import (
    RESTRICTED,
    Object,
    component,
    container,
    core_dns,
    pod,
    reservation,
)


def _unlike(field: str, value: Any) -> Any:
    """A pod of the restricted team in which one field is wrong."""
    context = copy.deepcopy(RESTRICTED)
    if value is None:
        del context[field]
    else:
        context[field] = value
    return lambda team: pod(team, container(securityContext=context))


def _commanded(body: Object) -> Object:
    body["spec"]["containers"][0]["command"] = ["/bin/sh"]
    return body


def _image(body: Object, image: str) -> Object:
    body["spec"]["containers"][0]["image"] = image
    return body


def _beside(body: Object, other: Object) -> Object:
    body["spec"]["containers"].append(other)
    return body


def _brought(**more: Any) -> Any:
    def body(team: str) -> Object:
        found = component(team, "binder", "v0.9.3")
        found["spec"]["containers"][0] |= {"securityContext": {}, **more}
        found["spec"]["volumes"] = [{"name": "own", "configMap": {"name": "own"}}]
        return found

    return body


def _with_claim(body: Object) -> Object:
    claim = {"persistentVolumeClaim": {"claimName": "own"}}
    body["spec"]["volumes"] = [{"name": "own", **claim}]
    return body


def _over(path: str) -> Object:
    return {"name": "own", "mountPath": path}


_KAI = "ghcr.io/nvidia/kai-scheduler"
_LACKS = "is not as isolation level restricted wants it; write securityContext."
RESTRICTED_ATTEMPTS = [
    # Restricted: each field by its name.
    *(
        Attempt(f"restricted: {name}", ("tight",), _unlike(field, value), f"write {says}")
        for name, field, value, says in (
            ("may escalate", "allowPrivilegeEscalation", None, "securityContext.allowPriv"),
            (
                "keeps capabilities",
                "capabilities",
                None,
                "securityContext.capabilities.drop: [ALL]",
            ),
            (
                "adds a capability",
                "capabilities",
                {"drop": ["ALL"], "add": ["CHOWN"]},
                "securityContext.capabilities.drop: [ALL]",
            ),
            ("may be root", "runAsNonRoot", None, "securityContext.runAsNonRoot: true"),
            ("is root", "runAsUser", 0, "securityContext.runAsUser with a number above 0"),
            ("no seccomp profile", "seccompProfile", None, "securityContext.seccompProfile.type"),
        )
    ),
    Attempt(
        "restricted: a volume of the network",
        ("tight",),
        lambda t: pod(t, volumes=[{"name": "n", "nfs": {"server": "s", "path": "/"}}]),
        "isolation.volumes",
    ),
    Attempt(
        "restricted: KAI's image with a command of its own",
        ("tight",),
        lambda t: _commanded(component(t, "binder", "v0.9.3")),
        "securityContext.capabilities.drop: [ALL]",
    ),
    Attempt(
        "restricted: the namespace of KAI's parts",
        ("tight",),
        lambda t: _image(component(t, "binder", "v0.9.3"), "evil.example/x:1"),
        "securityContext.capabilities.drop: [ALL]",
    ),
    Attempt(
        "restricted: an image beside KAI's",
        ("tight",),
        lambda t: _beside(reservation(t, "v0.9.3"), container("x")),
        "securityContext.allowPrivilegeEscalation",
    ),
    Attempt(
        "restricted: the name of CoreDNS",
        ("tight",),
        lambda t: {**core_dns(t), "spec": {**core_dns(t)["spec"], "securityContext": {}}},
        "securityContext.seccompProfile.type",
    ),
    *(
        Attempt(f"restricted: KAI's image with {what}", ("tight",), _brought(**more), _LACKS)
        for what, more in (
            ("a hook", {"lifecycle": {"postStart": {"exec": {"command": ["/x"]}}}}),
            ("a probe that runs a command", {"livenessProbe": {"exec": {"command": ["/x"]}}}),
            ("another program in its place", {"volumeMounts": [_over("/workspace")]}),
            ("files of its own", {"volumeMounts": [_over("/etc/config")]}),
            ("root", {"securityContext": {"runAsUser": 0}}),
            ("a capability", {"securityContext": {"capabilities": {"add": ["CHOWN"]}}}),
            ("a shell", {"image": f"{_KAI}/crd-upgrader:v0.9.3", "args": ["/bin/sh"]}),
            ("a name that is none of its programs", {"image": f"{_KAI}/anything:v1"}),
            ("a name that only begins like it", {"image": f"{_KAI}/binder/evil:v1"}),
            ("a library of its own", {"env": [{"name": "LD_PRELOAD", "value": "/x.so"}]}),
            ("variables of its own", {"envFrom": [{"configMapRef": {"name": "own"}}]}),
            ("another registry", {"image": "evil.example/kai-scheduler/binder:v0.9.3"}),
            ("a path below the registry", {"image": f"{_KAI}/../evil/binder:v0.9.3"}),
        )
    ),
    Attempt(
        "restricted: another image in place of KAI's",
        ("tight",),
        lambda t: reservation(t, "v0.9.3"),
        _LACKS,
        change=(
            "",
            [{"op": "replace", "path": "/spec/containers/0/image", "value": "evil.example/x:1"}],
        ),
    ),
    Attempt(
        "restricted: KAI's image with a volume that is none of KAI's",
        ("tight",),
        lambda t: _with_claim(component(t, "binder", "v0.9.3")),
        _LACKS,
    ),
    Attempt(
        "restricted: KAI's image in a team without KAI",
        ("quiet",),
        lambda t: {**component(t, "binder", "v0.9.3")},
        _LACKS,
    ),
    Attempt(
        "restricted: a debugging container",
        ("tight",),
        lambda t: pod(t),
        _LACKS,
        change=("ephemeralcontainers", {"spec": {"ephemeralContainers": [container("debug")]}}),
    ),
    Attempt(
        "restricted: a sidecar",
        ("tight",),
        lambda t: pod(t, initContainers=[container("s", restartPolicy="Always")]),
        _LACKS,
    ),
]
