"""What holds at admission: a team's pods name the team's queues, and ask for GPUs as KAI reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from kai_fleet.components.guard import queue_guard_rules as rules
from kai_fleet.components.guard.admission_policy import (
    AUDIT,
    DENY,
    inside,
    matching,
    policy_with_binding,
)
from kai_fleet.components.guard.names import GUARD
from kai_fleet.components.settings.sections.guard import GuardMode


@dataclass
class QueueGuardArgs:
    """`queues` are the team's leaf queues. `namespace` bounds the guard to one of the host's;
    None is every namespace, inside a vCluster. `mode` is `deny`, or `audit` for roll-out: pods
    pass, with a warning to whoever makes them and an entry in the API server's audit log. Queues
    whose names begin with `prefix` are the team's, too, but for the `foreign` ones. `pod_groups`: a
    pod may name a PodGroup in place of a queue; only where every queue is the team's, for a
    PodGroup may have any.
    """

    team: str
    queues: Sequence[str]
    namespace: pulumi.Input[str] | None = None
    mode: GuardMode = "deny"
    gpu_sharing: bool = True
    prefix: str | None = None
    foreign: Sequence[str] = ()
    pod_groups: bool = False

    def validations(self) -> list[dict[str, str]]:
        """What is wanted of a pod, or of a template, as an API server asks it."""
        return rules.validations(
            self.team,
            self.queues,
            self.gpu_sharing,
            self.prefix,
            foreign=self.foreign,
            pod_groups=self.pod_groups,
        )


class QueueGuard(pulumi.ComponentResource):
    """A ValidatingAdmissionPolicy and its binding for one team (Kubernetes 1.30 or newer).

    KAI lets any pod name any queue (W10), and leaves one that names a wrong queue Pending, mostly
    without a word; this denies it at once and names the right ones. It looks at pods, so a queue
    named only on their Deployment is denied too. Pods that are nothing to KAI are not looked at,
    KAI's own components and reservation pods among them. Where the API server cannot judge, a pod
    is denied (failure policy Fail). Declare it before what lets pods in.
    """

    def __init__(
        self, name: str, args: QueueGuardArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:QueueGuard", name, None, opts)
        called = f"{GUARD}{args.team}"
        spec = {
            "failure_policy": "Fail",
            "match_constraints": matching({"": ["pods"]}, "CREATE", "UPDATE"),
            "match_conditions": rules.match_conditions(),
            "variables": rules.variables(args.queues),
            "validations": args.validations(),
        }
        policy_with_binding(
            (f"{name}-policy", f"{name}-binding"),
            called,
            spec,
            DENY if args.mode == "deny" else AUDIT,
            inside(self, opts),
            args.namespace,
        )
        self.register_outputs({"policy": called})
