"""The policies of a cluster's guards, and what holds for all teams alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import pulumi
from pulumi_kubernetes import core

from kai_fleet.components.guards import registering
from kai_fleet.components.guards.policies import (
    OF_ALL_TEAMS,
    OF_EVERY_TEAM,
    Kind,
    PolicySet,
    policy,
    shared_bindings,
)

GUARD_POLICIES: Final = "kai-fleet:index:GuardPolicies"
ON_HOST: Final[tuple[Kind, ...]] = (*OF_EVERY_TEAM, *OF_ALL_TEAMS, "nodes")
BESIDE_KAI: Final[tuple[Kind, ...]] = ("owners", "queues", "team-stack-queues")


@dataclass
class GuardPoliciesArgs:
    """`kinds` are the policies to declare. `of` names them; a set with a suffix is for one
    `namespace`, the host's own for every namespace of a team.
    """

    kinds: Sequence[Kind] = ON_HOST
    of: PolicySet = field(default_factory=PolicySet)
    namespace: pulumi.Input[str] | None = None


class GuardPolicies(pulumi.ComponentResource):
    """ValidatingAdmissionPolicies, once for a whole cluster (Kubernetes 1.30 or newer).

    Guards put them to work with a binding and a ConfigMap of a team's bounds in the namespace
    `kai-fleet-guards`, where no team can write. Where the API server cannot judge, or has no
    bounds, the object is denied. A binding depends on `policies[kind]` and `namespace`.
    """

    of: PolicySet
    namespace: pulumi.Resource
    policies: dict[Kind, pulumi.Resource]

    def __init__(
        self,
        name: str,
        args: GuardPoliciesArgs | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(GUARD_POLICIES, name, None, opts)
        args = args or GuardPoliciesArgs()
        self.of = args.of
        child = registering.below(self, opts)
        self.namespace = core.v1.Namespace(
            f"{name}-namespace", metadata={"name": args.of.namespace}, opts=child
        )
        self.policies = {
            kind: registering.policy(f"{name}-{kind}", policy(kind, args.of), child)
            for kind in args.kinds
        }
        for kind, body in shared_bindings(args.of, args.namespace).items():
            if kind in self.policies:
                after = registering.after(child, self.policies[kind])
                registering.binding(f"{name}-{kind}-binding", body, after)
        self.register_outputs({"namespace": args.of.namespace})

    def named(self, called: str) -> pulumi.Resource:
        """The policy that is `called` so in the cluster. Raises KeyError."""
        return {self.of.called(kind): made for kind, made in self.policies.items()}[called]
