"""The policies in the YAML files beside this one, and the bindings by which they hold."""

import copy
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import pulumi
from pulumi_kubernetes.admissionregistration import v1 as admission

from kai_fleet.names import ISOLATION_LABEL
from kai_fleet.options import after
from kai_fleet.releases import table

Object = dict[str, Any]
Kind = str  # the name of a file, without its ending

POLICY: Final = "ValidatingAdmissionPolicy"
# What holds in the namespace of every team, by one binding for all of them.
OF_ALL_TEAMS: Final = (
    "devices",
    "pods",
    "annotations",
    "metadata",
    "traffic",
    "lifecycle",
    "releases",
    "classes",
)
ENFORCED: Final = "pod-security.kubernetes.io/enforce"
ACCOUNTS: Final = "kai-fleet-team-stacks"  # the namespace of the accounts of team stacks
BOUNDS: Final = "guard.kai-fleet/"  # begins the annotations of a namespace that policies read
NAME_LABEL: Final = "kubernetes.io/metadata.name"
# As a quota selects pods of Kubernetes' own classes: each makes room for itself on any node.
_SYSTEM_CLASSES: Final = ["system-node-critical", "system-cluster-critical"]
SYSTEM_SCOPE: Final[Any] = {
    "match_expressions": [
        {"operator": "In", "scope_name": "PriorityClass", "values": _SYSTEM_CLASSES}
    ]
}
# What a binding does with an object that the policy refuses. With `audit` it passes, and both its
# maker and the audit log are warned.
_ACTIONS: Final = {"deny": ["Deny"], "audit": ["Audit", "Warn"], "warn": ["Warn"]}
# A policy is asked once for each of its parameters; where there is none, it refuses nothing.
_EACH: Final = {"selector": {}, "parameterNotFoundAction": "Allow"}
content: Final = partial(table, package=__package__)  # what a YAML file beside this one says


def policy_name(kind: Kind, suffix: str = "") -> str:
    """The name of a policy in the cluster; `suffix` is that of a vCluster's own."""
    return f"kai-fleet-{kind}{suffix}"


def policy(kind: Kind, suffix: str = "", bounds: Mapping[str, str] | None = None) -> Object:
    """A policy as the cluster has it, with the `bounds` written in where no namespace has them.

    A variable without an expression has that of shared.yaml.
    """
    body: Object = copy.deepcopy(content(kind))
    body["metadata"]["name"] = policy_name(kind, suffix)
    shared = dict(content("shared"))
    if bounds is not None:
        pairs = (f"{_text(key)}: {_text(value)}" for key, value in as_annotations(bounds).items())
        shared["bounds"] = f"{{{', '.join(pairs)}}}"
    for variable in body["spec"]["variables"]:
        variable.setdefault("expression", shared.get(variable["name"]))
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
    mode: str = "deny",
    *,
    namespace: Any = None,
    match: Mapping[str, Any] | None = None,
    param_ref: Mapping[str, Any] | None = None,
) -> Object:
    """The binding by which a policy holds, in one `namespace` or in all.

    `mode` is `deny`, `audit` or `warn`, `match` the rest of its `matchResources`, `param_ref` its
    `paramRef`.
    """
    resources = dict(match or {})
    if namespace is not None:
        resources["namespaceSelector"] = {"matchLabels": {NAME_LABEL: namespace}}
    spec: Object = {"policyName": policy_name, "validationActions": _ACTIONS[mode]}
    spec |= {"matchResources": resources} if resources else {}
    spec |= {"paramRef": dict(param_ref)} if param_ref is not None else {}
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{POLICY}Binding"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


def of_host(*, beside_kai: bool) -> tuple[dict[Kind, Object], dict[str, Object]]:
    """The policies of a host, and the bindings that are there once for every isolated team's
    namespace, by the last part of the resources' names.
    """
    levels = {"key": ISOLATION_LABEL, "operator": "In", "values": ["baseline", "restricted"]}
    every = {"namespaceSelector": {"matchExpressions": [levels]}}
    shared = (*OF_ALL_TEAMS, *(("owners",) if beside_kai else ()))
    names = {kind: policy_name(kind) for kind in shared}
    bound_by_team = ("nodes", *(("queues",) if beside_kai else ()))
    bindings = {}
    for kind, name in names.items():
        params = _EACH if "paramKind" in content(kind)["spec"] else None
        bindings[f"{kind}-binding"] = binding(name, name, match=every, param_ref=params)
    return {kind: policy(kind) for kind in (*shared, *bound_by_team)}, bindings


def declare(
    name: str,
    policies: Mapping[str, Object],
    bindings: Mapping[str, Object],
    opts: pulumi.ResourceOptions,
) -> list[pulumi.Resource]:
    """Policies, then their bindings, by the last part of their resources' names."""

    def each(
        kind: Any, bodies: Mapping[str, Object], opts: pulumi.ResourceOptions
    ) -> list[pulumi.Resource]:
        return [
            kind(f"{name}-{part}", metadata=body["metadata"], spec=body["spec"], opts=opts)
            for part, body in bodies.items()
        ]

    first = each(admission.ValidatingAdmissionPolicy, policies, opts)
    return first + each(admission.ValidatingAdmissionPolicyBinding, bindings, after(opts, *first))
