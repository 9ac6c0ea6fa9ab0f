"""What happens inside a vCluster to pods that ask for GPUs beside the team's queues.

Such a pod's GPUs count against no quota, and no queue gets them back (T11). KAI's own reservation
pods are not looked at.
"""

from __future__ import annotations

from typing import Any

from kai_fleet.components.guard.admission_policy import matching
from kai_fleet.components.guard.queue_guard_rules import names, text
from kai_fleet.components.kai.keys import RESERVED, SCHEDULER


def policy_spec(team: str, gpu_resource: str) -> dict[str, Any]:
    """What a ValidatingAdmissionPolicy asks of a pod; `gpu_resource` is how it asks for a GPU."""
    # `dyn`: the two kinds of containers have types of their own, which cannot be added.
    asks = (
        "(dyn(object).spec.containers + dyn(object).spec.?initContainers.orValue([])).exists(c,"
        f" {text(gpu_resource)} in c.?resources.?limits.orValue({{}}))"
    )
    return {
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
                    f" asks for {gpu_resource} beside the queues of team {team};"
                    f" write schedulerName: {SCHEDULER} and the label kai.scheduler/queue,"
                    " or have guard.outsideQueues set to allow"
                ),
                "reason": "Forbidden",
            }
        ],
    }
