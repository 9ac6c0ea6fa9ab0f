"""The policies in the YAML files beside this one, and the bindings by which they hold."""

import copy
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

import yaml

Object = dict[str, Any]
Kind = Literal[
    "devices",
    "pods",
    "traffic",
    "nodes",
    "lifecycle",
    "releases",
    "owners",
    "queues",
    "outside-queues",
    "team-stack-queues",
]

QUEUES: Final = "kai-fleet-queues-"  # begins the names of queue guards
POLICY: Final = "ValidatingAdmissionPolicy"
BINDING: Final = "ValidatingAdmissionPolicyBinding"
OLDEST_KUBERNETES: Final = "1.30"  # the first that serves both as v1
# What holds in the namespace of every team, by one binding for all of them.
OF_ALL_TEAMS: Final[tuple[Kind, ...]] = ("devices", "pods", "traffic", "lifecycle", "releases")
BESIDE_KAI: Final[tuple[Kind, ...]] = ("owners",)  # and on a host with a KAI
# Labels of a team's namespace: whose it is, its level, and that others made it: an update that was
# cut off finds by the last whose the namespace is.
TEAM_LABEL: Final = "kai-fleet/team"
ISOLATION_LABEL: Final = "kai-fleet/isolation"
USED_LABEL: Final = "kai-fleet/namespace"
ENFORCED: Final = "pod-security.kubernetes.io/enforce"
BOUNDS: Final = "guard.kai-fleet/"  # begins the annotations of a namespace that policies read
NAME_LABEL: Final = "kubernetes.io/metadata.name"
# As a quota selects pods of Kubernetes' own classes: each makes room for itself on any node.
SYSTEM_SCOPE: Final[Any] = {
    "match_expressions": [
        {
            "operator": "In",
            "scope_name": "PriorityClass",
            "values": ["system-node-critical", "system-cluster-critical"],
        }
    ]
}
# What a binding does with an object that the policy refuses.
DENY: Final = ("Deny",)
WARN: Final = ("Warn",)
AUDIT: Final = ("Audit", "Warn")  # it passes, and both its maker and the audit log are told


def policy_name(kind: Kind, suffix: str = "") -> str:
    """The name of a policy in the cluster: a host's, for all of its teams, or with a `suffix` that
    of one guard.
    """
    return f"kai-fleet-{kind}{suffix}"


def kinds(*, beside_kai: bool) -> list[Kind]:
    """The policies of a host."""
    return [*OF_ALL_TEAMS, "nodes", *((*BESIDE_KAI, "queues") if beside_kai else ())]


def _read(file: str) -> Object:
    text = (files(__package__) / f"{file}.yaml").read_text(encoding="utf-8")
    content: Object = yaml.safe_load(text)
    return content


@cache
def _policy(kind: Kind) -> Object:
    """The file of a policy; a variable without an expression has that of shared.yaml."""
    body, shared = _read(kind), _read("shared")
    for variable in body["spec"]["variables"]:
        if "expression" not in variable:
            variable["expression"] = shared[variable["name"]]
    return body


def policy(kind: Kind, suffix: str = "", bounds: Mapping[str, str] | None = None) -> Object:
    """A policy as the cluster has it.

    Where a team's namespace has no annotations with its `bounds`, or is none of the platform's,
    they are written into the policy.
    """
    body = copy.deepcopy(_policy(kind))
    body["metadata"]["name"] = policy_name(kind, suffix)
    if bounds is not None:
        notes = as_annotations(bounds).items()
        pairs = ", ".join(f"{_text(key)}: {_text(value)}" for key, value in notes)
        for variable in body["spec"]["variables"]:
            if variable["name"] == "bounds":
                variable["expression"] = f"{{{pairs}}}"
    return body


def as_annotations(bounds: Mapping[str, str]) -> dict[str, str]:
    """A team's bounds as the annotations of its namespace."""
    return {f"{BOUNDS}{key}": value for key, value in bounds.items()}


def _text(value: str) -> str:
    """A string literal of CEL."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def binding(
    name: str,
    policy_name: str,
    *,
    actions: tuple[str, ...] = DENY,
    namespace: Any = None,
    match: Mapping[str, Any] | None = None,
    param_ref: Mapping[str, Any] | None = None,
) -> Object:
    """The binding by which a policy holds: in one `namespace`, or in all where None.

    `match` and `param_ref` are taken as they are, for other choices.
    """
    spec: Object = {"policyName": policy_name, "validationActions": list(actions)}
    resources = dict(match or {})
    if namespace is not None:
        resources["namespaceSelector"] = {"matchLabels": {NAME_LABEL: namespace}}
    if resources:
        spec["matchResources"] = resources
    if param_ref is not None:
        spec["paramRef"] = dict(param_ref)
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": BINDING,
        "metadata": {"name": name},
        "spec": spec,
    }


def shared_bindings(
    suffix: str = "", *, beside_kai: bool = False, namespace: Any = None
) -> dict[Kind, Object]:
    """The bindings that are there once: for every team's namespace, or for one."""
    levels = {"key": ISOLATION_LABEL, "operator": "In", "values": ["baseline", "restricted"]}
    every = {"namespaceSelector": {"matchExpressions": [levels]}}
    return {
        kind: binding(
            policy_name(kind, suffix),
            policy_name(kind, suffix),
            namespace=namespace,
            match=None if namespace is not None else every,
        )
        for kind in (*OF_ALL_TEAMS, *(BESIDE_KAI if beside_kai else ()))
    }
