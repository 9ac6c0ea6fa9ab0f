"""What holds at admission: a team's pods name the team's queues, and ask for GPUs as KAI reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pulumi

from kai_fleet.guards import registering
from kai_fleet.guards.guard_policies import GuardPolicies
from kai_fleet.guards.policies import Kind, PolicySet
from kai_fleet.guards.queue_rules import QueueRules

_POLICY: Final = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"


@dataclass
class QueueGuardArgs:
    """`rules` are what is wanted of the team's pods. `namespace` bounds the guard to one of the
    host's; None is every namespace, inside a vCluster. `policies` are the host's, for a namespace
    whose annotations have the rules; where None, the guard declares its own.
    """

    rules: QueueRules
    namespace: pulumi.Input[str] | None = None
    policies: GuardPolicies | None = None


class QueueGuard(pulumi.ComponentResource):
    """Bindings of the policy of queues for one team (Kubernetes 1.30 or newer).

    KAI lets any pod name any queue (W10), and leaves one that names a wrong queue Pending, mostly
    without a word; this denies it at once and names the right ones. It looks at pods, so a queue
    named only on their Deployment is denied too; that would be told by the Deployment's events
    alone, so whoever applies it is warned in the same words. Pods that are nothing to KAI are not
    looked at, KAI's own components and reservation pods among them. Declare it before what lets
    pods in.
    """

    def __init__(
        self, name: str, args: QueueGuardArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:QueueGuard", name, None, opts)
        child, rules = registering.below(self, opts), args.rules
        made: dict[Kind, pulumi.Resource]
        if args.policies is not None:
            of, made = args.policies.of, dict(args.policies.policies)
        else:
            of = PolicySet(f"-{rules.team}")
            made = {}
            for own_kind, body in rules.policies(of).items():
                outside = own_kind == "outside-queues"
                before = f"{rules.team}-outside-queues-policy"
                old = _of_0_3(opts, "OutsideQueues", _POLICY, before) if outside else None
                part = "outside-policy" if outside else "policy"
                own = pulumi.ResourceOptions.merge(child, old)
                made[own_kind] = registering.policy(f"{name}-{part}", body, own)
        olds = {
            "templates-binding": ("TemplateWarning", f"{rules.team}-templates-binding"),
            "outside-binding": ("OutsideQueues", f"{rules.team}-outside-queues-binding"),
        }
        for part, body in rules.bindings(of, args.namespace).items():
            kind: Kind = "outside-queues" if part.startswith("outside") else "queues"
            after = registering.after(child, made[kind])
            if part in olds:
                component, before_name = olds[part]
                old = _of_0_3(opts, component, f"{_POLICY}Binding", before_name)
                after = pulumi.ResourceOptions.merge(after, old)
            registering.binding(f"{name}-{part}", body, after)
        self.register_outputs({"policy": of.called("queues")})


def _of_0_3(
    opts: pulumi.ResourceOptions | None, component: str, kind: str, name: str
) -> pulumi.ResourceOptions:
    """The alias of a child that had a component of its own in release 0.3.0, beside the guard."""
    if opts is None or opts.parent is None:
        return pulumi.ResourceOptions()
    chain = f"kai-fleet:index:{component}${kind}"
    before = opts.parent.urn.apply(lambda urn: f"{urn.rpartition('::')[0]}${chain}::{name}")
    return pulumi.ResourceOptions(aliases=[before])
