"""Root on a node, another team's node, another team's turn (T1, T4, T5)."""

from typing import Any

from tests.attacks.attempts.attempt import EVERY_MODE, Attempt
from tests.attacks.objects import Object, container, pod


def _privileged(field: str, value: Any) -> Any:
    return lambda team: pod(team, container(securityContext={field: value}))


def _debugger(**more: Any) -> Object:
    return {**container("debug"), **more}


_WANTED = [{"key": "kai-fleet/pool", "operator": "In", "values": ["nlp"]}]
_REQUIRED = {"nodeSelectorTerms": [{"matchExpressions": _WANTED}]}
_AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _REQUIRED}}
_SPREAD = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {},
}
PODS = [
    # Pod Security: the message names the field.
    Attempt(
        "privileged", EVERY_MODE, _privileged("privileged", True), "securityContext.privileged"
    ),
    Attempt("host PID", EVERY_MODE, lambda t: pod(t, hostPID=True), "hostPID=true"),
    Attempt("host network", EVERY_MODE, lambda t: pod(t, hostNetwork=True), "hostNetwork=true"),
    Attempt("host IPC", EVERY_MODE, lambda t: pod(t, hostIPC=True), "hostIPC=true"),
    Attempt(
        "the node's disk",
        EVERY_MODE,
        lambda t: pod(t, volumes=[{"name": "all", "hostPath": {"path": "/"}}]),
        "hostPath volumes",
    ),
    Attempt(
        "a port of the node",
        EVERY_MODE,
        lambda t: pod(t, container(ports=[{"containerPort": 80, "hostPort": 80}])),
        "hostPort",
    ),
    Attempt(
        "a capability",
        EVERY_MODE,
        _privileged("capabilities", {"add": ["SYS_ADMIN"]}),
        "must not include",
    ),
    Attempt(
        "a raw /proc",
        EVERY_MODE,
        lambda t: pod(t, container(securityContext={"procMount": "Unmasked"}), hostUsers=False),
        "procMount",
    ),
    Attempt(
        "no seccomp",
        EVERY_MODE,
        _privileged("seccompProfile", {"type": "Unconfined"}),
        "seccompProfile.type",
    ),
    Attempt(
        "another SELinux type",
        EVERY_MODE,
        _privileged("seLinuxOptions", {"type": "spc_t"}),
        "seLinuxOptions",
    ),
    Attempt(
        "a sysctl of the node",
        EVERY_MODE,
        lambda t: pod(t, securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
        "forbidden sysctls",
    ),
    Attempt(
        "privileged in an init container",
        EVERY_MODE,
        lambda t: pod(t, initContainers=[container("init", securityContext={"privileged": True})]),
        "securityContext.privileged",
    ),
    # Other teams' nodes.
    Attempt(
        "another team's node by name",
        ("nlp", "dev"),
        lambda t: pod(t, nodeName="ml-1"),
        "drop nodeName",
    ),
    Attempt(
        "a node that is to come, by name",
        ("nlp", "dev"),
        lambda t: pod(t, nodeName="ml-99"),
        "drop nodeName",
    ),
    Attempt(
        "another team's node by name, from a scheduler inside",
        ("ml", "vision"),
        lambda t: pod(t, nodeName="dev-1"),
        "let the scheduler of the team choose",
    ),
    Attempt(
        "a node of the platform",
        ("ml", "vision"),
        lambda t: pod(t, nodeName="system-1"),
        "let the scheduler of the team choose",
    ),
    Attempt(
        "any node",
        ("dev", "ml"),
        lambda t: pod(t, nodeSelector=None, nodeName=None),
        "write nodeSelector: {kai-fleet/pool: ",
    ),
    Attempt(
        "another team's pool",
        ("dev", "ml"),
        lambda t: pod(t, nodeSelector={"kai-fleet/pool": "nlp"}, nodeName=None),
        "write nodeSelector: {kai-fleet/pool: ",
    ),
    Attempt(
        "the control planes' nodes",
        ("dev", "ml"),
        lambda t: pod(
            t,
            labels={"app": "vcluster", "release": t},
            nodeSelector={"kai-fleet/pool": "platform"},
            nodeName=None,
        ),
        "write nodeSelector: {kai-fleet/pool: ",
    ),
    Attempt(
        "the control plane's labels",
        EVERY_MODE,
        lambda t: pod(t, labels={"app": "vcluster", "release": t}),
        "use others",
    ),
    # Priority, addresses, amounts.
    Attempt(
        "node-critical priority",
        EVERY_MODE,
        lambda t: pod(t, priorityClassName="system-node-critical"),
        "priorityClassName system-node-critical, which preempts",
    ),
    Attempt(
        "cluster-critical priority",
        EVERY_MODE,
        lambda t: pod(t, priorityClassName="system-cluster-critical"),
        "isolation.priorityClasses",
    ),
    Attempt(
        "the priority of another team",
        EVERY_MODE,
        lambda t: pod(t, priorityClassName="urgent"),
        "isolation.priorityClasses",
    ),
    Attempt(
        "KAI's priorities without KAI on the host",
        ("dev",),
        lambda t: pod(t, priorityClassName="train"),
        "isolation.priorityClasses",
    ),
    Attempt(
        "a priority by its value",
        EVERY_MODE,
        lambda t: pod(t, priority=100_000),
        "integer value of priority",
    ),
    Attempt(
        "the control plane's labels, later",
        EVERY_MODE,
        lambda t: pod(t),
        "use others",
        change=("", lambda t: {"metadata": {"labels": {"app": "vcluster", "release": t}}}),
    ),
    Attempt(
        "privileged as a sidecar",
        EVERY_MODE,
        lambda t: pod(
            t,
            initContainers=[
                container("s", restartPolicy="Always", securityContext={"privileged": True})
            ],
        ),
        "securityContext.privileged",
    ),
    Attempt(
        "privileged in a debugging container",
        EVERY_MODE,
        lambda t: pod(t),
        "securityContext.privileged",
        change=(
            "ephemeralcontainers",
            {"spec": {"ephemeralContainers": [_debugger(securityContext={"privileged": True})]}},
        ),
    ),
    Attempt(
        "host processes of Windows",
        EVERY_MODE,
        lambda t: pod(
            t, hostNetwork=True, securityContext={"windowsOptions": {"hostProcess": True}}
        ),
        "hostProcess",
    ),
    Attempt(
        "no AppArmor",
        EVERY_MODE,
        _privileged("appArmorProfile", {"type": "Unconfined"}),
        "must not set AppArmor profile type",
    ),
    Attempt(
        "another team's pool by affinity",
        ("dev", "ml"),
        lambda t: pod(t, affinity=_AFFINITY, nodeSelector=None, nodeName=None),
        "write nodeSelector: {kai-fleet/pool: ",
    ),
    Attempt(
        "another team's pool by tolerations and spread",
        ("dev", "ml"),
        lambda t: pod(
            t,
            tolerations=[{"operator": "Exists"}],
            topologySpreadConstraints=[_SPREAD],
            nodeSelector=None,
            nodeName=None,
        ),
        "write nodeSelector: {kai-fleet/pool: ",
    ),
]
