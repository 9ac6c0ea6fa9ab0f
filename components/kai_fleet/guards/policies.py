"""The policies in the YAML files beside this one, and the bindings by which they hold."""

import copy
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import yaml

Object = dict[str, Any]
Kind = str  # the name of a file, without its ending

QUEUES: Final = "kai-fleet-queues-"  # begins the names of queue guards
POLICY: Final = "ValidatingAdmissionPolicy"
BINDING: Final = "ValidatingAdmissionPolicyBinding"
OLDEST_KUBERNETES: Final = "1.30"  # the first that serves both as v1
# What holds in the namespace of every team, by one binding for all of them.
OF_ALL_TEAMS: Final = ("devices", "pods", "traffic", "lifecycle", "releases")
BESIDE_KAI: Final = ("owners",)  # and on a host with a KAI
# Labels of a team's namespace: whose it is, its level, and that others made it: an update that was
# cut off finds by the last whose the namespace is.
TEAM_LABEL: Final = "kai-fleet/team"
ISOLATION_LABEL: Final = "kai-fleet/isolation"
USED_LABEL: Final = "kai-fleet/namespace"
ENFORCED: Final = "pod-security.kubernetes.io/enforce"
ACCOUNTS: Final = "kai-fleet-team-stacks"  # the namespace of the accounts of team stacks
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
    """The name of a policy in the cluster; `suffix` is that of a vCluster's own."""
    return f"kai-fleet-{kind}{suffix}"


def kinds(*, beside_kai: bool) -> list[Kind]:
    """The policies of a host."""
    return [*OF_ALL_TEAMS, "nodes", *((*BESIDE_KAI, "queues") if beside_kai else ())]


@cache
def _policy(kind: Kind) -> Object:
    """The file of a policy; a variable without an expression has that of shared.yaml."""
    body, shared = (
        yaml.safe_load((files(__package__) / f"{file}.yaml").read_text(encoding="utf-8"))
        for file in (kind, "shared")
    )
    for variable in body["spec"]["variables"]:
        if "expression" not in variable:
            variable["expression"] = shared[variable["name"]]
    parsed: Object = body
    return parsed


def policy(kind: Kind, suffix: str = "", bounds: Mapping[str, str] | None = None) -> Object:
    """A policy as the cluster has it, with the `bounds` written in where no namespace has them."""
    body = copy.deepcopy(_policy(kind))
    body["metadata"]["name"] = policy_name(kind, suffix)
    if bounds is not None:
        notes = as_annotations(bounds).items()
        pairs = ", ".join(f"{_text(key)}: {_text(value)}" for key, value in notes)
        for variable in body["spec"]["variables"]:
            if variable["name"] == "bounds":
                variable["expression"] = f"{{{pairs}}}"
    return body


def as_annotations(bounds: Mapping[str, Any]) -> dict[str, Any]:
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
    """The binding by which a policy holds, in one `namespace` or in all.

    `match` is the rest of its `matchResources`, `param_ref` its `paramRef`.
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


def shared_bindings(*, beside_kai: bool) -> dict[Kind, Object]:
    """The bindings that are there once for every isolated team's namespace."""
    levels = {"key": ISOLATION_LABEL, "operator": "In", "values": ["baseline", "restricted"]}
    every = {"namespaceSelector": {"matchExpressions": [levels]}}
    return {
        kind: binding(policy_name(kind), policy_name(kind), match=every)
        for kind in (*OF_ALL_TEAMS, *(BESIDE_KAI if beside_kai else ()))
    }
