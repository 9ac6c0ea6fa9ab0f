"""A ValidatingAdmissionPolicy and the binding that puts it to work, as every guard declares them.

A policy without a binding holds nowhere, and a binding without its policy denies nothing: the two
have one name in the cluster, and the binding comes after the policy and goes before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pulumi
from pulumi_kubernetes.admissionregistration import v1 as admission

# What a binding does with an object that the policy refuses.
DENY: Final = ("Deny",)
WARN: Final = ("Warn",)
AUDIT: Final = ("Audit", "Warn")  # it passes, and both its maker and the audit log are told


def matching(resources: Mapping[str, Sequence[str]], *operations: str) -> dict[str, Any]:
    """What a policy looks at: kinds by API group, when they are made or changed."""
    return {
        "resource_rules": [
            {
                "api_groups": [group],
                "api_versions": ["*" if group == "*" else "v1"],
                "resources": list(kinds),
                "operations": list(operations),
            }
            for group, kinds in resources.items()
        ]
    }


def bound(
    called: str,
    actions: Sequence[str],
    namespace: pulumi.Input[str] | None = None,
    kinds: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What a binding does with what its policy refuses: in one namespace, of these kinds (as of
    `matching`); in every namespace, and of all that the policy is about, where None.
    """
    resources = dict(kinds or {})
    if namespace is not None:
        label = {"kubernetes.io/metadata.name": namespace}
        resources["namespace_selector"] = {"match_labels": label}
    spec = {"policy_name": called, "validation_actions": list(actions)}
    return {**spec, "match_resources": resources} if resources else spec


def inside(guard: pulumi.Resource, opts: pulumi.ResourceOptions | None) -> pulumi.ResourceOptions:
    """The options of what a guard declares: it waits for, and goes with, what the guard does."""
    opts = opts or pulumi.ResourceOptions()
    return pulumi.ResourceOptions(
        parent=guard, depends_on=opts.depends_on, deleted_with=opts.deleted_with
    )


def policy(
    name: str, called: str, spec: Mapping[str, Any], opts: pulumi.ResourceOptions
) -> pulumi.Resource:
    """A policy that is `called` so in the cluster."""
    made: pulumi.Resource = admission.ValidatingAdmissionPolicy(
        name, metadata={"name": called}, spec=dict(spec), opts=opts
    )
    return made


def binding(
    name: str,
    called: str,
    of: pulumi.Resource,
    spec: Mapping[str, Any],
    opts: pulumi.ResourceOptions,
) -> pulumi.Resource:
    """What puts the policy `of` to work."""
    after = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[of]))
    made: pulumi.Resource = admission.ValidatingAdmissionPolicyBinding(
        name, metadata={"name": called}, spec=dict(spec), opts=after
    )
    return made


def policy_with_binding(
    names: tuple[str, str],
    called: str,
    spec: Mapping[str, Any],
    actions: Sequence[str],
    opts: pulumi.ResourceOptions,
    namespace: pulumi.Input[str] | None = None,
) -> list[pulumi.Resource]:
    """A policy and its one binding, `called` the same in the cluster; `names` are their resources'.

    It holds in every namespace unless one is given.
    """
    made = policy(names[0], called, spec, opts)
    return [made, binding(names[1], called, made, bound(called, actions, namespace), opts)]
