"""An account on the host for each team stack, with what that stack needs and no more."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_kubernetes import core
from pulumi_kubernetes.meta.v1 import ObjectMetaArgsDict
from pulumi_kubernetes.rbac import v1 as rbac

from kai_fleet.fleet.deployed_state import ACCESS, HOST, DeclaredRun
from kai_fleet.fleet.model import Fleet
from kai_fleet.guards.components import declare_guard
from kai_fleet.host import team_stack_rights as rights
from kai_fleet.host.platform import Platform
from kai_fleet.options import after


@dataclass
class TeamStackAccessArgs:
    """The `teams` whose grants in the `fleet` this run declares."""

    fleet: Fleet
    teams: Iterable[str]


class TeamStackAccess(pulumi.ComponentResource):
    """A ServiceAccount per team that is granted a stack, and its rights outside its namespace.

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
            team: [shared, *self._account(f"{name}-{team}", team, args.fleet, namespace)]
            for team in args.teams
        }
        self.register_outputs({"namespace": rights.ACCOUNTS})

    def _account(
        self, name: str, team: str, fleet: Fleet, namespace: pulumi.Resource
    ) -> list[pulumi.Resource]:
        granted, called = fleet.grants[team], f"{rights.IN_NAMESPACE}-{team}"
        child = pulumi.ResourceOptions(parent=self)
        queue = granted.parent_queue if granted.mode == "host" else None
        # The bounds come before the rights that they bound, and go after them.
        bounds: list[pulumi.Resource] = []
        if queue is not None:
            policy, binding = rights.queue_guard(team, queue, fleet.foreign_queues[team])
            made, held = declare_guard(name, {"bounds": policy}, {"bounds-binding": binding}, child)
            bounds = [*made.values(), *held]
        account = core.v1.ServiceAccount(
            f"{name}-account",
            metadata={"name": team, "namespace": rights.ACCOUNTS},
            opts=after(child, namespace),
        )
        role = declare_role(
            (f"{name}-role", f"{name}-binding"),
            {"name": called},
            rights.on_host(team, host_mode=queue is not None),
            subject(team, rights.ACCOUNTS),
            child,
            [account, *bounds],
        )
        return [account, *role, *bounds]


def accounts_of_team_stacks(
    platform: Platform, run: DeclaredRun
) -> Mapping[str, Sequence[pulumi.Resource]]:
    """What the account of each team stack is made of, by team."""
    fleet = platform.args.fleet
    if not fleet.grants:
        return {}
    opts = pulumi.ResourceOptions(
        parent=platform, provider=platform.provider, transformations=platform.transformations
    )
    return TeamStackAccess(HOST, TeamStackAccessArgs(fleet, run.grants), opts).accounts


def account_rights(name: str, team: str, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    """What gives a team's account its rights in the team's namespace."""
    found: pulumi.Resource = rbac.RoleBinding(
        name,
        metadata={"name": rights.IN_NAMESPACE, "namespace": f"team-{team}"},
        role_ref=_role_ref("ClusterRole", rights.IN_NAMESPACE),
        subjects=[subject(team, rights.ACCOUNTS)],
        opts=opts,
    )
    return found


def declare_role(
    names: tuple[str, str],
    metadata: ObjectMetaArgsDict,
    rules: Sequence[rbac.PolicyRuleArgsDict],
    account: rbac.SubjectArgsDict,
    opts: pulumi.ResourceOptions,
    before: Sequence[pulumi.Resource] = (),
) -> list[pulumi.Resource]:
    """A role and the binding that gives it to an account, by the names of these resources.

    They are of the namespace in `metadata`, else of the whole cluster. The binding also waits for
    what comes `before`.
    """
    inside = "namespace" in metadata
    role, binding = (
        (rbac.Role, rbac.RoleBinding) if inside else (rbac.ClusterRole, rbac.ClusterRoleBinding)
    )
    made = role(names[0], metadata=metadata, rules=rules, opts=opts)
    bound = binding(
        names[1],
        metadata=metadata,
        role_ref=_role_ref("Role" if inside else "ClusterRole", metadata["name"]),
        subjects=[account],
        opts=after(opts, *before, made),
    )
    return [made, bound]


def _role_ref(kind: str, name: Any) -> rbac.RoleRefArgsDict:
    return {"api_group": "rbac.authorization.k8s.io", "kind": kind, "name": name}


def subject(account: str, namespace: str) -> rbac.SubjectArgsDict:
    """A service account as the subject of a binding."""
    return {"kind": "ServiceAccount", "name": account, "namespace": namespace}
