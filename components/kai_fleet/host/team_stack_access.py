"""An account on the host for each team stack, with what that stack needs and no more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi
from pulumi_kubernetes import core
from pulumi_kubernetes.rbac import v1 as rbac

from kai_fleet.fleet.model import DeclaredTeam, Fleet
from kai_fleet.guards.guard_policies import declare_binding, declare_policy
from kai_fleet.host import team_stack_rights as rights
from kai_fleet.host.platform import Platform
from kai_fleet.options import after
from kai_fleet.state.targeting import DeclaredRun
from kai_fleet.state.team_parts import ACCESS, HOST


@dataclass
class TeamStackAccessArgs:
    """`teams` are those with a stack of their own. `foreign_queues`, by team, are names that only
    begin like those of its queues.
    """

    teams: Sequence[DeclaredTeam]
    foreign_queues: Mapping[str, Sequence[str]] = field(default_factory=dict)


class TeamStackAccess(pulumi.ComponentResource):
    """A ServiceAccount per granted team and its rights outside of its namespace.

    The accounts are in a namespace of their own; no token is made here: `fleet team credentials`
    asks for one when a person needs it. Inside the team's namespace an account has the rights of
    the role `IN_NAMESPACE`, by a binding there that depends on `accounts`. Needs Kubernetes 1.30.
    """

    accounts: dict[str, list[pulumi.Resource]]

    def __init__(
        self, name: str, args: TeamStackAccessArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(ACCESS, name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        namespace = core.v1.Namespace(
            f"{name}-namespace", metadata={"name": rights.ACCOUNTS}, opts=child
        )
        shared = rbac.ClusterRole(
            f"{name}-role",
            metadata={"name": rights.IN_NAMESPACE},
            rules=rights.in_namespace(),
            opts=child,
        )
        self.accounts = {
            team.name: [shared, *self._account(f"{name}-{team.name}", team, args, namespace)]
            for team in args.teams
        }
        self.register_outputs({"namespace": rights.ACCOUNTS})

    def _account(
        self,
        name: str,
        granted: DeclaredTeam,
        args: TeamStackAccessArgs,
        namespace: pulumi.Resource,
    ) -> list[pulumi.Resource]:
        team = granted.name
        called = f"{rights.IN_NAMESPACE}-{team}"
        child = pulumi.ResourceOptions(parent=self)
        queue = granted.parent_queue if granted.mode == "host" else None
        # The bounds come before the rights that they bound, and go after them.
        foreign = args.foreign_queues.get(team, ())
        bounds = self._bounds(name, team, queue, foreign) if queue is not None else []
        account = core.v1.ServiceAccount(
            f"{name}-account",
            metadata={"name": team, "namespace": rights.ACCOUNTS},
            opts=pulumi.ResourceOptions(parent=self, depends_on=[namespace]),
        )
        role = rbac.ClusterRole(
            f"{name}-role",
            metadata={"name": called},
            rules=rights.on_host(team, host_mode=queue is not None),
            opts=child,
        )
        binding = rbac.ClusterRoleBinding(
            f"{name}-binding",
            metadata={"name": called},
            role_ref=_role_ref(called),
            subjects=[subject(team)],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[account, role, *bounds]),
        )
        return [account, role, binding, *bounds]

    def _bounds(
        self, name: str, team: str, parent_queue: str, foreign: Sequence[str]
    ) -> list[pulumi.Resource]:
        child = pulumi.ResourceOptions(parent=self)
        bounds = rights.queue_bounds(team, parent_queue, foreign)
        made = declare_policy(f"{name}-bounds", rights.queue_policy(team, bounds), child)
        held = declare_binding(
            f"{name}-bounds-binding", rights.queue_binding(team), after(child, made)
        )
        return [made, held]


def let_in(fleet: Fleet, run: DeclaredRun, platform: Platform) -> TeamStackAccess | None:
    """The accounts of a platform's team stacks; None where it has none, and in a team stack."""
    if not fleet.grants:
        return None
    return TeamStackAccess(
        HOST,
        TeamStackAccessArgs([fleet.grants[team] for team in run.grants], fleet.foreign_queues),
        opts=pulumi.ResourceOptions(
            parent=platform,
            provider=platform.provider,
            transformations=platform.transformations,
        ),
    )


def account_rights(name: str, team: str, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    """What gives a team's account its rights in the team's namespace."""
    found: pulumi.Resource = rbac.RoleBinding(
        name,
        metadata={"name": rights.IN_NAMESPACE, "namespace": f"team-{team}"},
        role_ref=_role_ref(rights.IN_NAMESPACE),
        subjects=[subject(team)],
        opts=opts,
    )
    return found


def _role_ref(name: str) -> rbac.RoleRefArgsDict:
    return {"api_group": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}


def subject(team: str) -> rbac.SubjectArgsDict:
    """The account of a team's stack, as the subject of a binding."""
    return {"kind": "ServiceAccount", "name": team, "namespace": rights.ACCOUNTS}
