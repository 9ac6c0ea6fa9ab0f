"""What whoever applies a Deployment is told at once: its pods are going to be denied."""

from __future__ import annotations

from typing import Final

import pulumi

from kai_fleet.components.guard import queue_guard_rules as rules
from kai_fleet.components.guard.admission_policy import WARN, inside, matching, policy_with_binding
from kai_fleet.components.guard.names import TEMPLATE_GUARD
from kai_fleet.components.guard.queue_guard import QueueGuardArgs

_KINDS: Final = {
    "apps": ["deployments", "statefulsets", "replicasets"],
    "batch": ["jobs", "cronjobs"],
}


class TemplateWarning(pulumi.ComponentResource):
    """A ValidatingAdmissionPolicy that warns and never denies: inside the vCluster of one team, or
    on the host in its namespace.

    QueueGuard denies the pods of a Deployment, which only the Deployment's events tell. This says
    the same to whoever applies the Deployment, by the same rules. What a controller makes, such as
    the Job of a CronJob, is not looked at.
    """

    def __init__(
        self, name: str, args: QueueGuardArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:TemplateWarning", name, None, opts)
        called = f"{TEMPLATE_GUARD}{args.team}"
        spec = {
            "failure_policy": "Ignore",
            "match_constraints": matching(_KINDS, "CREATE", "UPDATE"),
            "match_conditions": [
                rules.about_kai(rules.TEMPLATE),
                {
                    "name": "of-no-controller",
                    "expression": "!has(object.metadata.ownerReferences)",
                },
            ],
            "variables": rules.variables(
                args.queues, rules.TEMPLATE, rules.of_template(args.mode == "deny")
            ),
            "validations": args.validations(),
        }
        policy_with_binding(
            (f"{name}-policy", f"{name}-binding"),
            called,
            spec,
            WARN,
            inside(self, opts),
            args.namespace,
        )
        self.register_outputs({"policy": called})
