"""What holds at admission: a team's pods name the team's queues, and ask for GPUs as KAI reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from kai_fleet.components.guard import queue_guard_rules as rules
from kai_fleet.components.guard.admission_policy import (
    AUDIT,
    DENY,
    WARN,
    binding,
    bound,
    inside,
    matching,
    policy,
)
from kai_fleet.components.guard.names import GUARD, OUTSIDE_GUARD, TEMPLATE_GUARD
from kai_fleet.components.guard.outside_queues import policy_spec
from kai_fleet.components.settings.sections.guard import GuardMode, OutsideQueues

_PODS: Final = {"": ["pods"]}
_WHEN: Final = ("CREATE", "UPDATE")
_POLICY: Final = "ValidatingAdmissionPolicy"


@dataclass
class QueueGuardArgs:
    """`queues` are the team's leaf queues. `namespace` bounds the guard to one of the host's;
    None is every namespace, inside a vCluster. `mode` is `deny`, or `audit` for roll-out: pods
    pass, with a warning to whoever makes them and an entry in the API server's audit log. Queues
    whose names begin with `prefix` are the team's, too, but for the `foreign` ones. `pod_groups`: a
    pod may name a PodGroup in place of a queue; only where every queue is the team's, for a
    PodGroup may have any. `outside` is what happens to pods that ask for `gpu_resource` and not for
    KAI, which run beside the queues.
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
    """A ValidatingAdmissionPolicy and its bindings for one team (Kubernetes 1.30 or newer).

    KAI lets any pod name any queue (W10), and leaves one that names a wrong queue Pending, mostly
    without a word; this denies it at once and names the right ones. It looks at pods, so a queue
    named only on their Deployment is denied too; that would be told by the Deployment's events
    alone, so whoever applies it is warned in the same words. Pods that are nothing to KAI are not
    looked at, KAI's own components and reservation pods among them. Where the API server cannot
    judge, a pod is denied (failure policy Fail). Declare it before what lets pods in.
    """

    def __init__(
        self, name: str, args: QueueGuardArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:QueueGuard", name, None, opts)
        called, child = f"{GUARD}{args.team}", inside(self, opts)
        denies = args.mode == "deny"
        spec = {
            "failure_policy": "Fail",
            "match_constraints": matching({**_PODS, **rules.TEMPLATES}, *_WHEN),
            "match_conditions": rules.match_conditions(),
            "variables": rules.variables(args.queues, denied=denies),
            "validations": args.validations(),
        }
        made = policy(f"{name}-policy", called, spec, child)
        pods, templates = (matching(kinds, *_WHEN) for kinds in (_PODS, rules.TEMPLATES))
        of_pods = bound(called, DENY if denies else AUDIT, args.namespace, pods)
        binding(f"{name}-binding", called, made, of_pods, child)
        binding(
            f"{name}-templates-binding",
            f"{TEMPLATE_GUARD}{args.team}",
            made,
            bound(called, WARN, args.namespace, templates),
            _aliased(child, opts, "TemplateWarning", f"{_POLICY}Binding", f"{args.team}-templates"),
        )
        if args.outside != "allow":
            self._outside(name, args, opts)
        self.register_outputs({"policy": called})

    def _outside(
        self, name: str, args: QueueGuardArgs, opts: pulumi.ResourceOptions | None
    ) -> None:
        called, before = f"{OUTSIDE_GUARD}{args.team}", f"{args.team}-outside-queues"
        child = inside(self, opts)
        made = policy(
            f"{name}-outside-policy",
            called,
            policy_spec(args.team, args.gpu_resource),
            _aliased(child, opts, "OutsideQueues", _POLICY, before),
        )
        actions = DENY if args.outside == "deny" else AUDIT
        binding(
            f"{name}-outside-binding",
            called,
            made,
            bound(called, actions, args.namespace),
            _aliased(child, opts, "OutsideQueues", f"{_POLICY}Binding", before),
        )


def _aliased(
    child: pulumi.ResourceOptions,
    opts: pulumi.ResourceOptions | None,
    component: str,
    kind: str,
    name: str,
) -> pulumi.ResourceOptions:
    """The options of a child that had a component of its own in release 0.3.0, beside the guard."""
    if opts is None or opts.parent is None:
        return child
    suffix = "binding" if kind.endswith("Binding") else "policy"
    chain = f"kai-fleet:index:{component}$kubernetes:admissionregistration.k8s.io/v1:{kind}"
    before = opts.parent.urn.apply(
        lambda urn: f"{urn.rpartition('::')[0]}${chain}::{name}-{suffix}"
    )
    return pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(aliases=[before]))
