"""What stands on the host between one team's namespace and everybody else."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from kai_fleet.components.guards import registering
from kai_fleet.components.guards.guard_policies import (
    BESIDE_KAI,
    ON_HOST,
    GuardPolicies,
    GuardPoliciesArgs,
)
from kai_fleet.components.guards.host_bindings import host_bindings
from kai_fleet.components.guards.host_rules import HostRules
from kai_fleet.components.guards.policies import Kind, PolicySet, parameters


@dataclass
class HostGuardArgs:
    """`rules` are what the team may have, `namespace` where they hold. `policies` are the host's;
    where None, the guard declares a set of its own.
    """

    namespace: pulumi.Input[str]
    rules: HostRules
    policies: GuardPolicies | None = None


class HostGuard(pulumi.ComponentResource):
    """A team's bounds on the host, and the bindings by which the host's policies hold them there.

    Needs Kubernetes 1.30. Where the API server cannot judge, the object is denied.
    """

    def __init__(
        self, name: str, args: HostGuardArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:HostGuard", name, None, opts)
        child = registering.below(self, opts)
        policies = args.policies or self._own(name, args)
        rules, of = args.rules, policies.of
        bounds = registering.parameters(
            f"{name}-bounds",
            parameters(rules.team, of.namespace, rules.parameters()),
            registering.after(child, policies.namespace),
        )
        for part, body in host_bindings(rules, of, args.namespace).items():
            first = [policies.named(body["spec"]["policyName"]), bounds]
            registering.binding(f"{name}-{part}", body, registering.after(child, *first))
        self.register_outputs({"namespace": args.namespace, "policies": of.namespace})

    def _own(self, name: str, args: HostGuardArgs) -> GuardPolicies:
        kinds: list[Kind] = list(ON_HOST)
        if args.rules.beside_kai:
            kinds.append(BESIDE_KAI[0])
        of = PolicySet(f"-of-{args.rules.team}")
        return GuardPolicies(
            f"{name}-policies",
            GuardPoliciesArgs(kinds, of, args.namespace),
            pulumi.ResourceOptions(parent=self),
        )
