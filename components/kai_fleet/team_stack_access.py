"""An account on the host for each team with a stack of its own, with what that stack needs.

It has rights in its namespace, for its release and what that leaves. There it may write neither
what bounds it nor a role: the platform gives the vCluster its rights, so the account holds none of
them only to pass them on. It makes nothing that has no namespace, except its queues on a host with
a KAI: RBAC cannot bound their names, so an admission policy does.
"""

from collections.abc import Sequence
from typing import Any, Final, NotRequired, TypedDict

import pulumi
from pulumi_kubernetes import core
from pulumi_kubernetes.rbac import v1 as rbac

from kai_fleet.guards.policies import ACCOUNTS, Object, binding, declare, policy
from kai_fleet.guards.rights import (
    declare_role,
    service_account,
    team_stack_in_namespace,
    team_stack_on_host,
)
from kai_fleet.options import after, child_of

IN_NAMESPACE: Final = "kai-fleet-team-stack"  # the ClusterRole inside the team's namespace


class AccountArgs(TypedDict):
    """What the account of one team may do besides."""

    parent_queue: NotRequired[str]
    """Queue of the host's KAI below which it makes queues. Default: it makes none."""
    foreign_queues: NotRequired[Sequence[str]]
    """Queues and teams whose names only begin like the team's. Default: none."""


class TeamStackAccessArgs(TypedDict):
    """The accounts of a host."""

    teams: dict[str, AccountArgs]
    """By the team's name."""


class TeamStackAccess(pulumi.ComponentResource):
    """A ServiceAccount per team, and its rights outside the team's namespace.

    The accounts are in a namespace of their own; no token is made here: `fleet team credentials`
    asks for one when a person needs it. In its own namespace an account has its rights by `account`
    of the TeamNamespace. Needs Kubernetes 1.30.
    """

    def __init__(
        self, name: str, args: TeamStackAccessArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:TeamStackAccess", name, None, opts)
        child = child_of(self, opts)
        namespace = core.v1.Namespace(f"{name}-namespace", metadata={"name": ACCOUNTS}, opts=child)
        rules: Any = team_stack_in_namespace()
        rbac.ClusterRole(f"{name}-role", metadata={"name": IN_NAMESPACE}, rules=rules, opts=child)
        for team, account in args["teams"].items():
            _account(f"{name}-{team}", team, account, after(child, namespace))
        self.register_outputs({"namespace": ACCOUNTS})


def _account(name: str, team: str, args: AccountArgs, opts: pulumi.ResourceOptions) -> None:
    parent_queue = args.get("parent_queue")
    # The bounds come before the rights that they bound, and go after them.
    before: list[pulumi.Resource] = []
    if parent_queue is not None:
        bounds, bounds_binding = queue_bounds(team, parent_queue, args.get("foreign_queues", ()))
        before = declare(name, {"bounds": bounds}, {"bounds-binding": bounds_binding}, opts)
    account = core.v1.ServiceAccount(
        f"{name}-account", metadata={"name": team, "namespace": ACCOUNTS}, opts=opts
    )
    declare_role(
        name,
        {"name": f"{IN_NAMESPACE}-{team}"},
        team_stack_on_host(team, host_mode=parent_queue is not None),
        service_account(team, ACCOUNTS),
        opts,
        [account, *before],
    )


def queue_bounds(team: str, parent_queue: str, foreign: Sequence[str]) -> tuple[Object, Object]:
    """The policy that bounds the queues of the team's account, and its binding for every queue of
    the host. Queues have no namespace, whose annotations could have the bounds.
    """
    bounds = {"team": team, "parentQueue": parent_queue}
    if foreign:
        bounds["foreignQueues"] = ",".join(sorted(foreign))
    body, name = policy("team-stack-queues", "", bounds), f"{IN_NAMESPACE}-{team}"
    body["metadata"]["name"] = name
    account = f"system:serviceaccount:{ACCOUNTS}:{team}"
    for condition in body["spec"]["matchConditions"]:
        condition["expression"] = condition["expression"].replace("ACCOUNT", account)
    return body, binding(name, name)
