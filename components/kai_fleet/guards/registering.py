"""Plain objects of guards as resources of Pulumi."""

from __future__ import annotations

from typing import Any

import pulumi
from pulumi_kubernetes.admissionregistration import v1 as admission

Object = dict[str, Any]


def below(guard: pulumi.Resource, opts: pulumi.ResourceOptions | None) -> pulumi.ResourceOptions:
    """The options of what a guard declares: it waits for, and goes with, what the guard does."""
    opts = opts or pulumi.ResourceOptions()
    return pulumi.ResourceOptions(
        parent=guard, depends_on=opts.depends_on, deleted_with=opts.deleted_with
    )


def after(opts: pulumi.ResourceOptions, *before: pulumi.Resource) -> pulumi.ResourceOptions:
    """The same options, for what comes after others and goes before them."""
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=list(before)))


def policy(name: str, body: Object, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    """A policy, which holds nowhere without a binding."""
    made: pulumi.Resource = admission.ValidatingAdmissionPolicy(
        name, metadata=body["metadata"], spec=body["spec"], opts=opts
    )
    return made


def binding(name: str, body: Object, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    """What puts a policy to work, which denies nothing without the policy."""
    made: pulumi.Resource = admission.ValidatingAdmissionPolicyBinding(
        name, metadata=body["metadata"], spec=body["spec"], opts=opts
    )
    return made
