"""The policies of a cluster's guards, and the bindings that hold for all teams alike."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pulumi
from pulumi_kubernetes.admissionregistration import v1 as admission

from kai_fleet.guards.policies import (
    Kind,
    Object,
    PolicySet,
    kinds,
    policy,
    shared_bindings,
)
from kai_fleet.options import after, child_of

GUARD_POLICIES: Final = "kai-fleet:index:GuardPolicies"


def declare_policy(name: str, body: Object, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    """A policy, which holds nowhere without a binding."""
    policy: pulumi.Resource = admission.ValidatingAdmissionPolicy(
        name, metadata=body["metadata"], spec=body["spec"], opts=opts
    )
    return policy


def declare_binding(name: str, body: Object, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    """A binding, which denies nothing without its policy."""
    binding: pulumi.Resource = admission.ValidatingAdmissionPolicyBinding(
        name, metadata=body["metadata"], spec=body["spec"], opts=opts
    )
    return binding


@dataclass
class GuardPoliciesArgs:
    """`beside_kai`: the host has a KAI. `of` names the policies; a set with a suffix is for one
    `namespace`, with the `bounds` of its team; the host's own is for every namespace of a team,
    with the bounds that are its annotations.
    """

    beside_kai: bool = False
    of: PolicySet = field(default_factory=PolicySet)
    namespace: pulumi.Input[str] | None = None
    bounds: Mapping[str, str] | None = None


class GuardPolicies(pulumi.ComponentResource):
    """ValidatingAdmissionPolicies, once for a whole cluster (Kubernetes 1.30 or newer).

    They hold in each namespace that the platform labels as a team's, whoever asks. Where the API
    server cannot judge, or the namespace has no bounds, the object is denied. A guard of one team
    depends on `policies[kind]`, and what lets pods in on `ready`.
    """

    of: PolicySet
    policies: dict[Kind, pulumi.Resource]
    ready: list[pulumi.Resource]

    def __init__(
        self,
        name: str,
        args: GuardPoliciesArgs | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(GUARD_POLICIES, name, None, opts)
        args = args or GuardPoliciesArgs()
        self.of = args.of
        child = child_of(self, opts)
        self.policies = {
            kind: declare_policy(f"{name}-{kind}", policy(kind, args.of, args.bounds), child)
            for kind in kinds(beside_kai=args.beside_kai)
        }
        shared = shared_bindings(args.of, beside_kai=args.beside_kai, namespace=args.namespace)
        self.ready = [
            declare_binding(f"{name}-{kind}-binding", body, after(child, self.policies[kind]))
            for kind, body in shared.items()
        ]
        self.register_outputs({"policies": [args.of.called(kind) for kind in self.policies]})
