"""Declare policies with their bindings, and roles with theirs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pulumi
from pulumi_kubernetes.admissionregistration import v1 as admission
from pulumi_kubernetes.rbac import v1 as rbac

from kai_fleet.guards.policies import Object
from kai_fleet.options import after

RBAC: Final = "rbac.authorization.k8s.io"


def declare_policies(
    name: str, policies: Mapping[str, Object], opts: pulumi.ResourceOptions
) -> dict[str, pulumi.Resource]:
    """Policies by the last part of their resources' names; as by their names in the cluster."""
    return {
        body["metadata"]["name"]: admission.ValidatingAdmissionPolicy(
            f"{name}-{part}", metadata=body["metadata"], spec=body["spec"], opts=opts
        )
        for part, body in policies.items()
    }


def declare_bindings(
    name: str,
    bindings: Mapping[str, Object],
    opts: pulumi.ResourceOptions,
    policies: Mapping[str, pulumi.Resource] | None = None,
) -> list[pulumi.Resource]:
    """Bindings by the last part of their resources' names, each after its policy of `policies`."""
    declared: list[pulumi.Resource] = []
    for part, body in bindings.items():
        policy = (policies or {}).get(body["spec"]["policyName"])
        declared.append(
            admission.ValidatingAdmissionPolicyBinding(
                f"{name}-{part}",
                metadata=body["metadata"],
                spec=body["spec"],
                opts=after(opts, policy) if policy is not None else opts,
            )
        )
    return declared


def declare_role(
    names: tuple[str, str],
    metadata: Mapping[str, Any],
    rules: Any,
    subject: rbac.SubjectArgsDict,
    opts: pulumi.ResourceOptions,
    before: Iterable[pulumi.Resource] = (),
) -> list[pulumi.Resource]:
    """A role and the binding that gives it to a subject, by the names of these resources.

    They are of the namespace in `metadata`, else of the whole cluster. The binding also waits for
    what comes `before`.
    """
    inside = "namespace" in metadata
    kind: Any = rbac.Role if inside else rbac.ClusterRole
    binding_kind: Any = rbac.RoleBinding if inside else rbac.ClusterRoleBinding
    role = kind(names[0], metadata=metadata, rules=rules, opts=opts)
    binding = binding_kind(
        names[1],
        metadata=metadata,
        role_ref=role_ref("Role" if inside else "ClusterRole", metadata["name"]),
        subjects=[subject],
        opts=after(opts, *before, role),
    )
    return [role, binding]


def role_ref(kind: str, name: pulumi.Input[str]) -> rbac.RoleRefArgsDict:
    """What a binding names."""
    return {"api_group": RBAC, "kind": kind, "name": name}


def service_account(name: str, namespace: pulumi.Input[str]) -> rbac.SubjectArgsDict:
    """A service account as the subject of a binding."""
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def rule(group: str, resources: str, verbs: Sequence[str], *names: str) -> rbac.PolicyRuleArgsDict:
    """A rule of RBAC; `resources` are words."""
    policy_rule: rbac.PolicyRuleArgsDict = {
        "api_groups": [group],
        "resources": resources.split(),
        "verbs": list(verbs),
    }
    if names:
        policy_rule["resource_names"] = list(names)
    return policy_rule
