"""What whoever applies a Deployment is told at once: its pods are going to be denied."""

from __future__ import annotations

from typing import Final

import pulumi
from pulumi_kubernetes.admissionregistration import v1 as admission

from kai_fleet.components.guard import queue_guard_rules as rules
from kai_fleet.components.guard.names import TEMPLATE_GUARD
from kai_fleet.components.guard.queue_guard import QueueGuardArgs, within

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
        opts = opts or pulumi.ResourceOptions()
        child = pulumi.ResourceOptions(
            parent=self, depends_on=opts.depends_on, deleted_with=opts.deleted_with
        )
        called = f"{TEMPLATE_GUARD}{args.team}"
        policy = admission.ValidatingAdmissionPolicy(
            f"{name}-policy",
            metadata={"name": called},
            spec={
                "failure_policy": "Ignore",
                "match_constraints": {
                    "resource_rules": [
                        {
                            "api_groups": [group],
                            "api_versions": ["v1"],
                            "resources": resources,
                            "operations": ["CREATE", "UPDATE"],
                        }
                        for group, resources in _KINDS.items()
                    ]
                },
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
                "validations": rules.validations(
                    args.team,
                    args.queues,
                    args.gpu_sharing,
                    args.prefix,
                    foreign=args.foreign,
                    pod_groups=args.pod_groups,
                ),
            },
            opts=child,
        )
        admission.ValidatingAdmissionPolicyBinding(
            f"{name}-binding",
            metadata={"name": called},
            spec={
                "policy_name": called,
                "validation_actions": ["Warn"],
                **within(args.namespace),
            },
            opts=pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(depends_on=[policy])),
        )
        self.register_outputs({"policy": called})
