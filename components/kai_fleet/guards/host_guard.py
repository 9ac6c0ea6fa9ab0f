"""The guard on the host between one team's namespace and the rest of the cluster."""

from dataclasses import dataclass

import pulumi

from kai_fleet.guards.foreign_nodes import node_bindings
from kai_fleet.guards.guard_policies import GuardPolicies, GuardPoliciesArgs, declare_binding
from kai_fleet.guards.host_rules import HostRules
from kai_fleet.guards.policies import PolicySet, as_annotations
from kai_fleet.options import after, child_of


@dataclass
class HostGuardArgs:
    """`rules` are what the team may have, `namespace` where they hold. `policies` are the host's,
    for a namespace whose annotations have the rules; where None, the guard declares a set of its
    own, with the rules in it.
    """

    namespace: pulumi.Input[str]
    rules: HostRules
    policies: GuardPolicies | None = None


class HostGuard(pulumi.ComponentResource):
    """Keeps one team's pods off nodes that are not its own. Needs Kubernetes 1.30."""

    def __init__(
        self, name: str, args: HostGuardArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:HostGuard", name, None, opts)
        child = child_of(self, opts)
        policies = args.policies or self._own(name, args)
        for part, body in node_bindings(args.rules, policies.of, args.namespace).items():
            declare_binding(f"{name}-{part}", body, after(child, policies.policies["nodes"]))
        self.register_outputs({"namespace": args.namespace})

    def _own(self, name: str, args: HostGuardArgs) -> GuardPolicies:
        rules = args.rules
        return GuardPolicies(
            f"{name}-policies",
            GuardPoliciesArgs(
                rules.beside_kai,
                PolicySet(f"-of-{rules.team}"),
                args.namespace,
                as_annotations(rules.parameters()),
            ),
            pulumi.ResourceOptions(parent=self),
        )
