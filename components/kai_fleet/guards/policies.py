"""The policies in the YAML files beside this one, and the bindings by which they hold."""

import copy
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import pulumi
import yaml
from pulumi_kubernetes.admissionregistration import v1 as admission

from kai_fleet.names import ISOLATION_LABEL
from kai_fleet.options import after

Object = dict[str, Any]
Kind = str  # the name of a file, without its ending

QUEUES: Final = "kai-fleet-queues-"  # begins the names of queue guards
POLICY: Final = "ValidatingAdmissionPolicy"
BINDING: Final = "ValidatingAdmissionPolicyBinding"
# What holds in the namespace of every team, by one binding for all of them.
OF_ALL_TEAMS: Final = ("devices", "pods", "traffic", "lifecycle", "releases")
BESIDE_KAI: Final = ("owners",)  # and on a host with a KAI
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
# What a binding does with an object that the policy refuses.
DENY: Final = ("Deny",)
WARN: Final = ("Warn",)
AUDIT: Final = ("Audit", "Warn")  # it passes, and both its maker and the audit log are told


@cache
def content(name: str) -> Any:
    """What a YAML file beside this one says; not to be changed."""
    return yaml.safe_load((files(__package__) / f"{name}.yaml").read_text(encoding="utf-8"))


def policy_name(kind: Kind, suffix: str = "") -> str:
    """The name of a policy in the cluster; `suffix` is that of a vCluster's own."""
    return f"kai-fleet-{kind}{suffix}"


def kinds(*, beside_kai: bool) -> list[Kind]:
    """The policies of a host."""
    return [*OF_ALL_TEAMS, "nodes", *((*BESIDE_KAI, "queues") if beside_kai else ())]


def policy(kind: Kind, suffix: str = "", bounds: Mapping[str, str] | None = None) -> Object:
    """A policy as the cluster has it, with the `bounds` written in where no namespace has them.

    A variable without an expression has that of shared.yaml.
    """
    body: Object = copy.deepcopy(content(kind))
    body["metadata"]["name"] = policy_name(kind, suffix)
    own = content("shared")
    if bounds is not None:
        notes = as_annotations(bounds).items()
        pairs = ", ".join(f"{_text(key)}: {_text(value)}" for key, value in notes)
        own = {**own, "bounds": f"{{{pairs}}}"}
    for variable in body["spec"]["variables"]:
        if "expression" not in variable or (bounds is not None and variable["name"] == "bounds"):
            variable["expression"] = own[variable["name"]]
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
    resources = dict(match or {})
    if namespace is not None:
        resources["namespaceSelector"] = {"matchLabels": {NAME_LABEL: namespace}}
    spec: Object = {"policyName": policy_name, "validationActions": list(actions)}
    spec |= {"matchResources": resources} if resources else {}
    spec |= {"paramRef": dict(param_ref)} if param_ref is not None else {}
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": BINDING}
    return {**kind, "metadata": {"name": name}, "spec": spec}


def shared_bindings(*, beside_kai: bool) -> dict[Kind, Object]:
    """The bindings that are there once for every isolated team's namespace."""
    levels = {"key": ISOLATION_LABEL, "operator": "In", "values": ["baseline", "restricted"]}
    every = {"namespaceSelector": {"matchExpressions": [levels]}}
    return {
        kind: binding(policy_name(kind), policy_name(kind), match=every)
        for kind in (*OF_ALL_TEAMS, *(BESIDE_KAI if beside_kai else ()))
    }


def declare(
    name: str,
    policies: Mapping[str, Object],
    bindings: Mapping[str, Object],
    opts: pulumi.ResourceOptions,
) -> list[pulumi.Resource]:
    """Policies, and bindings after their policies, by the last part of their resources' names."""
    declared: dict[str, pulumi.Resource] = {
        body["metadata"]["name"]: admission.ValidatingAdmissionPolicy(
            f"{name}-{part}", metadata=body["metadata"], spec=body["spec"], opts=opts
        )
        for part, body in policies.items()
    }
    bound = [
        admission.ValidatingAdmissionPolicyBinding(
            f"{name}-{part}",
            metadata=body["metadata"],
            spec=body["spec"],
            opts=after(
                opts, *(declared[key] for key in {body["spec"]["policyName"]} & {*declared})
            ),
        )
        for part, body in bindings.items()
    ]
    return [*declared.values(), *bound]
