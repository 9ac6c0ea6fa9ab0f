"""The policies of a cluster's guards, and the bindings that hold for all teams alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pulumi

from kai_fleet.guards import registering
from kai_fleet.guards.policies import (
    BESIDE_KAI,
    OF_ALL_TEAMS,
    Kind,
    PolicySet,
    policy,
    shared_bindings,
)

GUARD_POLICIES: Final = "kai-fleet:index:GuardPolicies"


def kinds(*, beside_kai: bool) -> list[Kind]:
    """The policies of a host."""
    return [*OF_ALL_TEAMS, "nodes", *((*BESIDE_KAI, "queues") if beside_kai else ())]


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
        child = registering.below(self, opts)
        self.policies = {
            kind: registering.policy(f"{name}-{kind}", policy(kind, args.of, args.bounds), child)
            for kind in kinds(beside_kai=args.beside_kai)
        }
        shared = shared_bindings(args.of, beside_kai=args.beside_kai, namespace=args.namespace)
        self.ready = [
            registering.binding(
                f"{name}-{kind}-binding", body, registering.after(child, self.policies[kind])
            )
            for kind, body in shared.items()
        ]
        self.register_outputs({"policies": [args.of.called(kind) for kind in self.policies]})
