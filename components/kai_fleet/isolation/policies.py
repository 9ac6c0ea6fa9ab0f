"""ValidatingAdmissionPolicies from the YAML files beside this module, and their bindings.

A guard is one of these policies; its name here is that of its file, such as `pods`.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import pulumi
from pulumi_kubernetes.admissionregistration import v1 as admission

from kai_fleet.declaring.options import depending_on
from kai_fleet.names import ISOLATION_LABEL
from kai_fleet.releases import table

T = TypeVar("T")
Object = dict[str, Any]  # a Kubernetes object, or a piece of one

POLICY = "ValidatingAdmissionPolicy"
# Guards that one binding each applies to the namespaces of all isolated teams.
OF_ALL_TEAMS = (
    "devices",
    "pods",
    "annotations",
    "metadata",
    "traffic",
    "lifecycle",
    "releases",
    "classes",
)
ENFORCED = "pod-security.kubernetes.io/enforce"
ACCOUNTS = "kai-fleet-team-stacks"  # the namespace of the accounts of team stacks
BOUNDS = "guard.kai-fleet/"  # prefix of the annotations of a namespace that policies read
NAME_LABEL = "kubernetes.io/metadata.name"
_SYSTEM_CLASSES = ["system-node-critical", "system-cluster-critical"]
# Scope of a ResourceQuota: pods of Kubernetes' own classes, which preempt others on any node.
SYSTEM_SCOPE: Object = {
    "match_expressions": [
        {"operator": "In", "scope_name": "PriorityClass", "values": _SYSTEM_CLASSES}
    ]
}
# What a binding does with an object that its policy refuses, by mode. `audit` and `warn` admit it:
# both warn the client, and `audit` also notes it in the audit log.
_ACTIONS = {"deny": ["Deny"], "audit": ["Audit", "Warn"], "warn": ["Warn"]}
# The guard that keeps an empty store from starting, and the label of what it reads.
VOLUMES = "volumes"
VOLUMES_LABEL = {"app": "kai-fleet-volumes"}
# Annotations of those: the claims of a store, its vCluster, and of a restore the backup's time.
CLAIMS = "kai-fleet/claims"
HELD = "kai-fleet/vcluster"
RESTORING = "kai-fleet/restoring"
# The API server asks a policy once for each parameter. Without any it refuses nothing.
_EACH_PARAMETER = {"selector": {}, "parameterNotFoundAction": "Allow"}
_EACH_VOLUME = {**_EACH_PARAMETER, "selector": {"matchLabels": VOLUMES_LABEL}}


def content(name: str) -> Any:
    """The YAML file `name`.yaml beside this module, parsed. Do not change it: it is cached.

    Raises FileNotFoundError.
    """
    return table(name, package=__package__)


def policy_name(guard: str, suffix: str = "") -> str:
    """The name of a guard's policy in the cluster; inside a vCluster its `suffix` is `-TEAM`."""
    return f"kai-fleet-{guard}{suffix}"


def policy(
    guard: str,
    suffix: str = "",
    bounds: Mapping[str, str] | None = None,
) -> Object:
    """A guard's policy as a Kubernetes object.

    A variable without an expression gets the one in shared.yaml. With `bounds`, also empty ones,
    the policy has them as constants; otherwise it reads them from the annotations of the namespace.
    It is a copy, which the caller may change. Raises FileNotFoundError for what is no guard.
    """
    body: Object = copy.deepcopy(content(guard))
    body["metadata"] = {"name": policy_name(guard, suffix)}
    shared = dict(content("shared"))
    if bounds is not None:
        shared["bounds"] = _cel_map(as_annotations(bounds))
    for variable in body["spec"]["variables"]:
        variable.setdefault("expression", shared.get(variable["name"]))
    return body


def as_annotations(bounds: Mapping[str, T]) -> dict[str, T]:
    """Bounds as annotations of a namespace: with the prefix that policies read."""
    return {f"{BOUNDS}{name}": value for name, value in bounds.items()}


def _cel_map(texts: Mapping[str, str]) -> str:
    """A map literal of CEL."""
    entries = [f"{_cel_string(key)}: {_cel_string(text)}" for key, text in texts.items()]
    return f"{{{', '.join(entries)}}}"


def _cel_string(text: str) -> str:
    """A string literal of CEL for a text without line breaks."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def binding(
    name: str,
    bound_policy: str = "",
    mode: str = "deny",
    *,
    namespace: pulumi.Input[str] | None = None,
    match: Mapping[str, object] | None = None,
    param_ref: Mapping[str, object] | None = None,
) -> Object:
    """A ValidatingAdmissionPolicyBinding as a Kubernetes object.

    Args:
        name: Its name.
        bound_policy: The name of the policy in the cluster; "" for one of this name.
        mode: `deny`, `audit` or `warn`; any other text raises KeyError.
        namespace: The only namespace where the policy applies. Default: all.
        match: Further fields of `matchResources`; `namespace` replaces its `namespaceSelector`.
        param_ref: Its `paramRef`.
    """
    spec: Object = {"policyName": bound_policy or name, "validationActions": _ACTIONS[mode]}
    resources = dict(match or {})
    if namespace is not None:
        resources["namespaceSelector"] = {"matchLabels": {NAME_LABEL: namespace}}
    if resources:
        spec["matchResources"] = resources
    if param_ref is not None:
        spec["paramRef"] = dict(param_ref)
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{POLICY}Binding",
        "metadata": {"name": name},
        "spec": spec,
    }


def host_policies(*, beside_kai: bool) -> tuple[dict[str, Object], dict[str, Object]]:
    """The policies of a host by guard, and the bindings that apply to all isolated teams.

    Bindings are by the last part of their resources' names. The policies `nodes` and `queues` have
    none here: each team binds them with its own parameters. `beside_kai`: the host has a KAI, so
    that its queues and priorities are guarded too.
    """
    bound_for_all = list(OF_ALL_TEAMS)
    bound_by_team = ["nodes"]
    if beside_kai:
        bound_for_all.append("owners")
        bound_by_team.append("queues")
    policies = {guard: policy(guard) for guard in [*bound_for_all, *bound_by_team, VOLUMES]}
    isolated = {
        "key": ISOLATION_LABEL,
        "operator": "In",
        "values": ["baseline", "restricted"],
    }
    match = {"namespaceSelector": {"matchExpressions": [isolated]}}
    bindings = {f"{VOLUMES}-binding": binding(policy_name(VOLUMES), param_ref=_EACH_VOLUME)}
    for guard in bound_for_all:
        name = policy_name(guard)
        has_parameters = "paramKind" in content(guard)["spec"]
        param_ref = _EACH_PARAMETER if has_parameters else None
        bindings[f"{guard}-binding"] = binding(name, match=match, param_ref=param_ref)
    return policies, bindings


def declare(
    name: str,
    policies: Mapping[str, Object],
    bindings: Mapping[str, Object],
    opts: pulumi.ResourceOptions,
) -> list[pulumi.Resource]:
    """Declare policies, and bindings that depend on all of them; return both.

    `name` is the prefix of the resources' names; the keys of both mappings are the rest of them.
    """
    declared = _declare(admission.ValidatingAdmissionPolicy, name, policies, opts)
    ordered = depending_on(opts, *declared)
    declared += _declare(admission.ValidatingAdmissionPolicyBinding, name, bindings, ordered)
    return declared


def _declare(
    resource: Callable[..., pulumi.Resource],
    name: str,
    objects: Mapping[str, Object],
    opts: pulumi.ResourceOptions,
) -> list[pulumi.Resource]:
    """Declare a resource for each object."""
    return [
        resource(f"{name}-{suffix}", metadata=body["metadata"], spec=body["spec"], opts=opts)
        for suffix, body in objects.items()
    ]
