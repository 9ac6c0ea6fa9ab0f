"""Bounds that forget: time, priorities, nodes of others (T16, T18)."""

from typing import Any

from tests.attacks.attempts.attempt import EVERY_MODE, Attempt
from tests.attacks.objects import container, fraction, pod

_TEN_YEARS = 315_360_000
_POOLLESS = ("nlp", "sim")
_TAINTS = "tolerates the taints of nodes that are not of the team"
_SELECTS = "selects nodes that are not of the team"


def _affinity(*terms: Any) -> Any:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


_BY_NAME = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["system-1"]}]}
_ANY = {"matchExpressions": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}
_GATED = [{"name": "example.com/wait"}]  # until it is taken away, the pod may be placed anew
_EXISTS = {"operator": "Exists"}
_PLATFORM = {"key": "kai-fleet/pool", "operator": "In", "values": ["spare", "platform"]}
_EVERY_POOL = {"key": "kai-fleet/pool", "operator": "Exists"}


def _named_of_another(team: str) -> Any:
    found = fraction(team)
    found["metadata"]["name"] = "train-b"  # and names the ConfigMap of train-a
    return found


def _share(**notes: str) -> Any:
    def made(team: str) -> Any:
        found = fraction(team)
        more = {key.replace("_", "-"): value for key, value in notes.items()}
        found["metadata"]["annotations"] |= more
        return found

    return made


def _probed(kind: str) -> Any:
    slow = {"tcpSocket": {"port": 80}, "terminationGracePeriodSeconds": _TEN_YEARS}
    return lambda team: pod(team, container(**{kind: slow}))


def _affine(kind: str, **others: Any) -> Any:
    """All nodes of an operating system, for itself or with others' pods alone."""
    term = {"topologyKey": "kubernetes.io/os", "labelSelector": {}, **others}
    weighed = [{"weight": 100, "podAffinityTerm": term}]
    wish, need = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in _HOW)
    return [{kind: {wish: weighed}}, {kind: {need: [term]}}]


_HOW = ("preferred", "required")
_COUNTED = "write 0.01 or more, on at most 9999 devices"
BOUNDS = [
    Attempt("a share that KAI rounds to none", ("nlp",), _share(gpu_fraction="0.004"), _COUNTED),
    Attempt(
        "such a share on each GPU of a node",
        ("nlp",),
        _share(gpu_fraction="1e-9", gpu_fraction_num_devices="8"),
        _COUNTED,
    ),
    Attempt(
        "shares on more devices than KAI can count",
        ("nlp",),
        _share(gpu_fraction_num_devices="368934881474191033"),
        _COUNTED,
    ),
    *(
        Attempt(f"ten years to end, by a {kind}", EVERY_MODE, _probed(kind), "write 3600 or less")
        for kind in ("livenessProbe", "startupProbe")
    ),
    *(
        Attempt(
            f"{kind} to pods of {whose}, {how}",
            EVERY_MODE,
            lambda t, a=affinity: pod(t, affinity=a),
            "drop namespaces and namespaceSelector",
        )
        for kind in ("podAffinity", "podAntiAffinity")
        for whose, others in (
            ("every namespace", {"namespaceSelector": {}}),
            ("kube-system", {"namespaces": ["kube-system"]}),
        )
        for how, affinity in zip(_HOW, _affine(kind, **others), strict=True)
    ),
    Attempt(
        "every taint, later",
        _POOLLESS,
        lambda t: pod(t),
        _TAINTS,
        change=("", [{"op": "add", "path": "/spec/tolerations/-", "value": _EXISTS}]),
    ),
    Attempt(
        "the platform's nodes by their label, while it waits",
        _POOLLESS,
        lambda t: pod(t, schedulingGates=_GATED),
        _SELECTS,
        change=("", {"spec": {"nodeSelector": {"kai-fleet/pool": "platform"}}}),
    ),
    Attempt(
        "any node by its name, while it waits",
        _POOLLESS,
        lambda t: pod(t, schedulingGates=_GATED),
        "names its node by matchFields",
        change=("", {"spec": {"affinity": _affinity(_BY_NAME)}}),
    ),
    Attempt(
        "ten years to end",
        EVERY_MODE,
        lambda t: pod(t, terminationGracePeriodSeconds=_TEN_YEARS),
        "write 3600 or less",
    ),
    Attempt(
        "a second more than is granted",
        ("mig",),
        lambda t: pod(t, terminationGracePeriodSeconds=7201),
        "isolation.bounds.graceSeconds",
    ),
    Attempt(
        "ten years to end, when it is deleted",  # a pod without a node goes at once
        ("ml",),
        lambda t: pod(t),
        "s to end; write its own",
        change=("", {"kind": "DeleteOptions", "gracePeriodSeconds": _TEN_YEARS}),
        verb="DELETE",
    ),
    *(
        Attempt(
            f"KAI's priority class {name} with another scheduler",
            ("nlp",),
            lambda t, n=name: pod(t, priorityClassName=n),
            "write schedulerName: kai-scheduler",
        )
        for name in ("train",)
    ),
    Attempt(
        "the share of another pod, where it is known", ("nlp",), _named_of_another, "of another pod"
    ),
    Attempt(
        "any node by its name, from a team without nodes",
        _POOLLESS,
        lambda t: pod(t, affinity=_affinity(_BY_NAME)),
        "names its node by matchFields",
    ),
    Attempt(
        "any node by its name, in the second of two terms",
        _POOLLESS,
        lambda t: pod(t, affinity=_affinity(_ANY, _BY_NAME)),
        "names its node by matchFields",
    ),
    Attempt(
        "every taint, from a team without nodes",
        _POOLLESS,
        lambda t: pod(t, tolerations=[{"operator": "Exists"}]),
        _TAINTS,
    ),
    Attempt(
        "every taint with one effect",
        _POOLLESS,
        lambda t: pod(t, tolerations=[{"operator": "Exists", "effect": "NoSchedule"}]),
        _TAINTS,
    ),
    Attempt(
        "the taint of the pools",
        _POOLLESS,
        lambda t: pod(t, tolerations=[{"key": "kai-fleet/pool", "operator": "Exists"}]),
        _TAINTS,
    ),
    *(
        Attempt(
            f"more than the toleration that the platform gives it: {what}",
            ("sim",),
            lambda t, m=more: pod(t, tolerations=[{"key": "kai-fleet/pool", **m}]),
            _TAINTS,
        )
        for what, more in (
            ("another value", {"value": "platform", "effect": "NoSchedule"}),
            ("another effect", {"value": "sim", "effect": "NoExecute"}),
            ("every effect", {"value": "sim"}),
            ("every value", {"operator": "Exists", "effect": "NoSchedule"}),
        )
    ),
    Attempt(
        "the platform's nodes by their label",
        _POOLLESS,
        lambda t: pod(t, nodeSelector={"kai-fleet/pool": "platform"}),
        _SELECTS,
    ),
    # A binding says of a pod its name only, by which the policy of nodes knows control planes.
    *(
        Attempt(
            f"the place of its control plane on the platform's nodes: {name.format('…')}",
            _POOLLESS,
            lambda t, n=name: pod(t, name=n.format(t)),
            "name it otherwise",
        )
        for name in ("{}-7", "{}-etcd-0", "{}-5b8-abcde")
    ),
    *(
        Attempt(
            f"the platform's nodes by affinity: {what}",
            _POOLLESS,
            lambda t, e=expression: pod(t, affinity=_affinity({"matchExpressions": [e]})),
            _SELECTS,
        )
        for what, expression in (
            ("among others", _PLATFORM),
            ("any pool", _EVERY_POOL),
            ("any number", {**_PLATFORM, "operator": "Gt", "values": ["0"]}),
        )
    ),
]
