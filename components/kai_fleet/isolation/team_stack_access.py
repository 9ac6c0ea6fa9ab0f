"""TeamStackAccess: a ServiceAccount on the host for each team with its own stack.

In the team's namespace the account may manage its release and what that leaves, but write no quota,
policy or role: the platform binds the vCluster's rights. Roles it may delete, as Helm does with
those of its chart. Cluster-wide it may write only its queues, on a host with a KAI. RBAC cannot
restrict their names, so an admission policy does.
"""

from collections.abc import Mapping
from typing import Required, TypedDict

from pulumi import ComponentResource, Resource, ResourceOptions
from pulumi_kubernetes import core
from pulumi_kubernetes.rbac import v1 as rbac

from kai_fleet.declaring.options import child_options, component_options, depending_on
from kai_fleet.isolation.policies import ACCOUNTS, Object, binding, content, declare, policy
from kai_fleet.isolation.rights import declare_role, service_account, team_stack_on_host
from kai_fleet.releases.queue_bounds import NAME, display_pattern, queue_spec_bounds

# The ClusterRole with the account's rights in the team's namespace.
IN_NAMESPACE = "kai-fleet-team-stack"
_USER_PREFIX = f"system:serviceaccount:{ACCOUNTS}:"


class TeamAccess(TypedDict, total=False):
    """What the account of one team may write below the host's queues.

    Without `parent_queue` the account writes no queues, and the other keys have no meaning.
    """

    parent_queue: str
    """The queue of the host's KAI that is the parent of the team's queues."""
    foreign_queues: Required[list[str]]
    """Names that begin with `TEAM-` and are others': queues of the platform, and other teams, whose
    queues begin with these names. `TEAM` itself, if it is a queue of the platform.
    """
    shard: str
    """The shard of the parent queue. Default: KAI's shard `default`."""
    levels: int
    """How many levels of queues KAI schedules below the parent queue. Default: no bound."""


class TeamStackAccess(ComponentResource):
    """A ServiceAccount per team, and its rights outside the team's namespace.

    The accounts are in one namespace. Tokens are not declared: `fleet team credentials` requests
    one when needed. Argument `account` of the TeamNamespace binds the rights in the team's
    namespace. Needs Kubernetes 1.30.

    Args:
        teams: by the team's name.
    """

    def __init__(
        self,
        name: str,
        teams: Mapping[str, TeamAccess],
        opts: ResourceOptions | None = None,
    ) -> None:
        super().__init__("kai-fleet:index:TeamStackAccess", name, None, component_options(opts))
        child = child_options(self, opts)
        namespace = core.v1.Namespace(f"{name}-namespace", metadata={"name": ACCOUNTS}, opts=child)
        rbac.ClusterRole(
            f"{name}-role",
            metadata={"name": IN_NAMESPACE},
            rules=content("rights")["team_stack_in_namespace"],
            opts=child,
        )
        in_namespace = depending_on(child, namespace)
        specs_guard = list[Resource]()
        if any(access.get("parent_queue") is not None for access in teams.values()):
            specs_guard = _specs_guard(name, in_namespace)
        for team, access in teams.items():
            _account(f"{name}-{team}", team, access, specs_guard, in_namespace)
        self.register_outputs({"namespace": ACCOUNTS})


def _specs_guard(name: str, opts: ResourceOptions) -> list[Resource]:
    """Declare the policy of queue specs, which holds for the accounts of all team stacks.

    Others, such as the platform's administrators, write on a host what they like.
    """
    specs_policy = policy("queue-specs", "", queue_spec_bounds())
    condition = {
        "name": "the-account-of-a-team",
        "expression": f"request.userInfo.username.startsWith('{_USER_PREFIX}')",
    }
    specs_policy["spec"]["matchConditions"].append(condition)
    policy_name = specs_policy["metadata"]["name"]
    return declare(name, {"specs": specs_policy}, {"specs-binding": binding(policy_name)}, opts)


def _account(
    prefix: str,
    team: str,
    access: TeamAccess,
    specs_guard: list[Resource],
    opts: ResourceOptions,
) -> None:
    """Declare a team's ServiceAccount and its rights; names of the resources begin with `prefix`.

    Policies are created before the rights that they restrict, and deleted after them.
    """
    account = core.v1.ServiceAccount(
        f"{prefix}-account", metadata={"name": team, "namespace": ACCOUNTS}, opts=opts
    )
    before: list[Resource] = [account]
    writes_queues = access.get("parent_queue") is not None
    if writes_queues:
        bounds, bounds_binding = queue_bounds(team, access)
        before += declare(prefix, {"bounds": bounds}, {"bounds-binding": bounds_binding}, opts)
        before += specs_guard
    declare_role(
        prefix,
        f"{IN_NAMESPACE}-{team}",
        team_stack_on_host(team, host_mode=writes_queues),
        service_account(team, ACCOUNTS),
        depending_on(opts, *before),
    )


def queue_bounds(team: str, access: TeamAccess) -> tuple[Object, Object]:
    """The policy that restricts which queues a team's account writes, and its binding.

    The account writes queues named `TEAM` and `TEAM-…` below its parent queue. It writes no queue
    with a foreign name, and none whose name begins with a foreign name and `-`, unless that name is
    `TEAM` itself. The bounds are written in the policy, because queues have no namespace whose
    annotations could have them. A bound "" means KAI's shard `default` or any number of levels.
    Raises KeyError without `parent_queue` or `foreign_queues`.
    """
    bounds = {
        "team": team,
        "parentQueue": access["parent_queue"],
        "foreignQueues": ",".join(sorted(access["foreign_queues"])),
        "shard": access.get("shard", ""),
        "levels": str(access.get("levels", "")),
        "name": str(NAME),
        "display": display_pattern(team),
    }
    bounds_policy = policy("team-stack-queues", "", bounds)
    name = f"{IN_NAMESPACE}-{team}"
    bounds_policy["metadata"]["name"] = name
    for condition in bounds_policy["spec"]["matchConditions"]:
        expression = condition["expression"]
        condition["expression"] = expression.replace("ACCOUNT", f"{_USER_PREFIX}{team}")
    return bounds_policy, binding(name)
