"""An account on the host for each team stack, with what that stack needs and no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pulumi
from pulumi_kubernetes import core
from pulumi_kubernetes.admissionregistration import v1 as admission
from pulumi_kubernetes.rbac import v1 as rbac

from components import team_stack_rights as rights
from components.focus import Declared
from components.settings import Settings
from components.settings.team_stack import Grant
from components.settings.tenant import Tenant
from components.team_stack_grant import ACCESS

if TYPE_CHECKING:
    from components.platform import Platform
    from components.platform_reference import PlatformReference


@dataclass
class TeamStackAccessArgs:
    """`grants` by team. `host_mode`: the host has a KAI, and queues of the teams."""

    grants: Mapping[str, Grant]
    gpu_resource: str = "nvidia.com/gpu"
    host_mode: bool = False


class TeamStackAccess(pulumi.ComponentResource):
    """A ServiceAccount per granted team, its rights, and an admission policy that bounds them.

    The accounts are in a namespace of their own; no token is made here: `fleet team credentials`
    asks for one when a person needs it. Inside its namespace a team's account gets its rights
    by a RoleBinding that the team's stack declares (`namespace_binding`). Needs Kubernetes 1.30.
    """

    def __init__(
        self, name: str, args: TeamStackAccessArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(ACCESS, name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        namespace = core.v1.Namespace(
            f"{name}-namespace", metadata={"name": rights.ACCOUNTS}, opts=child
        )
        rbac.ClusterRole(
            f"{name}-role",
            metadata={"name": rights.IN_NAMESPACE},
            rules=rights.in_namespace(),
            opts=child,
        )
        for team, grant in args.grants.items():
            self._account(f"{name}-{team}", team, grant, args, namespace)
        self.register_outputs({})

    def _account(
        self,
        name: str,
        team: str,
        grant: Grant,
        args: TeamStackAccessArgs,
        namespace: pulumi.Resource,
    ) -> None:
        called = f"{rights.IN_NAMESPACE}-{team}"
        child = pulumi.ResourceOptions(parent=self)
        # The bounds come before the rights that they bound, and go after them.
        policy = admission.ValidatingAdmissionPolicy(
            f"{name}-bounds",
            metadata={"name": called},
            spec={
                "failure_policy": "Fail",
                "match_constraints": {"resource_rules": rights.watched()},
                "match_conditions": [
                    {
                        "name": "the-teams-account",
                        "expression": f"request.userInfo.username == '{rights.account(team)}'",
                    }
                ],
                "validations": rights.bounds(
                    team,
                    gpus=grant.gpus,
                    gpu_resource=args.gpu_resource,
                    parent_queue=grant.parent_queue,
                ),
            },
            opts=child,
        )
        bounds = admission.ValidatingAdmissionPolicyBinding(
            f"{name}-bounds-binding",
            metadata={"name": called},
            spec={"policy_name": called, "validation_actions": ["Deny"]},
            opts=pulumi.ResourceOptions(parent=self, depends_on=[policy]),
        )
        account = core.v1.ServiceAccount(
            f"{name}-account",
            metadata={"name": team, "namespace": rights.ACCOUNTS},
            opts=pulumi.ResourceOptions(parent=self, depends_on=[namespace]),
        )
        role = rbac.ClusterRole(
            f"{name}-role",
            metadata={"name": called},
            rules=rights.on_host(team, host_mode=args.host_mode and grant.parent_queue is not None),
            opts=child,
        )
        rbac.ClusterRoleBinding(
            f"{name}-binding",
            metadata={"name": called},
            role_ref=_role_ref(called),
            subjects=[_subject(team)],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[account, role, bounds]),
        )


def let_in(
    settings: Settings, run: Declared, platform: Platform | PlatformReference
) -> TeamStackAccess | None:
    """The accounts of a platform's team stacks; None where it has none, and in a team stack."""
    if isinstance(settings, Tenant) or not settings.team_stacks:
        return None
    return TeamStackAccess(
        "host-team-stacks",
        TeamStackAccessArgs(run.grants, settings.gpu.resource, settings.kai is not None),
        opts=pulumi.ResourceOptions(
            parent=platform,
            provider=platform.provider,
            transformations=platform.transformations,
        ),
    )


def namespace_binding(
    name: str, team: str, namespace: pulumi.Resource, opts: pulumi.ResourceOptions
) -> pulumi.Resource:
    """What gives a team's account its rights in the team's namespace, declared by its own stack."""
    found: pulumi.Resource = rbac.RoleBinding(
        name,
        metadata={"name": rights.IN_NAMESPACE, "namespace": f"team-{team}"},
        role_ref=_role_ref(rights.IN_NAMESPACE),
        subjects=[_subject(team)],
        opts=pulumi.ResourceOptions.merge(
            # It goes with the namespace: until then the account needs it to take the rest away.
            opts,
            pulumi.ResourceOptions(depends_on=[namespace], deleted_with=namespace),
        ),
    )
    return found


def _role_ref(name: str) -> dict[str, str]:
    return {"api_group": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}


def _subject(team: str) -> dict[str, str]:
    return {"kind": "ServiceAccount", "name": team, "namespace": rights.ACCOUNTS}
