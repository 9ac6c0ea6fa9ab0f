"""What stands on the host between one team's namespace and everybody else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi

from kai_fleet.components.guard.admission_policy import (
    DENY,
    binding,
    bound,
    inside,
    matching,
    policy,
    policy_with_binding,
)
from kai_fleet.components.guard.names import HOST_GUARD, NODE_GUARD, OWNER_GUARD
from kai_fleet.components.guard.queue_guard_rules import names, of_team, text
from kai_fleet.components.isolation.rules import guard
from kai_fleet.components.isolation.rules.model import HostRules
from kai_fleet.components.kai.keys import QUEUE_LABEL


@dataclass
class HostGuardArgs:
    """`rules` are what the team may have, `namespace` where they hold."""

    namespace: pulumi.Input[str]
    rules: HostRules
    labels: Mapping[str, str] = field(default_factory=dict)


class HostGuard(pulumi.ComponentResource):
    """ValidatingAdmissionPolicies for one namespace of the host, whoever asks (Kubernetes 1.30).

    One is about what is made there. One keeps pods that come with a node on the team's own: it is
    asked once for each node that is not. One, beside a KAI of the host, is about whatever has the
    label of a queue: KAI takes the queue of the object that owns a pod before the pod's.
    Where the API server cannot judge, the object is denied (failure policy Fail).
    """

    def __init__(
        self, name: str, args: HostGuardArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:HostGuard", name, None, opts)
        self._child = inside(self, opts)
        self._objects(name, args)
        if args.rules.names_nodes and args.rules.pool:
            self._nodes(name, args)
        if args.rules.beside_kai:
            self._owners(name, args)
        self.register_outputs({})

    def _objects(self, name: str, args: HostGuardArgs) -> None:
        spec = {
            "failure_policy": "Fail",
            "match_constraints": matching(guard.WATCHED, "CREATE", "UPDATE"),
            "match_conditions": guard.match_conditions(args.rules),
            "variables": guard.variables(args.rules),
            "validations": guard.validations(args.rules),
        }
        called = f"{HOST_GUARD}{args.rules.team}"
        policy_with_binding(
            (f"{name}-policy", f"{name}-binding"), called, spec, DENY, self._child, args.namespace
        )

    def _owners(self, name: str, args: HostGuardArgs) -> None:
        spec = {
            "failure_policy": "Fail",
            "match_constraints": matching({"*": ["*"]}, "CREATE", "UPDATE"),
            **owners(args.rules),
        }
        called, resources = f"{OWNER_GUARD}{args.rules.team}", f"{name}-owners"
        policy_with_binding(
            (resources, f"{resources}-binding"), called, spec, DENY, self._child, args.namespace
        )

    def _nodes(self, name: str, args: HostGuardArgs) -> None:
        """A node that lacks any label of the pool is none of the team's."""
        called = f"{NODE_GUARD}{args.rules.team}"
        message = text(
            f" is none of team {args.rules.team}'s; let the team's scheduler choose it, among the"
            f" nodes with {', '.join(f'{k}={v}' for k, v in sorted(args.rules.pool.items()))}"
        )
        spec = {
            "failure_policy": "Fail",
            "param_kind": {"api_version": "v1", "kind": "Node"},
            "match_constraints": matching({"": ["pods"]}, "CREATE"),
            "validations": [
                {
                    "expression": "object.spec.?nodeName.orValue('') != params.metadata.name",
                    "messageExpression": f"'node ' + params.metadata.name + {message}",
                    "reason": "Forbidden",
                }
            ],
        }
        made = policy(f"{name}-nodes", called, spec, self._child)
        for number, (key, value) in enumerate(sorted(args.rules.pool.items())):
            selector = {"match_expressions": [{"key": key, "operator": "NotIn", "values": [value]}]}
            others = {"selector": selector, "parameter_not_found_action": "Allow"}
            spec = bound(called, DENY, args.namespace) | {"param_ref": others}
            suffix = f".{number}" if number else ""
            foreign = f"{name}-nodes-binding{suffix}"
            binding(foreign, f"{called}{suffix}", made, spec, self._child)


def owners(rules: HostRules) -> dict[str, list[dict[str, str]]]:
    """Which objects with the label of a queue are judged besides pods, and what must hold."""
    team, label = rules.team, f"object.metadata.labels[{text(QUEUE_LABEL)}]"
    own = of_team(label, names(rules.queues), rules.queue_prefix, rules.foreign_queues)
    write = f"write the label {QUEUE_LABEL}: {rules.queues[0]}" if rules.queues else "drop it"
    kind = "request.resource.resource + ' ' + request.name + ' has the queue ' + "
    return {
        "match_conditions": [
            {
                "name": "names-a-queue",
                "expression": "request.resource.resource != 'pods'"
                f" && {text(QUEUE_LABEL)} in object.?metadata.?labels.orValue({{}})",
            }
        ],
        "validations": [
            {
                "expression": own,
                "messageExpression": f"{kind}{label}"
                f" + {text(f', which is not one of team {team} on this host; {write}')}",
                "reason": "Forbidden",
            }
        ],
    }
