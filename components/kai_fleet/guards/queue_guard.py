"""The guard at admission: a team's pods name the team's queues, and ask for GPUs as KAI reads."""

from dataclasses import dataclass

import pulumi

from kai_fleet.guards.guard_policies import GuardPolicies, declare_binding, declare_policy
from kai_fleet.guards.policies import Kind, PolicySet
from kai_fleet.guards.queue_rules import QueueRules
from kai_fleet.options import after, child_of


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
    named only on their Deployment is denied too; only the Deployment's events would say so, and
    therefore whoever applies it is warned in the same words. Pods that KAI does not schedule are
    not judged, KAI's own components and reservation pods among them. Declare it before anything
    that admits pods.
    """

    def __init__(
        self, name: str, args: QueueGuardArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:QueueGuard", name, None, opts)
        child, rules = child_of(self, opts), args.rules
        made: dict[Kind, pulumi.Resource]
        if args.policies is not None:
            of, made = args.policies.of, dict(args.policies.policies)
        else:
            of = PolicySet(f"-{rules.team}")
            made = {}
            for own_kind, body in rules.policies(of).items():
                part = "outside-policy" if own_kind == "outside-queues" else "policy"
                made[own_kind] = declare_policy(f"{name}-{part}", body, child)
        for part, body in rules.bindings(of, args.namespace).items():
            kind: Kind = "outside-queues" if part.startswith("outside") else "queues"
            declare_binding(f"{name}-{part}", body, after(child, made[kind]))
        self.register_outputs({"policy": of.called("queues")})
