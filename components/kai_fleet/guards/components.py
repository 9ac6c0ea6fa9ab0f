"""The guards as components: the policies of a cluster, and what puts them to work for one team."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pulumi
from pulumi_kubernetes.admissionregistration import v1 as admission

from kai_fleet.guards.host_rules import HostRules, node_bindings
from kai_fleet.guards.policies import Object, kinds, policy, policy_name, shared_bindings
from kai_fleet.guards.queue_rules import QueueRules
from kai_fleet.options import after, child_of

GUARD_POLICIES: Final = "kai-fleet:index:GuardPolicies"
# Policies by their names in the cluster.
Policies = Mapping[str, pulumi.Resource]


def declare_guard(
    name: str,
    policies: Mapping[str, Object],
    bindings: Mapping[str, Object],
    opts: pulumi.ResourceOptions,
    there: Policies | None = None,
) -> tuple[Policies, list[pulumi.Resource]]:
    """Policies and bindings by the last part of their resources' names; policies that are `there`
    are bound too. A policy holds nowhere without a binding, and no binding denies without a policy.
    """
    made: dict[str, pulumi.Resource] = dict(there or {})
    for part, body in policies.items():
        made[body["metadata"]["name"]] = admission.ValidatingAdmissionPolicy(
            f"{name}-{part}", metadata=body["metadata"], spec=body["spec"], opts=opts
        )
    bound: list[pulumi.Resource] = [
        admission.ValidatingAdmissionPolicyBinding(
            f"{name}-{part}",
            metadata=body["metadata"],
            spec=body["spec"],
            opts=after(opts, made[body["spec"]["policyName"]]),
        )
        for part, body in bindings.items()
    ]
    return made, bound


@dataclass
class GuardPoliciesArgs:
    """`beside_kai`: the host has a KAI. A set with a `suffix` in its names is for one `namespace`,
    with the `bounds` of its team; the host's own is for every namespace of a team, with the bounds
    that are its annotations.
    """

    beside_kai: bool = False
    suffix: str = ""
    namespace: pulumi.Input[str] | None = None
    bounds: Mapping[str, str] | None = None


class GuardPolicies(pulumi.ComponentResource):
    """ValidatingAdmissionPolicies, once for a whole cluster (Kubernetes 1.30 or newer).

    They hold in each namespace that the platform labels as a team's, whoever asks. Where the API
    server cannot judge, or the namespace has no bounds, the object is denied. A guard of one team
    depends on one of the `policies`, and what lets pods in on `ready`.
    """

    suffix: str
    policies: Policies
    ready: list[pulumi.Resource]

    def __init__(
        self,
        name: str,
        args: GuardPoliciesArgs | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(GUARD_POLICIES, name, None, opts)
        args = args or GuardPoliciesArgs()
        self.suffix = args.suffix
        every = kinds(beside_kai=args.beside_kai)
        shared = shared_bindings(args.suffix, beside_kai=args.beside_kai, namespace=args.namespace)
        self.policies, self.ready = declare_guard(
            name,
            {kind: policy(kind, args.suffix, args.bounds) for kind in every},
            {f"{kind}-binding": body for kind, body in shared.items()},
            child_of(self, opts),
        )
        self.register_outputs({"policies": [*self.policies]})


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
        rules, space = args.rules, args.namespace
        policies = args.policies or GuardPolicies(
            f"{name}-policies",
            GuardPoliciesArgs(rules.beside_kai, f"-of-{rules.team}", space, rules.parameters()),
            pulumi.ResourceOptions(parent=self),
        )
        bindings = node_bindings(rules, space, policies.suffix)
        declare_guard(name, {}, bindings, child_of(self, opts), policies.policies)
        self.register_outputs({"namespace": space})


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
        rules, shared = args.rules, args.policies
        suffix = shared.suffix if shared else rules.suffix
        own = {} if shared else rules.policies(suffix)
        there = shared.policies if shared else {}
        bindings = rules.bindings(suffix, args.namespace)
        declare_guard(name, own, bindings, child_of(self, opts), there)
        self.register_outputs({"policy": policy_name("queues", suffix)})
