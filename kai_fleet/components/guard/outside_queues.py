"""What happens inside a vCluster to pods that ask for GPUs beside the team's queues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pulumi

from kai_fleet.components.guard.admission_policy import (
    AUDIT,
    DENY,
    inside,
    matching,
    policy_with_binding,
)
from kai_fleet.components.guard.names import OUTSIDE_GUARD
from kai_fleet.components.guard.queue_guard_rules import names, text
from kai_fleet.components.kai.keys import RESERVED, SCHEDULER


@dataclass
class OutsideQueuesArgs:
    """`action` is what happens to such pods; `gpu_resource` is how they ask for a GPU."""

    team: str
    action: Literal["deny", "warn"] = "deny"
    gpu_resource: str = "nvidia.com/gpu"


class OutsideQueues(pulumi.ComponentResource):
    """A ValidatingAdmissionPolicy and its binding, inside the vCluster of one team.

    A pod that asks for a GPU and not for KAI runs beside the queues: its GPUs count against no
    quota, and no queue gets them back (T11). KAI's own reservation pods are not looked at.
    """

    def __init__(
        self, name: str, args: OutsideQueuesArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:OutsideQueues", name, None, opts)
        called = f"{OUTSIDE_GUARD}{args.team}"
        # `dyn`: the two kinds of containers have types of their own, which cannot be added.
        asks = (
            "(dyn(object).spec.containers + dyn(object).spec.?initContainers.orValue([])).exists(c,"
            f" {text(args.gpu_resource)} in c.?resources.?limits.orValue({{}}))"
        )
        spec = {
            "failure_policy": "Fail",
            "match_constraints": matching({"": ["pods"]}, "CREATE"),
            "match_conditions": [
                {
                    "name": "of-the-team",
                    "expression": f"!(request.namespace in {names(sorted(RESERVED))})",
                }
            ],
            "validations": [
                {
                    "expression": f"object.spec.?schedulerName.orValue('') == {text(SCHEDULER)}"
                    f" || !{asks}",
                    "messageExpression": "'pod ' + object.metadata.?name.orValue("
                    "object.metadata.?generateName.orValue('') + '…') + "
                    + text(
                        f" asks for {args.gpu_resource} beside the queues of team {args.team};"
                        f" write schedulerName: {SCHEDULER} and the label kai.scheduler/queue,"
                        " or have guard.outsideQueues set to allow"
                    ),
                    "reason": "Forbidden",
                }
            ],
        }
        policy_with_binding(
            (f"{name}-policy", f"{name}-binding"),
            called,
            spec,
            DENY if args.action == "deny" else AUDIT,
            inside(self, opts),
        )
        self.register_outputs({"policy": called})
