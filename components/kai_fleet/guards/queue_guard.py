"""What holds at admission: a team's pods name the team's queues, and ask for GPUs as KAI reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from kai_fleet.guards import registering
from kai_fleet.guards.guard_policies import GuardPolicies
from kai_fleet.guards.policies import Kind, PolicySet
from kai_fleet.guards.queue_rules import QueueRules
from kai_fleet.settings.sections.guard import GuardMode, OutsideQueues


@dataclass
class QueueGuardArgs:
    """The team's rules, as of `QueueRules`. `namespace` bounds the guard to one of the host's;
    None is every namespace, inside a vCluster. `policies` are the host's, for a namespace whose
    annotations have the rules; where None, the guard declares its own.
    """

    team: str
    queues: Sequence[str]
    namespace: pulumi.Input[str] | None = None
    mode: GuardMode = "deny"
    gpu_sharing: bool = True
    prefix: str | None = None
    foreign: Sequence[str] = ()
    pod_groups: bool = False
    outside: OutsideQueues = "allow"
    gpu_resource: str = "nvidia.com/gpu"
    policies: GuardPolicies | None = None

    def rules(self) -> QueueRules:
        """What is wanted of the team's pods."""
        return QueueRules(
            self.team,
            list(self.queues),
            self.mode,
            self.gpu_sharing,
            self.prefix,
            list(self.foreign),
            self.pod_groups,
            self.outside,
            self.gpu_resource,
        )


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
        child, rules = registering.below(self, opts), args.rules()
        made: dict[Kind, pulumi.Resource]
        if args.policies is not None:
            of, made = args.policies.of, dict(args.policies.policies)
        else:
            of = PolicySet(f"-{args.team}")
            made = {}
            for own_kind, body in rules.policies(of).items():
                part = "outside-policy" if own_kind == "outside-queues" else "policy"
                made[own_kind] = registering.policy(f"{name}-{part}", body, child)
        for part, body in rules.bindings(of, args.namespace).items():
            kind: Kind = "outside-queues" if part.startswith("outside") else "queues"
            registering.binding(f"{name}-{part}", body, registering.after(child, made[kind]))
        self.register_outputs({"policy": of.called("queues")})
